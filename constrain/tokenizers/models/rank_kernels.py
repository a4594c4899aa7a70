"""The jitted part of models/ranks.py."""

from __future__ import annotations

import numpy as np

from constrain.kernels.jit import ENTRY, njit
from constrain.tokenizers.models.bpe_kernels import find_token


@njit("int64(uint8[::1], int32[::1], int32[::1], int32[::1], int64[::1], int64[::1], int64)", **ENTRY)
def find_pairs_of_ranks(blob, starts, ids, slots, new_keys, new_values, room):  # type: ignore[no-untyped-def]
    """The merges that a list of ranks implies: any two tokens whose bytes together are a token, at its rank.

    ids                  : int32[t], the tokens; the id of a token is its rank
    new_keys, new_values : int64[room], the merges (output)

    Returns the number of merges, which may be more than ``room``; then only the first ``room`` are written.
    """
    count = 0
    for token in ids:
        begin, end = starts[token], starts[token + 1]
        for cut in range(begin + 1, end):
            left = find_token(blob, begin, cut, blob, starts, slots)
            if left < 0:
                continue
            right = find_token(blob, cut, end, blob, starts, slots)
            if right < 0:
                continue
            if count < room:
                new_keys[count] = np.int64(left) << 32 | np.int64(right)
                new_values[count] = np.int64(token) << 32 | np.int64(token)
            count += 1
    return count
