"""A binary heap of candidates: values, and the ids that belong to them."""

from __future__ import annotations

from typing import Any

from constrain.sampling.kernels.jit import njit_inner


@njit_inner(
    "void(float32[::1], int32[::1], int64, int64, boolean)", "void(float64[::1], int32[::1], int64, int64, boolean)"
)
def sift_down(values: Any, ids: Any, root: Any, end: Any, best_first: Any) -> None:
    """Restore the heap below ``root`` in ``values[:end]``/``ids[:end]``.

    The better of two candidates is the one with the higher value, then with the lower id.
    ``best_first`` says whether the root of the heap is the best candidate or the worst.
    """
    value = values[root]
    token = ids[root]
    while True:
        child = 2 * root + 1
        if child >= end:
            break
        other = child + 1
        if other < end:
            better = values[other] > values[child] or (values[other] == values[child] and ids[other] < ids[child])
            if better == best_first:
                child = other
        better = values[child] > value or (values[child] == value and ids[child] < token)
        if better != best_first:
            break
        values[root] = values[child]
        ids[root] = ids[child]
        root = child
    values[root] = value
    ids[root] = token


@njit_inner("void(float32[::1], int32[::1], int64, boolean)")
def heapify(values: Any, ids: Any, count: Any, best_first: Any) -> None:
    """Make a heap of ``values[:count]``/``ids[:count]``."""
    for root in range(count // 2 - 1, -1, -1):
        sift_down(values, ids, root, count, best_first)
