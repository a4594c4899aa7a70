"""The items of an Earley set under way, in KERNEL_ITEMS, as keys ``dot << 32 | origin``."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.storage.access import room
from constrain.engine.storage.hashing import finish_hash, mix
from constrain.engine.storage.header import RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.schemas import KERNEL_PLACES, KERNEL_SLOTS, kernel_items, kernel_places, kernel_slots
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64


@njit_inner(RESULT2)
def drop_repeated(ctx, begin, end):
    """Drop what occurs more than once in KERNEL_ITEMS[begin:end]; returns the end of what is left, or FAIL.

    A hash table that needs no clearing: a slot is in use if it names a key that names the slot
    (sparse sets; Briggs and Torczon, 1993).  Ambiguous grammars come upon the same item dozens of times.
    """
    size = int64(16)
    while size < 2 * (end - begin):
        size *= 2
    if not room(ctx, KERNEL_SLOTS, size) or not room(ctx, KERNEL_PLACES, end - begin):
        return int64(FAIL)
    keys = kernel_items(ctx)
    slots = kernel_slots(ctx)
    places = kernel_places(ctx)
    count = int64(0)
    for i in range(begin, end):
        key = keys[i]
        slot = finish_hash(mix(0, key)) & (size - 1)
        while True:
            known = slots[slot]
            if known < 0 or known >= count or places[known] != slot:
                slots[slot] = count
                places[count] = slot
                keys[begin + count] = key
                count += 1
                break
            if keys[begin + known] == key:
                break
            slot = (slot + 1) & (size - 1)
    return begin + count
