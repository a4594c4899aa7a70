"""Derivatives: what may follow a byte in an expression (Brzozowski, "Derivatives of regular expressions", 1964).

What they buy over a compiled automaton: bounded repetition is a counter in an expression and not a thousand copies of a
state, intersection and complement cost nothing to build, and only what a given input reaches is ever made.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.expressions import (
    intern_expression,
    is_nullable,
    make_concat,
    make_not,
    make_repeat,
    make_union,
)
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push, set_used, used
from constrain.engine.storage.hashing import map_get, map_put
from constrain.engine.storage.header import CTX, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_DERIVATIVE, F_QUOTATION_DERIVATIVE, F_SET_OPERATION, far_call, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types


@njit_inner(types.boolean(CTX, int64, int64))
def _stays(ctx, expression, byte):
    """Whether a sequence begins with any number of bytes of a set, of which this is one, as white space does."""
    records = t.expressions(ctx)
    head, tail = records[expression].first, records[expression].second
    if records[head].kind != e.REPEAT or records[head].second > 0 or records[head].third >= 0:
        return False
    part, word = records[head].first, byte >> 6
    if records[part].kind != e.SET:
        return False
    # What follows must not begin so: then there would be two ways.
    bits = t.byte_sets(ctx)[records[part].first, word] & ~e.first_bytes(ctx, int64(tail), word)
    return (bits >> (byte & 63)) & 1 != 0


@njit_inner(RESULT2)
def known_derivative(ctx, expression, byte):
    """The derivative of a leaf, or of any expression if it was computed before; else -1."""
    records = t.expressions(ctx)
    kind = records[expression].kind
    if kind == e.LITERAL:
        offset = records[expression].first
        if t.literal_bytes(ctx)[offset] != byte:
            return int64(e.EMPTY)
        length = records[expression].second
        if length == 1:
            return int64(e.EPSILON)
        return intern_expression(ctx, e.LITERAL, offset + 1, length - 1, 0)
    if kind == e.SET:
        word = t.byte_sets(ctx)[records[expression].first, byte >> 6]
        return (word >> (byte & 63)) & 1  # EPSILON is 1 and EMPTY is 0
    if kind <= e.EPSILON:
        return int64(e.EMPTY)
    if kind == e.ALL:
        return int64(e.ALL)
    # Most bytes cannot begin most expressions; saying so needs no memo.
    if not (e.first_bytes(ctx, expression, byte >> 6) >> (byte & 63)) & 1:
        return int64(e.EMPTY)
    if kind == e.QUOTATION:
        return far_call(ctx, F_QUOTATION_DERIVATIVE, expression, byte)
    if kind == e.CONCAT and _stays(ctx, expression, byte):
        return expression
    return map_get(ctx, t.DERIVATIVE_KEYS, t.DERIVATIVE_VALUES, (expression << 8 | byte) + 1)


@njit_inner(RESULT2)
def derivative(ctx, expression, byte):
    """What may follow ``byte`` in ``expression``: { w : byte w in L(expression) }; an expression id, or FAIL.

    Post-order over the parts of the expression with the work stack, memoised per (expression, byte), so
    that neither nesting nor sharing of subexpressions can make it recurse deeply or run long.  All parts of a
    union that are missing go on the stack together: looked for one by one, they would cost the square of their number.
    """
    result = known_derivative(ctx, expression, byte)
    if result != -1:
        return result
    bottom = used(ctx, t.WORK_STACK)
    if not push(ctx, t.WORK_STACK, expression):
        return int64(FAIL)
    while used(ctx, t.WORK_STACK) > bottom:
        top = used(ctx, t.WORK_STACK)
        expression = t.work_stack(ctx)[top - 1]
        result = known_derivative(ctx, expression, byte)
        if result != -1:
            # Another part on the stack had it as a part, too.
            if result < -1:
                return result
            set_used(ctx, t.WORK_STACK, top - 1)
            continue
        records = t.expressions(ctx)
        kind = records[expression].kind
        a, b, c = records[expression].first, records[expression].second, records[expression].third
        missing = int64(-1)
        if kind == e.UNION or kind == e.INTERSECT:
            dead = False
            for i in range(b):
                child = t.children(ctx)[a + i]
                part = known_derivative(ctx, child, byte)
                if part < -1:
                    return part
                if part == -1:
                    if missing == -1:
                        set_used(ctx, t.WORK_STACK, top)
                    elif not push(ctx, t.WORK_STACK, missing):
                        return int64(FAIL)
                    missing = child
                    if kind == e.INTERSECT:
                        # The next parts need not be known if this one is dead.
                        break
                elif part == e.EMPTY and kind == e.INTERSECT:
                    dead = True
                    break
                elif missing == -1 and not push(ctx, t.WORK_STACK, part):
                    return int64(FAIL)
            if dead:
                set_used(ctx, t.WORK_STACK, top)
                result = int64(e.EMPTY)
            elif missing == -1:
                result = far_call(ctx, F_SET_OPERATION, int64(records[expression].flags & (e.FITS_FLAG | 255)), top)
        else:
            part = known_derivative(ctx, a, byte)
            if part < -1:
                return part
            if part == -1:
                missing = a
            elif kind == e.NOT:
                result = make_not(ctx, part)
            elif kind == e.REPEAT:
                if part == e.EMPTY:
                    result = int64(e.EMPTY)
                else:
                    counts = int64(records[expression].flags & e.COUNTS_FLAG)
                    rest = make_repeat(ctx, a, max(b - 1, 0), c - 1 if c > 0 else c, counts)
                    if rest < 0:
                        return rest
                    result = make_concat(ctx, part, rest)
            else:
                result = make_concat(ctx, part, b)
                if result >= 0 and is_nullable(ctx, a):
                    part = known_derivative(ctx, b, byte)
                    if part < -1:
                        return part
                    if part == -1:
                        missing = b
                    else:
                        result = make_union(ctx, result, part)
        if missing != -1:
            if not push(ctx, t.WORK_STACK, missing):
                return int64(FAIL)
            continue
        if result < 0:
            return result
        if map_put(ctx, t.DERIVATIVE_KEYS, t.DERIVATIVE_VALUES, (expression << 8 | byte) + 1, result) < 0:
            return int64(FAIL)
        set_used(ctx, t.WORK_STACK, top - 1)
    return result


far_entry(F_DERIVATIVE, derivative)
