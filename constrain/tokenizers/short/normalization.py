"""The normalization of a short text of a SentencePiece vocabulary, in buffers that are there already."""

from __future__ import annotations

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from constrain.kernel_files import njit
from constrain.tokenizers.kernel_options import INNER
from constrain.tokenizers.normalizing.charsmap_kernels import normalize_spaces
from constrain.tokenizers.short.addresses import as_pointer

NORMAL, ENDS, OUT, IDS = 2, 15, 17, 19
"""Where in a context the normalized text stands, the ends of pieces, the tokens and their ids.  The tables of the model
begin at 21."""


@njit("int64(int64[::1], int64)", **INNER)
def normalize_short(context, size):  # type: ignore[no-untyped-def]
    """The length of the normalized text, or as ``normalize_spaces`` of normalizing/charsmap_kernels.py says.

    context : addresses and lengths of text (uint8), normalized text (uint8), origins (int32[:, 2]), and of ``plain``
              to ``kept`` of :func:`normalize_spaces`; its flags; those of ends (int32), tokens (int32[:, 3]) and ids
              (int32)
    size    : bytes of text
    """
    text = carray(as_pointer(context[0]), (size,), np.uint8)
    normal = carray(as_pointer(context[NORMAL]), (context[NORMAL + 1],), np.uint8)
    origins = carray(as_pointer(context[4]), (0, 2), np.int32)
    plain = carray(as_pointer(context[6]), (context[7],), np.uint8)
    rules = carray(as_pointer(context[8]), (context[9],), np.uint32)
    blob = carray(as_pointer(context[10]), (context[11],), np.uint8)
    kept = carray(as_pointer(context[12]), (context[13], 4), np.int32)
    length = normalize_spaces(text, plain, rules, blob, kept, context[14], normal, origins, False)
    if length > 0:
        ends = carray(as_pointer(context[ENDS]), (1,), np.int32)
        ends[0] = length
    return length


@njit("int64(int64[::1], int64)", **INNER)
def put_ids(context, count):  # type: ignore[no-untyped-def]
    """Writes the ids of the first ``count`` tokens, and returns ``count``."""
    out = carray(as_pointer(context[OUT]), (context[OUT + 1], 3), np.int32)
    ids = carray(as_pointer(context[IDS]), (context[IDS + 1],), np.int32)
    for i in range(count):
        ids[i] = out[i, 0]
    return count
