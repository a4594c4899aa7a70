"""Unbounded twins: lexer states whose counters are too large for any token to feel are taken for those without bounds.

In the twin a run of blanks or of characters stays in one state, where counting makes one for each.  The lexer mask of a
state is that of its twin, and what follows a boundary begins with the twin.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import (
    COMPLEX_FLAG,
    CONCAT,
    EPSILON,
    FITS_FLAG,
    INTERSECT,
    LOOP_FLAG,
    REPEAT,
    make_concat,
    make_repeat,
)
from constrain.engine.automata.summaries import LONG
from constrain.engine.masks.lexer_masks import copy_lexer_mask
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import LONGEST, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import (
    F_LEXER_MASK,
    F_LEXER_STATE,
    F_SET_OPERATION,
    F_TWIN,
    F_TWIN_MASK,
    F_WITHOUT_INDENTS,
    far_call,
    far_entry,
)
from constrain.engine.storage.schemas import (
    WORK_STACK,
    children,
    end_lengths,
    expressions,
    lexer_members,
    lexer_states,
    lexer_twins,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.kernels.language import int64

# How long a sequence is compared to see where two expressions differ.
_MARGIN_DEPTH = 8


@njit_inner(RESULT1)
def _without_count(ctx, node):
    """The intersection of two parts, of which one counts (FITS_FLAG), without the bound; -1 if that is not plain."""
    first = expressions(ctx)[node].first
    for i in range(2):
        nodes = expressions(ctx)
        part, other = children(ctx)[first + i], children(ctx)[first + 1 - i]
        if nodes[part].kind == REPEAT and nodes[part].third >= 0 and nodes[part].second <= 1:
            if end_lengths(ctx)[other] == LONG:
                return int64(-1)
            free = make_repeat(ctx, nodes[part].first, nodes[part].second, int64(-1))
            if free < 0:
                return free
            if not room(ctx, WORK_STACK, 2):
                return int64(FAIL)
            top = used(ctx, WORK_STACK)
            work_stack(ctx)[top] = other
            work_stack(ctx)[top + 1] = free
            set_used(ctx, WORK_STACK, top + 2)
            return far_call(ctx, F_SET_OPERATION, int64(INTERSECT | FITS_FLAG), top)
    return int64(-1)


@njit_inner(RESULT2)
def _counted_margin(ctx, left, right):
    """A number of bytes within which an intersection and the one without its bound cannot be told apart; 0 if unknown.

    What is begun can be completed in so many bytes (END_LENGTHS), and till then the bound must not be met.
    """
    nodes = expressions(ctx)
    pool = children(ctx)
    if not nodes[left].flags & nodes[right].flags & FITS_FLAG or nodes[left].second != 2 or nodes[right].second != 2:
        return int64(0)
    here, there = nodes[left].first, nodes[right].first
    for i in range(2):
        for j in range(2):
            other, count, free = pool[here + i], pool[here + 1 - i], pool[there + 1 - j]
            if (
                other == pool[there + j]
                and nodes[count].kind == REPEAT
                and nodes[free].kind == REPEAT
                and nodes[count].first == nodes[free].first
                and nodes[count].second == nodes[free].second
                and nodes[count].second <= 1
                and nodes[free].third < 0
            ):
                return max(int64(0), nodes[count].third - end_lengths(ctx)[other])
    return int64(0)


@njit_inner(RESULT1)
def uncounted(ctx, lexer_state):
    """The state whose members repeat without bound what this one's repeat at most n times; -1 if none does, or FAIL."""
    count = lexer_states(ctx)[lexer_state].count
    offset = lexer_states(ctx)[lexer_state].offset
    if not room(ctx, WORK_STACK, 2 * count):
        return int64(FAIL)
    base = used(ctx, WORK_STACK)
    # The members are built first: building uses the stack above them.
    set_used(ctx, WORK_STACK, base + 2 * count)
    changed = False
    for i in range(count):
        pool = lexer_members(ctx)
        lexeme, node = pool[offset + 2 * i], pool[offset + 2 * i + 1]
        nodes = expressions(ctx)
        head, tail = node, int64(EPSILON)
        if nodes[node].kind == CONCAT:
            head, tail = nodes[node].first, nodes[node].second
        if nodes[head].kind == REPEAT and nodes[head].third >= 0 and not nodes[head].flags & COMPLEX_FLAG:
            head = make_repeat(ctx, nodes[head].first, nodes[head].second, int64(-1))
            if head < 0:
                return head
            node = make_concat(ctx, head, tail)
            if node < 0:
                return node
            changed = True
        elif nodes[head].flags & FITS_FLAG and nodes[head].second == 2:
            free = _without_count(ctx, head)
            if free < -1:
                return free
            if free >= 0:
                node = make_concat(ctx, free, tail)
                if node < 0:
                    return node
                changed = True
        work_stack(ctx)[base + 2 * i] = lexeme
        work_stack(ctx)[base + 2 * i + 1] = node
    result = far_call(ctx, F_LEXER_STATE, base, count) if changed else int64(-1)
    set_used(ctx, WORK_STACK, base)
    return result


