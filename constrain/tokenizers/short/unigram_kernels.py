"""Unigram of a short text in one kernel call: normalize and encode in buffers that are there already."""

from __future__ import annotations

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from constrain.kernel_files import njit
from constrain.tokenizers.kernel_options import ENTRY
from constrain.tokenizers.models.unigram_kernels import encode_unigram
from constrain.tokenizers.short.addresses import as_pointer
from constrain.tokenizers.short.normalization import ENDS, NORMAL, OUT, normalize_short, put_ids


@njit("int64(int64[::1], int64)", **ENTRY)
def encode_short(context, size):  # type: ignore[no-untyped-def]
    """The number of ids, or as :func:`constrain.tokenizers.normalizing.charsmap_kernels.normalize_spaces` says.

    context : see :mod:`constrain.tokenizers.short.normalization`; then the tables of the model
    size    : bytes of text
    """
    length = normalize_short(context, size)
    if length <= 0:
        return length
    normal = carray(as_pointer(context[NORMAL]), (length,), np.uint8)
    ends = carray(as_pointer(context[ENDS]), (1,), np.int32)
    out = carray(as_pointer(context[OUT]), (context[OUT + 1], 3), np.int32)
    units = carray(as_pointer(context[21]), (context[22], 4), np.int32)
    scores = carray(as_pointer(context[23]), (context[24],), np.float64)
    byte_ids = carray(as_pointer(context[25]), (context[26],), np.int32)
    penalties = carray(as_pointer(context[27]), (context[28],), np.float64)
    best = carray(as_pointer(context[29]), (context[30],), np.float64)
    back = carray(as_pointer(context[31]), (context[32], 2), np.int32)
    count = encode_unigram(
        normal, ends, units, scores, context[33], penalties[0], context[34] != 0, context[35] != 0, byte_ids,
        best, back, out,
    )  # fmt: skip
    return put_ids(context, count)
