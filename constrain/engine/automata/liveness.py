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
    UNKNOWN,
    VISITED,
)
from constrain.engine.automata.summaries import LONG
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push, push_pair, set_used, u8, used
from constrain.engine.storage.hashing import map_change, map_get, map_put
from constrain.engine.storage.header import CLASSES, CTX, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_DERIVATIVE, F_LIVE, far_call, far_entry
from constrain.engine.storage.statuses import FAIL, LIMIT
from constrain.kernels.language import int64, types

_LIMIT = 200_000
_LONG_PATH = 64


@njit_inner(types.void(CTX, int64, int64, int64, int64))
def note_verdicts(ctx, slot, bottom, path, status):
    """Note what a search has found out in LIVENESS or LEXER_LIVES, and empty its stacks down to where it began.

    ``WORK_STACK[bottom:]`` was visited, ``LIVENESS_STACK[path:]`` is the path that it ended with.  If the status is 1
    all on that path is alive.  Only an exhausted search, 0, proves that what it visited is dead.
    """
    live = u8(ctx, slot)
    verdict = DEAD if status == 0 else UNKNOWN
    for i in range(bottom, used(ctx, t.WORK_STACK)):
        if live[t.work_stack(ctx)[i]] == VISITED:
            live[t.work_stack(ctx)[i]] = verdict
    if status == 1:
        for i in range(path, used(ctx, t.LIVENESS_STACK), 2):
            live[t.liveness_stack(ctx)[i]] = ALIVE
    set_used(ctx, t.WORK_STACK, bottom)
    set_used(ctx, t.LIVENESS_STACK, path)


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
def _pattern_key(ctx, expression):
    """The key in DEAD_LENGTH_KEYS of a pattern beside a counter of characters, none of which has begun; else 0."""
    records, pool = t.expressions(ctx), t.children(ctx)
    if records[expression].flags & 255 != INTERSECT:
        return int64(0)
    counted = character_counter(ctx, expression)
    counter, pattern = counted >> 32, counted & 0xFFFFFFFF
    first = records[expression].first
    if counted < 0 or (pool[first] != counter and pool[first + 1] != counter):
        return int64(0)
    return (pattern << 31 | int64(records[counter].first)) + 1


@njit_inner(types.boolean(CTX, int64))
def _is_within_dead(ctx, expression):
    """Whether a pattern beside a counter is dead, or has been visited, with as many characters or more."""
    key = _pattern_key(ctx, expression)
    if key == 0:
        return False
    most = t.expressions(ctx)[character_counter(ctx, expression) >> 32].third
    return map_get(ctx, t.DEAD_LENGTH_KEYS, t.DEAD_LENGTHS, key) >= most


@njit_inner(RESULT1)
def _note_length(ctx, expression):
    """Note with how many characters a pattern beside a counter has been visited; 0 or FAIL."""
    key = _pattern_key(ctx, expression)
    if key == 0:
        return int64(0)
    most = t.expressions(ctx)[character_counter(ctx, expression) >> 32].third
    return map_put(ctx, t.DEAD_LENGTH_KEYS, t.DEAD_LENGTHS, key, int64(most))


@njit_inner(types.void(CTX, int64))
def _forget_lengths(ctx, bottom):
    """Forget with how many characters the expressions at ``WORK_STACK[bottom:]`` were visited: they may be alive."""
    for i in range(bottom, used(ctx, t.WORK_STACK)):
        key = _pattern_key(ctx, t.work_stack(ctx)[i])
        if key != 0:
            map_change(ctx, t.DEAD_LENGTH_KEYS, t.DEAD_LENGTHS, key, int64(-1))


@njit_inner(RESULT2)
def search_live(ctx, expression, _unused):
    """Whether an expression with intersections or complements inside, and not nullable, is alive; see is_live."""
    known = t.liveness(ctx)[expression]
    if known == ALIVE or known == DEAD:
        return int64(known == ALIVE)
    if _shows_life(ctx, expression):
        t.liveness(ctx)[expression] = ALIVE
        return int64(1)
    if _is_within_dead(ctx, expression):
        t.liveness(ctx)[expression] = DEAD
        return int64(0)
    # With fewer characters left a pattern has no string that it has not with more, so it is visited with more only.
    # Depth first for a nullable derivative.  On a long path it goes towards shorter strings first: with a counter of
    # thousands the way to its end would be long.  The visited expressions are kept on the work stack.  The path, as
    # (expression, next class), is on the liveness stack; a class is counted from ``classes`` on when any successor will
    # do.
    bottom = used(ctx, t.WORK_STACK)
    path = used(ctx, t.LIVENESS_STACK)
    classes = ctx[CLASSES]
    if not push(ctx, t.WORK_STACK, expression) or not push_pair(ctx, t.LIVENESS_STACK, expression, classes):
        return int64(FAIL)
    t.liveness(ctx)[expression] = VISITED
    status = _note_length(ctx, expression)
    while used(ctx, t.LIVENESS_STACK) > path and status == 0:
        top = used(ctx, t.LIVENESS_STACK)
        stack = t.liveness_stack(ctx)
        here = stack[top - 2]
        next_class = stack[top - 1]
        if next_class == 2 * classes:
            set_used(ctx, t.LIVENESS_STACK, top - 2)
            continue
        stack[top - 1] = next_class + 1
        closer = next_class < classes
        byte = t.class_bytes(ctx)[next_class if closer else next_class - classes]
        if not (t.first_bytes(ctx)[here, byte >> 6] >> (byte & 63)) & 1:
            continue
        successor = far_call(ctx, F_DERIVATIVE, here, byte)
        if successor < 0:
            status = successor
            break
        if successor == EMPTY:
            continue
        if _shows_life(ctx, successor):
            status = int64(1)
        elif t.liveness(ctx)[successor] == UNKNOWN:
            if closer and t.shortest_lengths(ctx)[successor] >= t.shortest_lengths(ctx)[here]:
                continue
            if _is_within_dead(ctx, successor):
                continue
            first_class = classes if top - path < 2 * _LONG_PATH else int64(0)
            if used(ctx, t.WORK_STACK) - bottom > _LIMIT:
                status = int64(LIMIT)
            elif push(ctx, t.WORK_STACK, successor) and push_pair(ctx, t.LIVENESS_STACK, successor, first_class):
                t.liveness(ctx)[successor] = VISITED
                status = _note_length(ctx, successor)
            else:
                status = int64(FAIL)
    if status != 0:
        _forget_lengths(ctx, bottom)
    note_verdicts(ctx, int64(t.LIVENESS), bottom, path, status)
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
