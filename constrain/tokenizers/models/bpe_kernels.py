"""The jitted part of byte-level BPE: from the bytes of a piece to ids.

Two hash tables with open addressing and linear probing, both a power of two in size:

* *tokens*, by content: ``slots`` int32[s] holds ids (-1: free), ``blob`` uint8[] and ``starts``
  int32[vocab + 1] the bytes of each id;
* *merges*, by pair: ``keys`` int64[s] holds ``left << 32 | right`` (-1: free), ``values`` int64[s]
  ``rank << 32 | merged id``.

A piece is merged lowest rank first, leftmost first among equal ranks.  For a short piece
that pair is searched among all pairs.  For a long piece the pairs are kept in a heap: without one, a
megabyte without a space would take hours.
"""

from __future__ import annotations

import numpy as np

from constrain.kernels.jit import ENTRY, INNER, njit

NO_TOKEN = -1
"""Result of :func:`encode_pieces` plus the byte: there is a byte that has no token."""

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)

_SHORT = 48
_NO_MERGE = np.int64(2**62)


@njit("uint64(uint64)", **INNER)
def _mix(value):  # type: ignore[no-untyped-def]
    value ^= value >> np.uint64(32)
    value *= np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@njit("uint64(uint64, int64)", **INNER)
def hash_step(value, byte):  # type: ignore[no-untyped-def]
    """What the hash of some bytes, before it is mixed, becomes with one more; it begins with 0."""
    return value * HASH_FACTOR + np.uint64(byte) + np.uint64(1)


@njit("uint64(uint8[::1], int64, int64)", **INNER)
def _hash_bytes(data, begin, end):  # type: ignore[no-untyped-def]
    value = np.uint64(0)
    for i in range(begin, end):
        value = hash_step(value, data[i])
    return _mix(value)


@njit("int64(uint8[::1], int64, int64, uint8[::1], int32[::1], int32[::1])", **INNER)
def find_token(data, begin, end, blob, starts, slots):  # type: ignore[no-untyped-def]
    """The id of the token with the bytes ``data[begin:end]``, or -1."""
    value = np.uint64(0)
    for i in range(begin, end):
        value = hash_step(value, data[i])
    return find_hashed(value, data, begin, end, blob, starts, slots)


@njit("int64(uint64, uint8[::1], int64, int64, uint8[::1], int32[::1], int32[::1])", **INNER)
def find_hashed(value, data, begin, end, blob, starts, slots):  # type: ignore[no-untyped-def]
    """The same, where the hash of these bytes is known; ``value`` is not mixed."""
    mask = slots.size - 1
    slot = np.int64(_mix(value)) & mask
    while slots[slot] >= 0:
        start = starts[slots[slot]]
        if starts[slots[slot] + 1] - start == end - begin:
            same = True
            for i in range(end - begin):
                if blob[start + i] != data[begin + i]:
                    same = False
                    break
            if same:
                return slots[slot]
        slot = (slot + 1) & mask
    return -1


@njit("int64(int64, int64, int64[::1], int64[::1])", **INNER)
def _find_merge(left, right, keys, values):  # type: ignore[no-untyped-def]
    """``rank << 32 | merged id`` of a pair, or a number above all of these."""
    key = left << 32 | right
    mask = keys.size - 1
    slot = np.int64(_mix(np.uint64(key))) & mask
    while keys[slot] != -1:
        if keys[slot] == key:
            return values[slot]
        slot = (slot + 1) & mask
    return _NO_MERGE


@njit("void(int64[::1], int64[::1], int64[::1], int64[::1])", **ENTRY)
def fill_merges(new_keys, new_values, keys, values):  # type: ignore[no-untyped-def]
    """Put merges into an empty table of at least 1.5 times their number.  Of equal keys the last one counts."""
    mask = keys.size - 1
    for i in range(new_keys.size):
        slot = np.int64(_mix(np.uint64(new_keys[i]))) & mask
        while keys[slot] != -1 and keys[slot] != new_keys[i]:
            slot = (slot + 1) & mask
        keys[slot] = new_keys[i]
        values[slot] = new_values[i]


@njit("int64(uint8[::1], int32[::1], int32[::1], int32[::1])", **ENTRY)
def fill_tokens(blob, starts, ids, slots):  # type: ignore[no-untyped-def]
    """Put the tokens ``ids`` into an empty table of at least 1.5 times their number.

    Returns -1, or the first id whose bytes another token before it has too.
    """
    mask = slots.size - 1
    for token in ids:
        begin, end = starts[token], starts[token + 1]
        if find_token(blob, begin, end, blob, starts, slots) >= 0:
            return token
        slot = np.int64(_hash_bytes(blob, begin, end)) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = token
    return -1