@njit_inner(RESULT2)
def _margin(ctx, left, right):
    """A number of bytes within which two expressions cannot be told apart; 0 if unknown.

    It looks at counters at the end of equal beginnings: each repetition takes a byte at least.
    """
    nodes = expressions(ctx)
    for _ in range(_MARGIN_DEPTH):
        if left == right:
            return int64(1 << 30)
        # Whether something loops is just what the two may differ in.
        head, other = nodes[left].flags & ~LOOP_FLAG, nodes[right].flags & ~LOOP_FLAG
        kind = head & 255
        if head != other:
            return int64(0)
        if kind == INTERSECT:
            return _counted_margin(ctx, left, right)
        if head & COMPLEX_FLAG and kind != CONCAT:
            return int64(0)
        if kind == CONCAT:
            a, b = nodes[left].first, nodes[right].first
            if a == b:
                left, right = nodes[left].second, nodes[right].second
                continue
            if nodes[left].second != nodes[right].second or (nodes[a].flags ^ nodes[b].flags) & ~LOOP_FLAG:
                return int64(0)
            left, right = a, b
            kind = nodes[a].kind
            if kind == INTERSECT:
                return _counted_margin(ctx, left, right)
            if nodes[a].flags & COMPLEX_FLAG:
                return int64(0)
        if kind != REPEAT or nodes[left].first != nodes[right].first or nodes[left].second != nodes[right].second:
            return int64(0)
        high, other_high = nodes[left].third, nodes[right].third
        return min(high if high >= 0 else int64(1 << 30), other_high if other_high >= 0 else int64(1 << 30))
    return int64(0)


@njit_inner(RESULT2)
def _state_margin(ctx, state, twin):
    """A number of bytes within which two lexer states cannot be told apart; 0 if unknown or none."""
    lex = lexer_states(ctx)
    count = lex[state].count
    if count != lex[twin].count or lex[state].accept != lex[twin].accept:
        return int64(0)
    pool = lexer_members(ctx)
    here, there = lex[state].offset, lex[twin].offset
    margin = int64(1 << 30)
    for i in range(count):
        if pool[here + 2 * i] != pool[there + 2 * i]:
            return int64(0)
        margin = min(margin, _margin(ctx, pool[here + 2 * i + 1], pool[there + 2 * i + 1]))
    return margin


@njit_inner(RESULT1)
def _without_indents(ctx, lexer_state):
    """The state without the bounds of indents that no token can reach; itself if there are none, or FAIL."""
    count = lexer_states(ctx)[lexer_state].count
    offset = lexer_states(ctx)[lexer_state].offset
    if not room(ctx, WORK_STACK, 2 * count):
        return int64(FAIL)
    base = used(ctx, WORK_STACK)
    # Building uses the stack above the members.
    set_used(ctx, WORK_STACK, base + 2 * count)
    changed = False
    for i in range(0, 2 * count, 2):
        node = lexer_members(ctx)[offset + i + 1]
        free = far_call(ctx, F_WITHOUT_INDENTS, node, 0)
        if free == NOT_MINE:
            free = node
        if free < 0:
            return free
        changed = changed or free != node
        work_stack(ctx)[base + i] = lexer_members(ctx)[offset + i]
        work_stack(ctx)[base + i + 1] = free
    result = far_call(ctx, F_LEXER_STATE, base, count) if changed else lexer_state
    set_used(ctx, WORK_STACK, base)
    return result


@njit_inner(RESULT2)
def unbounded_twin(ctx, lexer_state, _unused):
    """The state without this one's bounds, if no token is long enough to tell the two apart; else the state itself."""
    known = lexer_twins(ctx)[lexer_state]
    if known >= 0:
        return known
    twin = uncounted(ctx, lexer_state)
    if twin < -1:
        return twin
    if twin == -1:
        twin = _without_indents(ctx, lexer_state)
        if twin < 0:
            return twin
    elif _state_margin(ctx, lexer_state, twin) <= ctx[LONGEST]:
        twin = lexer_state
    lexer_twins(ctx)[lexer_state] = twin
    return twin


far_entry(F_TWIN, unbounded_twin)


@njit_inner(RESULT2)
def twin_mask(ctx, lexer_state, _unused):
    """Take the lexer mask of the twin; returns 0, NOT_MINE if the state is its own twin, FAIL or LIMIT."""
    twin = unbounded_twin(ctx, lexer_state, 0)
    if twin < 0:
        return twin
    if twin == lexer_state:
        return int64(NOT_MINE)
    status = far_call(ctx, F_LEXER_MASK, twin, 0)
    if status < 0:
        return status
    copy_lexer_mask(ctx, lexer_state, twin)
    return int64(0)


far_entry(F_TWIN_MASK, twin_mask)
