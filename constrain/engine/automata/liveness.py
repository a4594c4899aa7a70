"""Liveness: whether an expression has any string.

Without intersections and complements it has one, unless it is EMPTY.  With them it has to be searched for.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.character_counters import counter_and_rest, counting_part
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


@njit_inner(RESULT1)
def _life_length(ctx, expression):
    """Of an expression, not EMPTY, that is known to be alive: the bytes of a string of it, LONG if unknown; else -1."""
    flags = t.expressions(ctx)[expression].flags
    if flags & e.NULLABLE_FLAG:
        return int64(0)
    if not flags & e.COMPLEX_FLAG:
        return int64(t.shortest_lengths(ctx)[expression])
    return int64(t.life_lengths(ctx)[expression]) if t.liveness(ctx)[expression] == e.ALIVE else int64(-1)


@njit_inner(RESULT1)
def _length_beside(ctx, counted):
    """As _life_length, of an intersection that counts, by what stands beside the counter (counter_and_rest)."""
    rest = counted & 0xFFFFFFFF
    if counted < 0 or rest == e.EMPTY:
        return int64(-1)
    # No string has more characters than bytes.
    length = _life_length(ctx, rest)
    return length if length < LONG and length <= t.expressions(ctx)[counted >> 32].third else int64(-1)


@njit_inner(types.void(CTX, int64, int64))
def _note_life(ctx, expression, length):
    """Note that an expression is alive, with a string of so many bytes."""
    t.liveness(ctx)[expression] = e.ALIVE
    t.life_lengths(ctx)[expression] = min(length, int64(LONG))


@njit_inner(RESULT1)
def _bytes_to_go(ctx, expression):
    """An estimate of how many bytes the shortest string of an expression has, for the order of a search.

    For an intersection it is the sum of what its parts need at least.  The largest of these would be a bound, but a
    byte that brings one part closer to its end, and no other, would not count.
    """
    shortest = t.shortest_lengths(ctx)
    record = t.expressions(ctx)[expression]
    if record.kind != e.INTERSECT:
        return int64(shortest[expression])
    length = int64(0)
    for i in range(record.second):
        length += shortest[t.children(ctx)[record.first + i]]
    return min(length, int64(_MOST_BYTES))


@njit_inner(RESULT2)
def _whole_counter(ctx, expression, counted):
    """What counter_and_rest says of an expression if no character has begun, else -1."""
    if counted >= 0:
        record = t.expressions(ctx)[expression]
        for i in range(record.second):
            if t.children(ctx)[record.first + i] == counted >> 32:
                return counted
    return int64(-1)


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
def _visit(ctx, expression, counted, before):
    """Put an expression on the heap that has not been visited, behind the way ``before``; 0, FAIL or LIMIT.

    ``counted`` is what counter_and_rest says of it.
    """
    # With fewer characters left a pattern has no string that it has not with more, so it is visited with more only.
    counted = _whole_counter(ctx, expression, counted)
    if _is_within_dead(ctx, counted):
        return int64(0)
    # What stands beside the counter has the place of a cost.
    rest = counted & 0xFFFFFFFF if counted >= 0 else int64(e.EMPTY)
    way = note_way(ctx, t.LIFE_HEAP, expression, rest, before, int64(0))
    if way == KNOWN:
        return int64(0)
    if way < 0 or push_way(ctx, t.LIFE_HEAP, _bytes_to_go(ctx, expression), way) < 0:
        return int64(FAIL)
    return int64(LIMIT) if way > _LIMIT else _note_length(ctx, counted)


@njit_inner(RESULT1)
def _follow(ctx, way):
    """Visit what the bytes lead to from the end of a way; 1 if that shows life, else 0, FAIL or LIMIT.

    Where a byte leads closer to an end the others wait: the expression goes back on the heap.  Where life is seen, the
    step becomes the length of a string from the end of the way on.
    """
    here = int64(t.life_ways(ctx)[way].reached)
    to_go = _bytes_to_go(ctx, here)
    for next_class in range(t.life_ways(ctx)[way].step, ctx[CLASSES]):
        byte = int64(t.class_bytes(ctx)[next_class])
        if not (e.first_bytes(ctx, here, byte >> 6) >> (byte & 63)) & 1:
            continue
        successor = far_call(ctx, F_DERIVATIVE, here, byte)
        if successor < 0:
            return successor
        if successor == e.EMPTY:
            continue
        length, counted = _life_length(ctx, successor), int64(-1)
        if length < 0:
            counted = counter_and_rest(ctx, successor)
            if counted < -1:
                return counted
            length = _length_beside(ctx, counted)
        if length >= 0:
            _note_life(ctx, successor, length)
            t.life_ways(ctx)[way].step = length + 1
            return int64(1)
        if t.liveness(ctx)[successor] == e.DEAD:
            continue
        count = used(ctx, t.LIFE_WAYS)
        status = _visit(ctx, successor, counted, way)
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
        length = int64(found[way].step)
        while way >= 0:
            _note_life(ctx, int64(found[way].reached), length)
            length += 1
            way = found[way].before
    for i in range(used(ctx, t.LIFE_WAYS)):
        expression = int64(found[i].reached)
        if status == 0:
            t.liveness(ctx)[expression] = e.DEAD
            continue
        if found[i].cost != e.EMPTY:
            counted = counting_part(ctx, expression) >> 32 << 32 | int64(found[i].cost)
            # It may be alive with as many characters as it was visited with.
            map_change(ctx, t.DEAD_LENGTH_KEYS, t.DEAD_LENGTHS, _length_key(ctx, counted), int64(-1))


@njit_inner(RESULT1)
def is_live(ctx, expression):
    """1 if the expression's language holds any string, else 0; FAIL, or LIMIT if the search grew too large."""
    records = t.expressions(ctx)
    while True:
        if expression == e.EMPTY:
            return int64(0)
        head = records[expression].flags
        if head & e.COMPLEX_FLAG == 0 or head & e.NULLABLE_FLAG:
            return int64(1)
        if head & 255 != e.CONCAT:
            return far_call(ctx, F_LIVE, expression, 0)
        # A sequence is alive if its parts are; searching it as a whole would walk through all of them.
        first = records[expression].first
        head = records[first].flags
        if head & e.COMPLEX_FLAG and not head & e.NULLABLE_FLAG:
            live = far_call(ctx, F_LIVE, first, 0)
            if live != 1:
                return live
        expression = records[expression].second


