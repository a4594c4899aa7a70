"""Counters of characters beside a pattern: ``maxLength``."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import COMPLEX_FLAG, CONCAT, COUNTS_FLAG, FITS_FLAG, INTERSECT, NULLABLE_FLAG
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push, used
from constrain.engine.storage.header import RESULT1
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_SET_OPERATION, far_call
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64

# The rest of a character has no more parts.
_MOST_PARTS = 8


@njit_inner(RESULT1)
def counting_part(ctx, node):
    """Of an intersection: ``counter << 32 | which part`` if it has a counter that may be left out; else -1.

    The counter may stand behind the rest of a character.  It may be left out beside what the others hold, if they have
    no more characters than it counts.
    """
    nodes = t.expressions(ctx)
    first, count = nodes[node].first, nodes[node].second
    for i in range(count):
        counter = t.children(ctx)[first + i]
        parts = 0
        while nodes[counter].kind == CONCAT and parts < _MOST_PARTS:
            counter = nodes[counter].second
            parts += 1
        if not nodes[counter].flags & COUNTS_FLAG:
            continue
        if nodes[counter].third < 0:
            return int64(-1)
        low = nodes[counter].second
        if low == 1 and parts == 0:
            # Another part has no string without a character.
            for j in range(count):
                if j != i and not nodes[t.children(ctx)[first + j]].flags & NULLABLE_FLAG:
                    low = int64(0)
        return int64(-1) if low > 0 else counter << 32 | i
    return int64(-1)


@njit_inner(RESULT1)
def character_counter(ctx, node):
    """Of an intersection with a counter of characters that may be left out: ``counter << 32 | the other part``; or -1.

    See expressions.FITS_FLAG.  There is one other part, which is no intersection or complement.
    """
    nodes = t.expressions(ctx)
    if not nodes[node].flags & FITS_FLAG or nodes[node].second != 2:
        return int64(-1)
    found = counting_part(ctx, node)
    if found < 0:
        return found
    other = t.children(ctx)[nodes[node].first + 1 - (found & 1)]
    return int64(-1) if nodes[other].flags & COMPLEX_FLAG else found >> 32 << 32 | other


@njit_inner(RESULT1)
def counter_and_rest(ctx, node):
    """Of an intersection with a counter of characters that may be left out: ``counter << 32 | all other parts``.

    -1 if it has none; FAIL or LIMIT.
    """
    nodes = t.expressions(ctx)
    if nodes[node].kind != INTERSECT or not nodes[node].flags & FITS_FLAG:
        return int64(-1)
    found = counting_part(ctx, node)
    if found < 0:
        return found
    base = used(ctx, t.WORK_STACK)
    for i in range(nodes[node].second):
        if i != found & 0xFFFFFFFF and not push(ctx, t.WORK_STACK, t.children(ctx)[nodes[node].first + i]):
            return int64(FAIL)
    rest = far_call(ctx, F_SET_OPERATION, int64(INTERSECT), base)
    return rest if rest < 0 else found >> 32 << 32 | rest