@njit("int64(int32[::1], int64[::1], int64, int64[::1], int64[::1])", **INNER)
def merge_short(symbols, found, size, keys, values):  # type: ignore[no-untyped-def]
    """Merge ``symbols[:size]`` in place; returns how many are left.  ``found[i]`` is for the pair (i, i + 1)."""
    for i in range(size - 1):
        found[i] = _find_merge(symbols[i], symbols[i + 1], keys, values)
    while size > 1:
        best = 0
        for i in range(1, size - 1):
            if found[i] >> 32 < found[best] >> 32:
                best = i
        if found[best] == _NO_MERGE:
            break
        symbols[best] = found[best] & 0x7FFFFFFF
        size -= 1
        for i in range(best + 1, size):
            symbols[i] = symbols[i + 1]
            found[i] = found[i + 1]
        if best + 1 < size:
            found[best] = _find_merge(symbols[best], symbols[best + 1], keys, values)
        if best > 0:
            found[best - 1] = _find_merge(symbols[best - 1], symbols[best], keys, values)
    return size


@njit("int64(int64[::1], int64, int64)", **INNER)
def _push(heap, size, entry):  # type: ignore[no-untyped-def]
    """Add ``entry`` to the binary heap ``heap[:size]``, smallest first."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if heap[parent] <= entry:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = entry
    return size + 1


@njit("UniTuple(int64, 2)(int64[::1], int64)", **INNER)
def _pop(heap, size):  # type: ignore[no-untyped-def]
    """Take the smallest entry out of ``heap[:size]``."""
    smallest = heap[0]
    size -= 1
    entry = heap[size]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= entry:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = entry
    return smallest, size


@njit("int64(int32[::1], int64, int64[::1], int64[::1])", **INNER)
def merge_long(symbols, size, keys, values):  # type: ignore[no-untyped-def]
    """The same as :func:`merge_short` in O(size log size).

    The symbols are a doubly linked list.  A heap entry is ``rank << 32 | position``; it is out of
    date, and skipped, if the pair at that position has another rank by now.
    """
    # One allocation, cut in pieces: every array constructor costs a tenth of a second of compilation.
    room = np.empty(6 * size, dtype=np.int64)
    after = room[:size]
    before = room[size : 2 * size]
    found = room[2 * size : 3 * size]
    heap = room[3 * size :]
    entries = 0
    for i in range(size):
        after[i] = i + 1
        before[i] = i - 1
        found[i] = _NO_MERGE
    for i in range(size - 1):
        found[i] = _find_merge(symbols[i], symbols[i + 1], keys, values)
        if found[i] != _NO_MERGE:
            entries = _push(heap, entries, (found[i] >> 32) << 32 | np.int64(i))
    while entries > 0:
        entry, entries = _pop(heap, entries)
        place = entry & 0x7FFFFFFF
        if found[place] >> 32 != entry >> 32:
            continue
        gone = after[place]
        symbols[place] = found[place] & 0x7FFFFFFF
        symbols[gone] = -1
        found[gone] = _NO_MERGE
        found[place] = _NO_MERGE
        following = after[gone]
        after[place] = following
        if following < size:
            before[following] = place
            found[place] = _find_merge(symbols[place], symbols[following], keys, values)
            if found[place] != _NO_MERGE:
                entries = _push(heap, entries, (found[place] >> 32) << 32 | np.int64(place))
        previous = before[place]
        if previous >= 0:
            found[previous] = _find_merge(symbols[previous], symbols[place], keys, values)
            if found[previous] != _NO_MERGE:
                entries = _push(heap, entries, (found[previous] >> 32) << 32 | np.int64(previous))
    left = 0
    for i in range(size):
        if symbols[i] >= 0:
            symbols[left] = symbols[i]
            left += 1
    return left


@njit(
    "int64(uint8[::1], int32[::1], boolean, int32[::1], uint8[::1], int32[::1], int32[::1], uint8[::1],"
    " int64[::1], int64[::1], int32[::1])",
    **ENTRY,
)
def encode_pieces(data, ends, whole, byte_ids, blob, starts, slots, direct, keys, values, out):  # type: ignore[no-untyped-def]
    """Turn pieces of text into ids.

    data     : uint8[n], the bytes of all pieces
    ends     : int32[p], the end of each piece in ``data``
    whole    : a piece that is a token becomes that token without a look at the merges
    byte_ids : int32[256], the id of each byte (-1: none)
    blob, starts, slots : the tokens by content
    direct   : uint8[vocab], what is known about a token where ``whole`` is False: 0 nothing, 1 its
               merges lead to it, 2 they do not.  Filled in on the way; all writers write the same.
    keys, values : the merges
    out      : int32[n], the ids (output)

    Returns the number of ids, or ``NO_TOKEN - byte`` if there is a byte that has no token.
    """
    found = np.empty(_SHORT, dtype=np.int64)
    count = 0
    begin = 0
    for piece in range(ends.size):
        end = ends[piece]
        size = end - begin
        token = -1
        if size > 1:
            token = find_token(data, begin, end, blob, starts, slots)
            if token >= 0 and (whole or direct[token] == 1):
                out[count] = token
                count += 1
                begin = end
                continue
        symbols = out[count : count + size]
        for i in range(size):
            symbols[i] = byte_ids[data[begin + i]]
            if symbols[i] < 0:
                return NO_TOKEN - np.int64(data[begin + i])
        if size <= _SHORT:
            left = merge_short(symbols, found, size, keys, values)
        else:
            left = merge_long(symbols, size, keys, values)
        if token >= 0:
            direct[token] = 1 if left == 1 and symbols[0] == token else 2
        count += left
        begin = end
    return count