@njit_inner(RESULT1)
def _live_part(ctx, union):
    """Whether a part of a union is alive; 1, 0, FAIL, or LIMIT if that is not clear."""
    record = t.expressions(ctx)[union]
    status = int64(0)
    for i in range(record.second):
        live = is_live(ctx, int64(t.children(ctx)[record.first + i]))
        if live == 1:
            _note_life(ctx, union, int64(LONG))
        if live == 1 or live == FAIL:
            return live
        if live < 0:
            status = live
    return status


@njit_inner(RESULT2)
def _live_beside_counter(ctx, expression, counted):
    """Whether an intersection is alive: 0 or 1 if that is clear without counting; else -1, or FAIL.

    What stands beside the counter is the same for each count, and is searched once for all of them.
    """
    if counted < 0:
        return int64(-1)
    live = is_live(ctx, counted & 0xFFFFFFFF)
    if live != 1:
        return int64(-1) if live == LIMIT else live
    length = _length_beside(ctx, counted)
    if length < 0:
        return int64(-1)
    _note_life(ctx, expression, length)
    return int64(1)


@njit_inner(RESULT2)
def _search(ctx, expression, counted):
    """Search for a string of an expression; 1 or 0, FAIL or LIMIT."""
    set_used(ctx, t.LIFE_HEAP, 0)
    set_used(ctx, t.LIFE_WAYS, 0)
    way = int64(-1)
    status = _visit(ctx, expression, counted, way)
    while used(ctx, t.LIFE_HEAP) > 0 and status == 0:
        way = way_of(heap_pop(ctx, t.LIFE_HEAP))
        status = _follow(ctx, way)
    _keep_verdicts(ctx, status, way)
    return status


@njit_inner(RESULT2)
def search_live(ctx, expression, _unused):
    """Whether an expression with intersections or complements inside, and not nullable, is alive; see is_live.

    Best first: what is closest to its end, as far as its parts know, goes on.  A search in the depth would get lost
    where nearly every byte leads to an expression that is new, as in the format ``regex``.
    """
    known = t.liveness(ctx)[expression]
    if known == e.ALIVE or known == e.DEAD:
        return int64(known == e.ALIVE)
    counted = counter_and_rest(ctx, expression)
    if counted < -1:
        return counted
    length = _length_beside(ctx, counted)
    if length >= 0:
        _note_life(ctx, expression, length)
        return int64(1)
    if _is_within_dead(ctx, _whole_counter(ctx, expression, counted)):
        t.liveness(ctx)[expression] = e.DEAD
        return int64(0)
    if t.expressions(ctx)[expression].kind == e.UNION:
        status = _live_part(ctx, expression)
    else:
        status = _live_beside_counter(ctx, expression, counted)
        if status == -1:
            return _search(ctx, expression, counted)
    if status == 0:
        t.liveness(ctx)[expression] = e.DEAD
    return status


far_entry(F_LIVE, search_live)
