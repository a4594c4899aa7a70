"""BPE over characters of a short text in one kernel call: normalize and encode in buffers that are there already."""

from __future__ import annotations

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from constrain.kernel_files import njit
from constrain.tokenizers.kernel_options import ENTRY
from constrain.tokenizers.models.symbol_kernels import encode_symbols
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
    char_blocks = carray(as_pointer(context[21]), (context[22],), np.int32)
    char_ids = carray(as_pointer(context[23]), (context[24],), np.int32)
    neighbours = carray(as_pointer(context[25]), (context[26],), np.uint32)
    fixed = carray(as_pointer(context[27]), (context[28], 4), np.int32)
    tokens = carray(as_pointer(context[29]), (context[30],), np.uint8)
    starts = carray(as_pointer(context[31]), (context[32],), np.int32)
    slots = carray(as_pointer(context[33]), (context[34],), np.int32)
    direct = carray(as_pointer(context[35]), (context[36],), np.uint8)
    keys = carray(as_pointer(context[37]), (context[38],), np.int64)
    values = carray(as_pointer(context[39]), (context[40],), np.int64)
    byte_ids = carray(as_pointer(context[41]), (context[42],), np.int32)
    symbols = carray(as_pointer(context[43]), (context[44],), np.int32)
    count = encode_symbols(
        normal, ends, context[45], char_blocks, char_ids, neighbours, fixed, tokens, starts, slots, direct,
        keys, values, context[46], context[47], context[48] != 0, byte_ids, symbols, out,
    )  # fmt: skip
    return put_ids(context, count)
