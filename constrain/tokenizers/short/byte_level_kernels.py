"""Byte-level BPE of a short text in one kernel call: split and merge in buffers that are there already."""

from __future__ import annotations

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from constrain.kernel_files import njit
from constrain.tokenizers.kernel_options import ENTRY
from constrain.tokenizers.models.bpe_kernels import encode_pieces
from constrain.tokenizers.short.addresses import as_pointer
from constrain.tokenizers.splitting.cl100k import split as split_cl100k
from constrain.tokenizers.splitting.gpt2 import split as split_gpt2
from constrain.tokenizers.splitting.o200k import split as split_o200k

GPT2, CL100K, O200K = range(3)


@njit("int64(int64[::1], int64)", **ENTRY)
def encode_short(context, size):  # type: ignore[no-untyped-def]
    """The number of ids, or as :func:`constrain.tokenizers.models.bpe_kernels.encode_pieces` says.

    context : addresses and lengths of text (uint8), classes (uint8), ends (int32), and of ``byte_ids`` to ``out`` of
              :func:`encode_pieces`; then the scanner, its option, and ``whole``
    size    : bytes of text
    """
    text = carray(as_pointer(context[0]), (size,), np.uint8)
    classes = carray(as_pointer(context[2]), (context[3],), np.uint8)
    ends = carray(as_pointer(context[4]), (context[5],), np.int32)
    byte_ids = carray(as_pointer(context[6]), (context[7],), np.int32)
    blob = carray(as_pointer(context[8]), (context[9],), np.uint8)
    starts = carray(as_pointer(context[10]), (context[11],), np.int32)
    slots = carray(as_pointer(context[12]), (context[13],), np.int32)
    direct = carray(as_pointer(context[14]), (context[15],), np.uint8)
    keys = carray(as_pointer(context[16]), (context[17],), np.int64)
    values = carray(as_pointer(context[18]), (context[19],), np.int64)
    out = carray(as_pointer(context[20]), (context[21],), np.int32)
    scanner, option = context[22], context[23]
    if scanner == GPT2:
        count = split_gpt2(text, classes, option, ends)
    elif scanner == CL100K:
        count = split_cl100k(text, classes, option, ends)
    else:
        count = split_o200k(text, classes, option, ends)
    return encode_pieces(text, ends[:count], context[24] != 0, byte_ids, blob, starts, slots, direct, keys, values, out)
