"""Liveness: whether an expression has any string.

Without intersections and complements it has one, unless it is EMPTY.  With them it has to be searched for.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.character_counters import character_counter
from constrain.engine.automata.expressions import (
    ALIVE,
    COMPLEX_FLAG,
    CONCAT,
    DEAD,
    EMPTY,
    INTERSECT,
    NULLABLE_FLAG,
)
from constrain.engine.automata.summaries import LONG
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import set_used, used
from constrain.engine.storage.best_first import KNOWN, note_way, push_way, way_of
from constrain.engine.storage.hashing import map_change, map_get, map_put
from constrain.engine.storage.header import CLASSES, CTX, RESULT1, RESULT2, RESULT3
from constrain.engine.storage.heaps import heap_pop
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_DERIVATIVE, F_LIVE, far_call, far_entry
from constrain.engine.storage.statuses import FAIL, LIMIT
from constrain.kernels.language import int64, types

# So many expressions are visited.
_LIMIT = 200_000

_MOST_BYTES = 1 << 30


@njit_inner(types.boolean(CTX, int64))
def _shows_life(ctx, expression):
    """Whether an expression, not EMPTY, is seen to have a string, without a search."""
    records = t.expressions(ctx)
    flags = records[expression].flags
    if flags & NULLABLE_FLAG or flags & COMPLEX_FLAG == 0 or t.liveness(ctx)[expression] == ALIVE:
        return True
    if flags & 255 != INTERSECT:
        return False
    # No string has more characters than bytes.
    counted = character_counter(ctx, expression)
    if counted < 0:
        return False
    length = t.shortest_lengths(ctx)[counted & 0xFFFFFFFF]
    return length < LONG and length <= records[counted >> 32].third


@njit_inner(RESULT1)
def _bytes_to_go(ctx, expression):
    """An estimate of how many bytes the shortest string of an expression has, for the order of a search.

    For an intersection it is the sum of what its parts need at least.  The largest of these would be a bound, but a
    byte that brings one part closer to its end, and no other, would not count.
    """
    shortest = t.shortest_lengths(ctx)
    record = t.expressions(ctx)[expression]
    if record.kind != INTERSECT:
        return int64(shortest[expression])
    length = int64(0)
    for i in range(record.second):
        length += shortest[t.children(ctx)[record.first + i]]
    return min(length, int64(_MOST_BYTES))


@njit_inner(RESULT1)
def _whole_counter(ctx, expression):
    """Of a pattern beside a counter of characters, none of which has begun: ``counter << 32 | pattern``; else -1."""
    record = t.expressions(ctx)[expression]
    if record.kind != INTERSECT:
        return int64(-1)
    counted = character_counter(ctx, expression)
    counter, pool = counted >> 32, t.children(ctx)
    if counted < 0 or (pool[record.first] != counter and pool[record.first + 1] != counter):
        return int64(-1)
    return counted


@njit_inner(RESULT1)
def _length_key(ctx, counted):
    """The key in DEAD_LENGTH_KEYS of what _whole_counter returned."""
    return ((counted & 0xFFFFFFFF) << 31 | int64(t.expressions(ctx)[counted >> 32].first)) + 1


@njit_inner(types.boolean(CTX, int64))
def _is_within_dead(ctx, counted):
    """Whether a pattern beside a counter is dead, or has been visited, with as many characters or more."""
    if counted < 0:
        return False
    most = t.expressions(ctx)[counted >> 32].third
    return map_get(ctx, t.DEAD_LENGTH_KEYS, t.DEAD_LENGTHS, _length_key(ctx, counted)) >= most


@njit_inner(RESULT1)
def _note_length(ctx, counted):
    """Note with how many characters a pattern beside a counter has been visited; 0 or FAIL."""
    if counted < 0:
        return int64(0)
    most = int64(t.expressions(ctx)[counted >> 32].third)
    return map_put(ctx, t.DEAD_LENGTH_KEYS, t.DEAD_LENGTHS, _length_key(ctx, counted), most)


@njit_inner(RESULT3)
def _visit(ctx, expression, before, _unused):
    """Put an expression on the heap that has not been visited, behind the way ``before``; 0, FAIL or LIMIT."""
    # With fewer characters left a pattern has no string that it has not with more, so it is visited with more only.
    counted = _whole_counter(ctx, expression)
    if _is_within_dead(ctx, counted):
        return int64(0)
    way = note_way(ctx, t.LIFE_HEAP, expression, int64(0), before, int64(0))
    if way == KNOWN:
        return int64(0)
    if way < 0 or push_way(ctx, t.LIFE_HEAP, _bytes_to_go(ctx, expression), way) < 0:
        return int64(FAIL)
    return int64(LIMIT) if way > _LIMIT else _note_length(ctx, counted)


@njit_inner(RESULT1)
def _follow(ctx, way):
    """Visit what the bytes lead to from the end of a way; 1 if that shows life, else 0, FAIL or LIMIT.

    Where a byte leads closer to an end the others wait: the expression goes back on the heap.
    """
    here = int64(t.life_ways(ctx)[way].reached)
    to_go = _bytes_to_go(ctx, here)
    for next_class in range(t.life_ways(ctx)[way].step, ctx[CLASSES]):
        byte = int64(t.class_bytes(ctx)[next_class])
        if not (t.first_bytes(ctx)[here, byte >> 6] >> (byte & 63)) & 1:
            continue
        successor = far_call(ctx, F_DERIVATIVE, here, byte)
        if successor < 0:
            return successor
        if successor == EMPTY:
            continue
        if _shows_life(ctx, successor):
            t.liveness(ctx)[successor] = ALIVE
            return int64(1)
        if t.liveness(ctx)[successor] == DEAD:
            continue
        count = used(ctx, t.LIFE_WAYS)
        status = _visit(ctx, successor, way, int64(0))
        if status != 0:
            return status
        if used(ctx, t.LIFE_WAYS) > count and _bytes_to_go(ctx, successor) < to_go:
            t.life_ways(ctx)[way].step = next_class + 1
            return push_way(ctx, t.LIFE_HEAP, to_go, way)
    return int64(0)


@njit_inner(types.void(CTX, int64, int64))
def _keep_verdicts(ctx, status, way):
    """Note what a search has found out: all on a way to life is alive; an exhausted search has seen only dead ones."""
    found = t.life_ways(ctx)
    if status == 1:
        while way >= 0:
            t.liveness(ctx)[found[way].reached] = ALIVE
            way = found[way].before
    for i in range(used(ctx, t.LIFE_WAYS)):
        expression = int64(found[i].reached)
        if status == 0:
            t.liveness(ctx)[expression] = DEAD
            continue
        counted = _whole_counter(ctx, expression)
        if counted >= 0:
            # It may be alive with as many characters as it was visited with.
            map_change(ctx, t.DEAD_LENGTH_KEYS, t.DEAD_LENGTHS, _length_key(ctx, counted), int64(-1))


@njit_inner(RESULT2)
def search_live(ctx, expression, _unused):
    """Whether an expression with intersections or complements inside, and not nullable, is alive; see is_live.

    Best first: what is closest to its end, as far as its parts know, goes on.  A search in the depth would get lost
    where nearly every byte leads to an expression that is new, as in the format ``regex``.
    """
    known = t.liveness(ctx)[expression]
    if known == ALIVE or known == DEAD:
        return int64(known == ALIVE)
    if _shows_life(ctx, expression):
        t.liveness(ctx)[expression] = ALIVE
        return int64(1)
    if _is_within_dead(ctx, _whole_counter(ctx, expression)):
        t.liveness(ctx)[expression] = DEAD
        return int64(0)
    set_used(ctx, t.LIFE_HEAP, 0)
    set_used(ctx, t.LIFE_WAYS, 0)
    way = int64(-1)
    status = _visit(ctx, expression, way, int64(0))
    while used(ctx, t.LIFE_HEAP) > 0 and status == 0:
        way = way_of(ctx, heap_pop(ctx, t.LIFE_HEAP))
        status = _follow(ctx, way)
    _keep_verdicts(ctx, status, way)
    return status


far_entry(F_LIVE, search_live)


@njit_inner(RESULT1)
def is_live(ctx, expression):
    """1 if the expression's language holds any string, else 0; FAIL, or LIMIT if the search grew too large."""
    records = t.expressions(ctx)
    while True:
        if expression == EMPTY:
            return int64(0)
        head = records[expression].flags
        if head & COMPLEX_FLAG == 0 or head & NULLABLE_FLAG:
            return int64(1)
        if head & 255 != CONCAT:
            return far_call(ctx, F_LIVE, expression, 0)
        # A sequence is alive if its parts are; searching it as a whole would walk through all of them.
        first = records[expression].first
        head = records[first].flags
        if head & COMPLEX_FLAG and not head & NULLABLE_FLAG:
            live = far_call(ctx, F_LIVE, first, 0)
            if live != 1:
                return live
        expression = records[expression].second
