"""A binary heap of int64 keys in a table, the least key first.

The tables that hold heaps are those of ``heap_keys``; a key may carry anything in its lower bits.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.schemas import heap_keys
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64


@njit_inner(RESULT2)
def heap_push(ctx, slot, key):
    """Put a key on a heap; returns 0 or FAIL."""
    if not room(ctx, slot, 1):
        return int64(FAIL)
    heap = heap_keys(ctx, slot)
    i = used(ctx, slot)
    set_used(ctx, slot, i + 1)
    while i > 0 and heap[(i - 1) // 2] > key:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = key
    return int64(0)


@njit_inner(RESULT1)
def heap_pop(ctx, slot):
    """Take the least key off a heap, which is not empty."""
    heap = heap_keys(ctx, slot)
    n = used(ctx, slot) - 1
    set_used(ctx, slot, n)
    least, last = heap[0], heap[n]
    i = int64(0)
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = last
    return least
