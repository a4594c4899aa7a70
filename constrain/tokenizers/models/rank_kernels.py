"""The jitted part of rank files: reading them, and the merges that ranks imply."""

from __future__ import annotations

import numpy as np

from constrain.kernels.jit import ENTRY, INNER, njit
from constrain.tokenizers.models.bpe_kernels import HASH_FACTOR, find_hashed, hash_step

_MOST_DIGITS = 9


@njit("int64(int64)", **INNER)
def _six_bits(char):  # type: ignore[no-untyped-def]
    """What a character of base 64 stands for, or -1."""
    if 0x41 <= char <= 0x5A:
        return char - 0x41
    if 0x61 <= char <= 0x7A:
        return char - 0x47
    if 0x30 <= char <= 0x39:
        return char + 4
    if char == 0x2B:
        return 62
    return 63 if char == 0x2F else -1


@njit("int64(uint8[::1], uint8[::1], int32[::1], int64[::1])", **ENTRY)
def read_ranks(data, out, bounds, ranks):  # type: ignore[no-untyped-def]
    """Read lines of a token in base 64, a blank and its rank.

    data   : uint8[n]
    out    : uint8[n], the tokens one after the other (output)
    bounds : int32[], where each token begins, and the last one ends (output); one more than there are lines
    ranks  : int64[], the rank of each (output)

    Returns the number of lines that are not empty, or -1 if one of them is anything else.
    """
    size = 0
    count = 0
    pos = 0
    bounds[0] = 0
    while pos < data.size:
        if data[pos] == 0x0A:
            pos += 1
            continue
        first = size
        bits = np.int64(0)
        length = 0
        while pos < data.size:
            six = _six_bits(data[pos])
            if six < 0:
                break
            bits = (bits << 6 | six) & 0xFFFFFF
            length += 1
            pos += 1
            if length % 4 == 0:
                out[size] = bits >> 16
                out[size + 1] = bits >> 8 & 0xFF
                out[size + 2] = bits & 0xFF
                size += 3
        left = length % 4
        if left == 1:
            return -1
        if left > 1:
            for _ in range(4 - left):
                if pos >= data.size or data[pos] != 0x3D:
                    return -1
                pos += 1
            unused = 6 * left - 8 * (left - 1)
            if bits & ((1 << unused) - 1) & 0xFFFFFF:
                return -1
            out[size] = bits >> (6 * left - 8) & 0xFF
            size += 1
            if left == 3:
                out[size] = bits >> 2 & 0xFF
                size += 1
        if size == first or pos >= data.size or data[pos] != 0x20:
            return -1
        pos += 1
        rank = np.int64(0)
        digits = 0
        while pos < data.size and 0x30 <= data[pos] <= 0x39 and digits <= _MOST_DIGITS:
            rank = 10 * rank + data[pos] - 0x30
            digits += 1
            pos += 1
        if digits == 0 or digits > _MOST_DIGITS or (pos < data.size and data[pos] != 0x0A):
            return -1
        ranks[count] = rank
        count += 1
        bounds[count] = size
    return count


@njit("int64(uint8[::1], int32[::1], int32[::1], int32[::1], int64[::1], int64[::1], int64)", **ENTRY)
def find_pairs_of_ranks(blob, starts, ids, slots, new_keys, new_values, room):  # type: ignore[no-untyped-def]
    """The merges that a list of ranks implies: any two tokens whose bytes together are a token, at its rank.

    ids                  : int32[t], the tokens; the id of a token is its rank
    new_keys, new_values : int64[room], the merges (output)

    Returns the number of merges, which may be more than ``room``; then only the first ``room`` are written.
    """
    longest = 0
    for token in ids:
        longest = max(longest, starts[token + 1] - starts[token])
    memory = np.empty((2, longest + 1), dtype=np.uint64)
    powers, sums = memory[0], memory[1]
    powers[0] = 1
    for i in range(longest):
        powers[i + 1] = powers[i] * HASH_FACTOR
    count = 0
    sums[0] = 0
    for token in ids:
        begin, end = starts[token], starts[token + 1]
        size = end - begin
        for i in range(size):
            sums[i + 1] = hash_step(sums[i], blob[begin + i])
        for cut in range(1, size):
            left = find_hashed(sums[cut], blob, begin, begin + cut, blob, starts, slots)
            if left < 0:
                continue
            # The hash is a polynomial, so that of an end is a difference.
            value = sums[size] - sums[cut] * powers[size - cut]
            right = find_hashed(value, blob, begin + cut, end, blob, starts, slots)
            if right < 0:
                continue
            if count < room:
                new_keys[count] = np.int64(left) << 32 | np.int64(right)
                new_values[count] = np.int64(token) << 32 | np.int64(token)
            count += 1
    return count
