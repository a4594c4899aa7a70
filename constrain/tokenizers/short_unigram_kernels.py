"""Unigram of a short text in one kernel call: normalize and encode in buffers that are there already."""

from __future__ import annotations

import numpy as np
from numba import carray, njit  # type: ignore[attr-defined]

from constrain.tokenizers.addresses import as_pointer
from constrain.tokenizers.charsmap_kernels import normalize_spaces
from constrain.tokenizers.unigram_kernels import encode_unigram


@njit("int64(int64[::1], int64)", cache=True, nogil=True)
def encode_short(context, size):  # type: ignore[no-untyped-def]
    """The number of ids, or as :func:`constrain.tokenizers.charsmap_kernels.normalize_spaces` says.

    context : made by :class:`constrain.tokenizers.piece_tokenizer.ShortBuffers`, then the tables of the model
    size    : bytes of text
    """
    text = carray(as_pointer(context[0]), (size,), np.uint8)
    normal = carray(as_pointer(context[2]), (context[3],), np.uint8)
    origins = carray(as_pointer(context[4]), (0, 2), np.int32)
    plain = carray(as_pointer(context[6]), (context[7],), np.uint8)
    rules = carray(as_pointer(context[8]), (context[9],), np.uint32)
    blob = carray(as_pointer(context[10]), (context[11],), np.uint8)
    kept = carray(as_pointer(context[12]), (context[13], 4), np.int32)
    length = normalize_spaces(text, plain, rules, blob, kept, context[14], normal, origins, False)
    if length <= 0:
        return length
    ends = carray(as_pointer(context[15]), (1,), np.int32)
    ends[0] = length
    out = carray(as_pointer(context[17]), (context[18], 3), np.int32)
    ids = carray(as_pointer(context[19]), (context[20],), np.int32)
    units = carray(as_pointer(context[21]), (context[22], 4), np.int32)
    scores = carray(as_pointer(context[23]), (context[24],), np.float64)
    byte_ids = carray(as_pointer(context[25]), (context[26],), np.int32)
    penalties = carray(as_pointer(context[27]), (context[28],), np.float64)
    best = carray(as_pointer(context[29]), (context[30],), np.float64)
    back = carray(as_pointer(context[31]), (context[32], 2), np.int32)
    count = encode_unigram(
        normal[:length], ends, units, scores, context[33], penalties[0], context[34] != 0, context[35] != 0, byte_ids,
        best, back, out,
    )  # fmt: skip
    for i in range(count):
        ids[i] = out[i, 0]
    return count
