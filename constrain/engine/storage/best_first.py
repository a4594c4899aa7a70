"""What best-first searches keep: the cheapest way known to each thing that was reached, and a heap of these ways.

A search goes over expressions (automata/liveness.py, budget/expression_costs.py) or recognizer states
(budget/search.py), all of them numbers.  It has three tables, one behind the other: its heap, by whose slot it is
named; its places, which say for each thing where its way is; and its ways.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import CTX, RESULT2, RESULT3
from constrain.engine.storage.heaps import heap_push
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.statuses import FAIL, Status
from constrain.kernels.language import int64

KNOWN = Status.NONE.value
"""Instead of a way: one that costs no more is known."""

_PLACES, _WAYS = 1, 2
_SEARCHES = (
    (t.LIFE_HEAP, t.LIFE_PLACES, t.LIFE_WAYS),
    (t.SEARCH_HEAP, t.SEARCH_PLACES, t.SEARCH_WAYS),
    (t.PATH_HEAP, t.PATH_PLACES, t.PATH_WAYS),
)
assert all(tables == (tables[0], tables[0] + _PLACES, tables[0] + _WAYS) for tables in _SEARCHES)

# In a key of the heap, below the estimate: this minus the number of the way.
_NEWEST = 0xFFFFFFFF


@njit_inner(int64(CTX, int64, int64, int64, int64, int64))
def note_way(ctx, search, reached, cost, before, step):
    """Note a way of this cost to a thing, the last step of which leads there from the end of the way ``before``.

    What a place says counts only if the way leads to that thing (sparse sets; Briggs and Torczon, 1993).  So a search
    begins without clearing anything.  Returns the number of the way; or KNOWN, or FAIL.
    """
    count = used(ctx, search + _WAYS)
    n_places = used(ctx, search + _PLACES)
    if reached >= n_places:
        if not room(ctx, search + _PLACES, reached + 1 - n_places):
            return int64(FAIL)
        set_used(ctx, search + _PLACES, reached + 1)
    if not room(ctx, search + _WAYS, 1):
        return int64(FAIL)
    places = t.way_places(ctx, search + _PLACES)
    known = t.ways(ctx, search + _WAYS)
    way = places[reached]
    if 0 <= way < count and known[way].reached == reached:
        if known[way].cost <= cost:
            return int64(KNOWN)
    else:
        way = count
        places[reached] = way
        set_used(ctx, search + _WAYS, way + 1)
    known[way] = reached, cost, before, step
    return way


@njit_inner(RESULT3)
def push_way(ctx, search, estimate, way):
    """Put a way on the heap.  Of equal estimates the newest comes first: the search goes straight to an end then."""
    return heap_push(ctx, search, estimate << 32 | (_NEWEST - way))


@njit_inner(int64(int64))
def way_of(key):
    """The way that a key of the heap stands for."""
    return _NEWEST - (key & _NEWEST)


@njit_inner(int64(int64))
def estimate_of(key):
    """The estimate with which a way was put on the heap."""
    return key >> 32


@njit_inner(RESULT2)
def begin_search(ctx, search, start):
    """Begin a search at a thing: the only way known, number 0, leads to it; returns 0 or FAIL."""
    set_used(ctx, search, 0)
    set_used(ctx, search + _WAYS, 0)
    if note_way(ctx, search, start, int64(0), int64(-1), int64(-1)) < 0:
        return int64(FAIL)
    return push_way(ctx, search, int64(0), int64(0))
