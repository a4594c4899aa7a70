"""Hash tables in the memory of a compiled grammar: hash codes, maps from numbers to numbers, and sorting."""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int32, int64, types, uint64

from constrain.engine.storage.access import bucket_room, i32, i64, set_used, used
from constrain.engine.storage.header import CTX
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.statuses import FAIL


@njit_inner(int64(int64, int64))
def mix(code, value):
    """One step of a multiplicative hash (Fibonacci hashing; Knuth, TAOCP 3, section 6.4)."""
    # Unsigned, since the compiler takes it that signed numbers do not overflow, and for their product is free to
    # put whatever it likes where it can tell that they do.
    code = int64(uint64(code ^ value) * uint64(0x9E3779B97F4A7C15))
    return code ^ ((code >> 29) & 0x7FFFFFFFF)


@njit_inner(int64(int64))
def finish_hash(code):
    """A hash code as a non-negative 31-bit number."""
    return (code ^ (code >> 32)) & 0x7FFFFFFF


@njit_entry(types.void(int32[::1], int64, int32[::1]))
def rehash(hashes, count, buckets):
    for i in range(len(buckets)):
        buckets[i] = -1
    mask = len(buckets) - 1
    for entry in range(count):
        i = hashes[entry] & mask
        while buckets[i] >= 0:
            i = (i + 1) & mask
        buckets[i] = entry


@njit_entry(types.void(int64[::1], int32[::1], int64[::1], int32[::1]))
def rehash_map(keys, values, new_keys, new_values):
    for j in range(len(new_keys)):
        new_keys[j] = 0
    mask = len(new_keys) - 1
    for i in range(len(keys)):
        if keys[i] != 0:
            j = finish_hash(mix(0, keys[i])) & mask
            while new_keys[j] != 0:
                j = (j + 1) & mask
            new_keys[j] = keys[i]
            new_values[j] = values[i]


@njit_inner(int64(CTX, int64, int64, int64))
def map_get(ctx, keys_slot, values_slot, key):
    """The value stored under ``key`` (> 0) in a map, or -1."""
    keys = i64(ctx, keys_slot)
    mask = len(keys) - 1
    i = finish_hash(mix(0, key)) & mask
    while keys[i] != 0:
        if keys[i] == key:
            return int64(i32(ctx, values_slot)[i])
        i = (i + 1) & mask
    return int64(-1)


@njit_inner(int64(CTX, int64, int64, int64, int64))
def map_put(ctx, keys_slot, values_slot, key, value):
    """Store ``value`` under ``key``; returns 0 or ``FAIL``."""
    count = used(ctx, keys_slot)
    if not bucket_room(ctx, keys_slot, count):
        return int64(FAIL)
    keys = i64(ctx, keys_slot)
    mask = len(keys) - 1
    i = finish_hash(mix(0, key)) & mask
    while keys[i] != 0 and keys[i] != key:
        i = (i + 1) & mask
    if keys[i] == 0:
        set_used(ctx, keys_slot, count + 1)
        keys[i] = key
    i32(ctx, values_slot)[i] = value
    return int64(0)


@njit_inner(types.void(int64[::1], int64))
def sort_keys(keys, count):
    """Sort the first ``count`` keys in place (Shell sort with the gaps of Ciura, 2001, continued by 2.25)."""
    sorted_to = 1
    while sorted_to < count and keys[sorted_to - 1] <= keys[sorted_to]:
        sorted_to += 1
    if sorted_to >= count:
        return
    gap = 1
    while gap < count // 2:
        gap = gap * 9 // 4 + 1
    while gap > 0:
        for i in range(gap, count):
            key = keys[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
        gap = gap * 4 // 9
