"""Divergence: the trie nodes at which two lexer states differ, looked for only along bytes that can tell them apart.

Free text in which ``<call>`` may begin, and that text behind ``<``: ``c`` tells the two apart, for it is the one byte
with which the expression of the second begins that the first does not have.  Behind any other byte they are one state.
Which bytes these are is seen from the expressions, so no step is taken with the others.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.masks.lexer_masks import walk, with_same_bytes
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push_pair, room, set_used, take, used
from constrain.engine.storage.header import CTX, LONGEST, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_DIVERGENCE, F_LEXER_STEP, far_call, far_entry
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.language import int64, types

GONE, OTHER, OWN = -1, -2, 0
"""How two states differ at a node: the first goes no further; its tokens below were found; its boundary was found."""
# States that are apart at more trie nodes are as quickly looked at by themselves.
_MOST_NODES = 512
# Unions and intersections of more parts are not compared part by part.
_MOST_PARTS = 1024
# In place of a part of an expression.
_NONE = -1
# A set of bytes is kept as so many numbers of 16 bits.
_SET = 16


@njit_inner(types.void(CTX, int64, int64))
def _add_first_bytes(ctx, expression, place):
    """Add the bytes that an expression may begin with to the set at a place of WORK_STACK."""
    begins, kept = t.first_bytes(ctx), t.work_stack(ctx)
    for i in range(_SET):
        kept[place + i] |= (begins[expression, i >> 2] >> (16 * (i & 3))) & 0xFFFF


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


@njit_inner(types.void(CTX, int64, int64, int64))
def _find_telling_bytes(ctx, state, base, place):
    """Write to ``WORK_STACK[place:]`` the set of bytes behind which two lexer states may differ."""
    lex, pool, kept = t.lexer_states(ctx), t.lexer_members(ctx), t.work_stack(ctx)
    here, there, count = lex[state].offset, lex[base].offset, lex[state].count
    same = count == lex[base].count
    for i in range(0, 2 * count if same else 0, 2):
        same = same and pool[here + i] == pool[there + i]
    for i in range(_SET):
        kept[place + i] = 0 if same else -1
    for i in range(1, 2 * count if same else 0, 2):
        _add_telling_bytes(ctx, int64(pool[here + i]), int64(pool[there + i]), place)


@njit_inner(RESULT2)
def divergence(ctx, lexer_state, base):
    """Push on WORK_STACK the trie nodes at which two states differ, upwards: (node, GONE, OTHER or OWN).

    The first state's tokens below OTHER are left in FOUND_TOKENS, its boundaries below OTHER and at OWN at the end of
    BOUNDARIES.  Returns the number of tokens, NOT_MINE if there are too many nodes, FAIL or LIMIT.
    """
    nodes, sizes, class_of = t.trie_nodes(ctx), t.subtree_sizes(ctx), t.byte_classes(ctx)
    stack, records = t.walk_stack(ctx), t.lexer_states(ctx)
    bottom, depths = used(ctx, t.WORK_STACK), int64(ctx[LONGEST] + 2)
    size = (_SET + 1) * depths
    if not room(ctx, t.WORK_STACK, size + 2 * _MOST_NODES):
        return int64(FAIL)
    set_used(ctx, t.WORK_STACK, bottom + size)
    beside, sets = bottom, bottom + depths
    kept = t.work_stack(ctx)
    stack[0], kept[beside] = lexer_state, base
    _find_telling_bytes(ctx, lexer_state, base, sets)
    n, i, left = int64(0), int64(0), int64(_MOST_NODES)
    while i < len(nodes):
        depth, byte = nodes[i] >> DEPTH_SHIFT, nodes[i] & 255
        if not (kept[sets + _SET * depth + (byte >> 4)] >> (byte & 15)) & 1:
            i += sizes[i]
            continue
        here, before = stack[depth], kept[beside + depth]
        there = far_call(ctx, F_LEXER_STEP, int64(here), int64(class_of[byte]))
        other = far_call(ctx, F_LEXER_STEP, int64(before), int64(class_of[byte]))
        if there < 0 or other < 0:
            return min(there, other)
        if there == other:
            i += sizes[i]
            continue
        left -= 1
        if left < 0:
            return int64(NOT_MINE)
        what, accept = int64(OWN), int64(records[there].accept)
        if there == 0 or other == 0:
            what = int64(GONE) if there == 0 else int64(OTHER)
        if (what < 0 or accept != records[other].accept) and not push_pair(ctx, t.WORK_STACK, i, what):
            return int64(FAIL)
        # The base may have left out a boundary that nothing follows, so it is not enough to change its boundaries.
        if what == OWN and accept and accept != records[other].accept:
            end = take(ctx, t.BOUNDARIES, int64(1))
            if end < 0:
                return end
            t.boundaries(ctx)[end] = i, accept
        if what == OTHER:
            n = walk(ctx, i, i + sizes[i], n)
            if n < 0:
                return n
        if what < 0:
            i += sizes[i]
            continue
        stack[depth + 1], kept[beside + depth + 1] = there, other
        _find_telling_bytes(ctx, there, other, sets + _SET * (depth + 1))
        i += 1
    top = used(ctx, t.WORK_STACK)
    for k in range(bottom + size, top):
        kept[k - size] = kept[k]
    set_used(ctx, t.WORK_STACK, top - size)
    return with_same_bytes(ctx, n)


far_entry(F_DIVERGENCE, divergence)
