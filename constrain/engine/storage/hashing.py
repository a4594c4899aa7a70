"""Hash tables in the memory of a compiled grammar: interning, maps from numbers to numbers, and sorting.

Interning gives equal contents the same number.  A table of entries is interned with two others: the hash code of each
entry, and *buckets*, which name entries and are searched from the code on (linear probing).  A kernel looks an entry up
and adds it like this::

    code = ...                                            # of the content
    entry = find(ctx, HASHES, BUCKETS, code, -1)
    while entry >= 0:
        if ...:                                           # the content is the same
            return entry
        entry = find(ctx, HASHES, BUCKETS, code, entry)
    if not has_room(ctx, HASHES, BUCKETS) or ...:         # room for the content
        return FAIL
    ...                                                   # write the content, and last
    return insert(ctx, HASHES, BUCKETS, code)

Most contents are runs of int32.  They are made on the top of WORK_STACK: *staged*.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.storage.access import bucket_room, i32, i64, room, set_used, used
from constrain.engine.storage.header import CTX
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.schemas import WORK_STACK, work_stack
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int32, int64, types, uint64


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


@njit_inner(int64(CTX, int64, int64, int64, int64))
def find(ctx, hashes_slot, buckets_slot, code, after):
    """The next entry with a hash code behind the entry ``after`` (-1: the first one); -1 if there is no other."""
    hashes, buckets = i32(ctx, hashes_slot), i32(ctx, buckets_slot)
    mask = len(buckets) - 1
    i = code & mask
    while buckets[i] >= 0:
        entry = int64(buckets[i])
        if after >= 0:
            # It is on the way.
            if entry == after:
                after = int64(-1)
        elif hashes[entry] == code:
            return entry
        i = (i + 1) & mask
    return int64(-1)


@njit_inner(types.boolean(CTX, int64, int64))
def has_room(ctx, hashes_slot, buckets_slot):
    """Whether one more entry can be inserted; if not, what is too small is noted."""
    return room(ctx, hashes_slot, 1) and bucket_room(ctx, buckets_slot, used(ctx, hashes_slot))


@njit_inner(int64(CTX, int64, int64, int64))
def insert(ctx, hashes_slot, buckets_slot, code):
    """Let a new entry be found by its hash code; there is room.  Returns its number, the next one."""
    entry = used(ctx, hashes_slot)
    buckets = i32(ctx, buckets_slot)
    mask = len(buckets) - 1
    i = code & mask
    while buckets[i] >= 0:
        i = (i + 1) & mask
    buckets[i] = entry
    i32(ctx, hashes_slot)[entry] = code
    set_used(ctx, hashes_slot, entry + 1)
    return entry


@njit_inner(int64(CTX, int64, int64, int64))
def hash_staged(ctx, code, base, count):
    """The hash code of ``WORK_STACK[base:][:count]`` behind what ``code`` stands for."""
    staged = work_stack(ctx)
    for i in range(base, base + count):
        code = mix(code, staged[i])
    return finish_hash(code)


@njit_inner(types.boolean(CTX, int64, int64, int64, int64))
def is_staged(ctx, slot, offset, base, count):
    """Whether a run of numbers in a table of int32, from ``offset`` on, is ``WORK_STACK[base:][:count]``."""
    kept, staged = i32(ctx, slot), i32(ctx, WORK_STACK)
    same = True
    i = 0
    while same and i < count:
        same = kept[offset + i] == staged[base + i]
        i += 1
    return same


@njit_inner(types.void(CTX, int64, int64, int64))
def keep_staged(ctx, slot, base, count):
    """Append ``WORK_STACK[base:][:count]`` to a table of int32, which has room."""
    kept, staged = i32(ctx, slot), i32(ctx, WORK_STACK)
    end = used(ctx, slot)
    for i in range(count):
        kept[end + i] = staged[base + i]
    set_used(ctx, slot, end + count)


@njit_entry(types.void(int32[::1], int64, int32[::1]))
def rehash(hashes, count, buckets):
    """Let ``buckets`` (int32[2**n]) name the entries with the first ``count`` of ``hashes`` (int32[m])."""
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
    """Move a map to larger arrays of keys (int64[2**n], 0: none) and values (int32[2**n])."""
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


@njit_inner(types.void(CTX, int64, int64, int64, int64))
def map_change(ctx, keys_slot, values_slot, key, value):
    """Store ``value`` under ``key`` if there is something under it."""
    keys = i64(ctx, keys_slot)
    mask = len(keys) - 1
    i = finish_hash(mix(0, key)) & mask
    while keys[i] != 0 and keys[i] != key:
        i = (i + 1) & mask
    if keys[i] == key:
        i32(ctx, values_slot)[i] = value


@njit_inner(types.void(int32[::1], int64), types.void(int64[::1], int64))
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
