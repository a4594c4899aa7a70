"""Divergence: the bytes behind which two lexer states may differ, so that no step need be taken with others.

Free text in which ``<call>`` may begin, and that text behind ``<``: ``c`` tells the two apart, for it is the one byte
with which the expression of the second begins that the first does not have.  Behind any other byte they are one state.
Which bytes these are is seen from the expressions.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import CTX, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_TELLING_BYTES, far_entry
from constrain.kernels.language import int64, types

# Unions and intersections of more parts are not compared part by part.
_MOST_PARTS = 1024
# In place of a part of an expression.
_NONE = -1

BYTE_SET = 16
"""A set of bytes is kept as so many numbers of 16 bits."""


@njit_inner(types.void(CTX, int64, int64))
def _add_first_bytes(ctx, expression, place):
    """Add the bytes that an expression may begin with to the set at a place of WORK_STACK."""
    kept = t.work_stack(ctx)
    for i in range(BYTE_SET):
        kept[place + i] |= (e.first_bytes(ctx, expression, i >> 2) >> (16 * (i & 3))) & 0xFFFF


@njit_inner(int64(CTX, int64, int64))
def _count_parts(ctx, kind, expression):
    """How many parts a union or an intersection has; an expression of another kind is its only part."""
    return int64(t.expressions(ctx)[expression].second) if t.expressions(ctx)[expression].kind == kind else int64(1)


@njit_inner(int64(CTX, int64, int64, int64))
def _part(ctx, kind, expression, number):
    """One of these parts.  They are sorted."""
    record = t.expressions(ctx)[expression]
    return int64(t.children(ctx)[record.first + number]) if record.kind == kind else expression


@njit_inner(types.boolean(CTX, int64, int64, int64))
def _has_part(ctx, kind, expression, part):
    """Whether an expression has a part."""
    low, high = int64(0), _count_parts(ctx, kind, expression)
    while low < high:
        middle = (low + high) >> 1
        found = _part(ctx, kind, expression, middle)
        if found == part:
            return True
        if found < part:
            low = middle + 1
        else:
            high = middle
    return False


@njit_inner(int64(CTX, int64, int64, int64))
def _own_part(ctx, one, other, partner):
    """A part of a union that another one does not have, best one that ends like ``partner``; _NONE if it has all."""
    nodes, found = t.expressions(ctx), int64(_NONE)
    for i in range(_count_parts(ctx, int64(e.UNION), one)):
        part = _part(ctx, int64(e.UNION), one, i)
        if _has_part(ctx, int64(e.UNION), other, part):
            continue
        found = part
        if partner != _NONE and nodes[part].kind == e.CONCAT and nodes[partner].kind == e.CONCAT:
            if nodes[part].second == nodes[partner].second:
                break
    return found


@njit_inner(types.void(CTX, int64, int64, int64, int64))
def _add_own_parts(ctx, one, other, but, place):
    """Add the first bytes of the parts of a union that another one does not have, one aside."""
    for i in range(_count_parts(ctx, int64(e.UNION), one)):
        part = _part(ctx, int64(e.UNION), one, i)
        if part != but and not _has_part(ctx, int64(e.UNION), other, part):
            _add_first_bytes(ctx, part, place)


@njit_inner(int64(CTX, int64, int64, types.boolean))
def _only_part(ctx, one, other, is_complement):
    """The one part of an intersection that another one does not have, of the complements or of the other parts.

    _NONE if there is none, the intersection itself if there are more.
    """
    found = int64(_NONE)
    for i in range(_count_parts(ctx, int64(e.INTERSECT), one)):
        part = _part(ctx, int64(e.INTERSECT), one, i)
        if (t.expressions(ctx)[part].kind == e.NOT) != is_complement or _has_part(ctx, int64(e.INTERSECT), other, part):
            continue
        if found != _NONE:
            return one
        found = part
    return found


@njit_inner(types.void(CTX, int64, int64, int64))
def _add_telling_bytes(ctx, one, other, place):
    """Add to the set at ``place`` the bytes behind which two expressions may differ.

    Behind a byte with which neither begins, nothing is left of both.  What they have in common is left out, and of the
    rest one part on each side is looked into; of intersections two, which both have to be the same.
    """
    nodes = t.expressions(ctx)
    kept_one = kept_other = int64(_NONE)
    while one != other or kept_one != _NONE:
        if one == other:
            one, other = kept_one, kept_other
            kept_one = int64(_NONE)
            continue
        kind = int64(nodes[one].kind) if nodes[one].kind == nodes[other].kind else int64(e.UNION)
        if _count_parts(ctx, kind, one) + _count_parts(ctx, kind, other) > _MOST_PARTS:
            _add_first_bytes(ctx, one, place)
            _add_first_bytes(ctx, other, place)
            one = other
            continue
        if kind == e.NOT:
            one, other = int64(nodes[one].first), int64(nodes[other].first)
            continue
        if kind == e.CONCAT and nodes[one].second == nodes[other].second:
            tail = int64(nodes[one].second)
            one, other = int64(nodes[one].first), int64(nodes[other].first)
            if (nodes[one].flags ^ nodes[other].flags) & e.NULLABLE_FLAG:
                _add_first_bytes(ctx, tail, place)
            continue
        if kind == e.INTERSECT:
            without, without_other = _only_part(ctx, one, other, True), _only_part(ctx, other, one, True)
            part, partner = _only_part(ctx, one, other, False), _only_part(ctx, other, one, False)
            is_paired = (part == _NONE) == (partner == _NONE) and (without == _NONE) == (without_other == _NONE)
            is_paired = is_paired and one not in (part, without) and other not in (partner, without_other)
            has_both = part != _NONE and without != _NONE
            if not is_paired or (has_both and kept_one != _NONE):
                _add_first_bytes(ctx, one, place)
                _add_first_bytes(ctx, other, place)
                one = other
                continue
            if has_both:
                kept_one, kept_other = without, without_other
            one, other = (part, partner) if part != _NONE else (without, without_other)
            continue
        part = _own_part(ctx, one, other, int64(_NONE))
        partner = _own_part(ctx, other, one, part)
        part = _own_part(ctx, one, other, partner)
        if part == _NONE or partner == _NONE or (part == one and partner == other):
            part, partner = int64(_NONE), int64(_NONE)
        _add_own_parts(ctx, one, other, part, place)
        _add_own_parts(ctx, other, one, partner, place)
        one, other = part, partner


@njit_inner(RESULT2)
def _find_telling_bytes(ctx, state_and_base, place):
    """Write to ``WORK_STACK[place:][:BYTE_SET]`` the set of bytes behind which two lexer states may differ; returns 0.

    Bit ``b % 16`` of number ``b // 16`` stands for byte ``b``.
    """
    lex, pool, kept = t.lexer_states(ctx), t.lexer_members(ctx), t.work_stack(ctx)
    state, base = state_and_base >> 32, state_and_base & 0xFFFFFFFF
    here, there, count = lex[state].offset, lex[base].offset, lex[state].count
    same = count == lex[base].count
    for i in range(0, 2 * count if same else 0, 2):
        same = same and pool[here + i] == pool[there + i]
    for i in range(BYTE_SET):
        kept[place + i] = 0 if same else -1
    for i in range(1, 2 * count if same else 0, 2):
        _add_telling_bytes(ctx, int64(pool[here + i]), int64(pool[there + i]), place)
    return int64(0)


far_entry(F_TELLING_BYTES, _find_telling_bytes)
