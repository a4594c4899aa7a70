"""Absorption: ``x* | y x*`` is ``x*`` where every string of ``y`` is a sequence of ``x``.

Behind a pattern that may match anywhere comes any text.  Without absorption the expression would still tell how far the
pattern has matched once more, and the complement of the whole would be dead without looking so.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.expressions import is_nullable, make_union
from constrain.engine.storage.access import push_pair, set_used, used
from constrain.engine.storage.header import CLASSES, CTX, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_DERIVATIVE, far_call
from constrain.engine.storage.schemas import WORK_STACK, class_bytes, expressions, work_stack
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types

# So many pairs of derivatives are compared: a character in all its spellings has a dozen.
_MOST_PAIRS = 64


@njit_inner(types.boolean(CTX, int64))
def is_star(ctx, expression):
    """Whether an expression is ``x*``, and ``x`` has finitely many strings and says so without a search."""
    record = expressions(ctx)[expression]
    if record.kind != e.REPEAT or record.second > 0 or record.third >= 0:
        return False
    return not expressions(ctx)[record.first].flags & (e.LOOP_FLAG | e.COMPLEX_FLAG)


@njit_inner(RESULT2)
def _is_within(ctx, part, item):
    """1 if all strings of an expression are sequences of ``item``'s; 0 if not, or not soon found; FAIL or LIMIT.

    Both have finitely many strings.  What is left of ``part`` is held against what is left of the ``item`` that has
    begun, each pair once; the pairs are kept on the work stack.  The star itself is not derived: making its derivatives
    is what asks here.
    """
    if ctx[CLASSES] == 0:
        return int64(0)  # the lexemes are still being made
    bottom = used(ctx, WORK_STACK)
    if not push_pair(ctx, WORK_STACK, part, e.EPSILON):
        return int64(FAIL)
    result = int64(1)
    at = bottom
    while at < used(ctx, WORK_STACK) and result == 1:
        inner, begun = work_stack(ctx)[at], work_stack(ctx)[at + 1]
        at += 2
        if is_nullable(ctx, inner) and not is_nullable(ctx, begun):
            result = int64(0)
        for k in range(ctx[CLASSES]):
            byte = class_bytes(ctx)[k]
            if result != 1 or not (e.first_bytes(ctx, int64(inner), byte >> 6) >> (byte & 63)) & 1:
                continue
            inner_left = far_call(ctx, F_DERIVATIVE, inner, byte)
            if inner_left == e.EMPTY:
                continue
            begun_left = far_call(ctx, F_DERIVATIVE, begun, byte)
            if begun_left >= 0 and is_nullable(ctx, begun):
                # The next one may begin.
                next_left = far_call(ctx, F_DERIVATIVE, item, byte)
                begun_left = make_union(ctx, begun_left, next_left) if next_left >= 0 else next_left
            if inner_left < 0 or begun_left < 0:
                return min(inner_left, begun_left)
            if begun_left == e.EMPTY:
                result = int64(0)
            known = False
            top = used(ctx, WORK_STACK)
            for i in range(bottom, top, 2):
                known = known or (work_stack(ctx)[i] == inner_left and work_stack(ctx)[i + 1] == begun_left)
            if not known:
                if top - bottom >= 2 * _MOST_PAIRS:
                    result = int64(0)
                elif not push_pair(ctx, WORK_STACK, inner_left, begun_left):
                    return int64(FAIL)
    set_used(ctx, WORK_STACK, bottom)
    return result


@njit_inner(RESULT2)
def is_absorbed(ctx, part, star):
    """1 if an expression is a sequence that ends in ``star`` and says nothing more; 0 if not, or not clear; FAIL.

    What comes before must be sequences of what ``star`` repeats: repetitions of the same, or parts of it.
    """
    records = expressions(ctx)
    end = part
    while records[end].kind == e.CONCAT:
        end = records[end].second
    if end != star or part == star:
        return int64(0)
    item = records[star].first
    while part != star:
        first = records[part].first
        part = records[part].second
        while records[first].kind == e.REPEAT:
            first = records[first].first
        if first == item:
            continue
        if records[first].flags & (e.LOOP_FLAG | e.COMPLEX_FLAG):
            return int64(0)
        within = _is_within(ctx, first, item)
        if within != 1:
            return within
    return int64(1)


@njit_inner(RESULT2)
def absorb(ctx, base, count):
    """Drop from the ``count`` parts of a union at ``WORK_STACK[base]`` those that a star among them absorbs.

    Returns how many are left; FAIL or LIMIT.
    """
    tmp = work_stack(ctx)
    for i in range(count):
        star = tmp[base + i]
        if not is_star(ctx, star):
            continue
        n = int64(0)
        for j in range(count):
            absorbed = is_absorbed(ctx, tmp[base + j], star)
            if absorbed < 0:
                return absorbed
            if not absorbed:
                tmp[base + n] = tmp[base + j]
                n += 1
        return n
    return count
