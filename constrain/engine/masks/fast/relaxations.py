"""Relaxations: the lexer state without bounds that are felt only after many bytes.

``a{2,40}b`` is told from ``a{2,}b`` by texts of more than 40 bytes.  A bound that no shorter text meets can be left out
wherever the expression is a sequence, a union or the intersection with a counter of characters: it then stays the same
for texts of up to so many bytes, as to whether they begin a string and whether they are one.  Within what is repeated
bounds stay, for there they begin anew each time.

The tokens of the relaxation serve for many states: for each number of words, characters or blanks that is left.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.character_counters import (
    character_counter,
    counter_and_rest,
    counting_part,
    spare_beside_complements,
)
from constrain.engine.automata.expressions import make_concat, make_repeat
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import AGREED_BYTES, CTX, INNER_BLANKS, LONGEST, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_LEXER_STATE, F_RELAX, F_SET_OPERATION, far_call, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types

# Unions of more parts, longer sequences and deeper expressions are not looked into.
_MOST_PARTS, _MOST_DEPTH = 8, 6
TWIN, BLANKS, WORDS = -1, -2, -3
"""Which bounds a relaxation is without (see :func:`relaxed_state`)."""
# Bounds that are felt within so many bytes leave too little in common.
_LEAST_AGREED = 6
# Unions in unions are not looked into: where there are many words they hold each other, and no counters.
_UNION_DEPTH = 1
# Longer unions in a sequence are words.
_MOST_ALTERNATIVES = 4
# What may come once or twice is no counter, unless so few bytes are asked for.
_LEAST_HIGH = 4
_ALWAYS = 1 << 30
BLANK_BYTES = 1 << 0x20 | 1 << 0x09
"""A set of bytes."""


@njit_inner(RESULT1)
def _spare_bytes(ctx, counter_and_other):
    """How many bytes the other part of an intersection may read before the counter of characters is felt, at least.

    What is begun by then can be completed before the characters run out.
    """
    high = t.expressions(ctx)[counter_and_other >> 32].third
    return max(high - t.end_lengths(ctx)[counter_and_other & 0xFFFFFFFF], int64(-1))


@njit_inner(RESULT1)
def _spare_beside(ctx, node):
    """As _spare_bytes, of an intersection whose counter stands beside complements; -1 if there is none such; FAIL."""
    if not t.expressions(ctx)[node].flags & e.FITS_FLAG or t.expressions(ctx)[node].second > _MOST_PARTS:
        return int64(-1)
    found = counting_part(ctx, node)
    return spare_beside_complements(ctx, node, found >> 32) if found >= 0 else int64(-1)


@njit_inner(types.boolean(CTX, int64))
def counts_blanks(ctx, node):
    """Whether an expression is a counter of blanks or tabs, as an indent is."""
    nodes = t.expressions(ctx)
    if nodes[node].kind != e.REPEAT or nodes[node].third < 0:
        return False
    item = nodes[node].first
    if nodes[item].kind != e.SET:
        return False
    members, sets = nodes[item].first, t.byte_sets(ctx)
    return (sets[members, 0] & ~BLANK_BYTES) | sets[members, 1] | sets[members, 2] | sets[members, 3] == 0


@njit_inner(types.boolean(CTX, int64))
def _ends_line(ctx, node):
    """Whether all strings of an expression end with a byte that is no blank.

    Behind it, a counter of INNER_BLANKS blanks is felt by no token: none has more behind another byte.
    """
    return not t.expressions(ctx)[node].flags & e.NULLABLE_FLAG and not e.last_bytes(ctx, node, 0) & BLANK_BYTES


@njit_inner(RESULT2)
def _relaxed(ctx, node, how):
    """An expression without the bounds that are felt after so many bytes or more; FAIL or LIMIT.

    ``how`` is that number shifted by 8, the depth of the recursion by 1, and 1 if a line end stands before.  What no
    token feels is left out of a sequence up to its first alternatives; of the rest only words are counted without end.
    """
    nodes = t.expressions(ctx)
    kind = nodes[node].kind
    least, depth = how >> 8, (how >> 1) & 127
    is_twin = least >= ctx[LONGEST]
    if depth > _MOST_DEPTH:
        return node
    if kind == e.INTERSECT:
        counted = character_counter(ctx, node)
        spare = _spare_bytes(ctx, counted) if counted >= 0 else _spare_beside(ctx, node)
        if spare < least:
            return spare if spare < -1 else node
        if counted < 0:
            counted = counter_and_rest(ctx, node)
            if counted < 0:
                return counted
        ctx[AGREED_BYTES] = min(ctx[AGREED_BYTES], spare)
        return far_call(ctx, F_RELAX, counted & 0xFFFFFFFF, (how + 2) & ~1)
    if kind == e.REPEAT:
        item, high = nodes[node].first, nodes[node].third
        if high < min(least, _LEAST_HIGH) or nodes[node].flags & e.COMPLEX_FLAG:
            return node
        if not is_twin and nodes[item].kind != e.CONCAT:
            return node
        if not (how & 1 != 0 and counts_blanks(ctx, node) and high >= ctx[INNER_BLANKS]):
            felt = high * t.shortest_lengths(ctx)[item]
            if felt < least:
                return node
            ctx[AGREED_BYTES] = min(ctx[AGREED_BYTES], felt)
        return make_repeat(ctx, item, nodes[node].second, int64(-1), int64(0))
    if kind != e.CONCAT and (kind != e.UNION or nodes[node].second > _MOST_PARTS or depth > _UNION_DEPTH):
        return node
    # The parts are put on the stack, and made into one again.
    base = used(ctx, t.WORK_STACK)
    if not room(ctx, t.WORK_STACK, _MOST_PARTS + 1):
        return int64(FAIL)
    count, rest = int64(0), node
    if kind == e.UNION:
        count = nodes[node].second
        for i in range(count):
            t.work_stack(ctx)[base + i] = t.children(ctx)[nodes[node].first + i]
    else:
        while nodes[rest].kind == e.CONCAT and count < _MOST_PARTS:
            t.work_stack(ctx)[base + count] = nodes[rest].first
            rest = nodes[rest].second
            count += 1
        t.work_stack(ctx)[base + count] = rest
        count += 1
    set_used(ctx, t.WORK_STACK, base + count)
    changed, behind = False, how & 1
    for i in range(count):
        part = t.work_stack(ctx)[base + i]
        inner = nodes[part].kind
        # Few parts are called for: a state may have hundreds of members, and most of their parts are words.
        if inner >= e.CONCAT and inner != e.NOT and (inner != e.UNION or nodes[part].second <= _MOST_ALTERNATIVES):
            free = far_call(ctx, F_RELAX, part, ((how + 2) & ~1) | behind)
            if free < 0:
                return free
            changed = changed or free != part
            t.work_stack(ctx)[base + i] = free
            nodes = t.expressions(ctx)
        if kind == e.CONCAT:
            behind = int64(_ends_line(ctx, part))
            if is_twin and (changed or inner == e.UNION or inner == e.INTERSECT):
                break
    if changed and kind == e.UNION:
        return far_call(ctx, F_SET_OPERATION, int64(e.UNION), base)
    if changed:
        node = t.work_stack(ctx)[base + count - 1]
        for i in range(count - 2, -1, -1):
            node = make_concat(ctx, t.work_stack(ctx)[base + i], node)
            if node < 0:
                return node
    set_used(ctx, t.WORK_STACK, base)
    return node


@njit_inner(types.boolean(CTX, int64))
def _begins_with_bound(ctx, node):
    """Whether an expression begins with something that may come so many times and no more."""
    nodes = t.expressions(ctx)
    head = nodes[node].first if nodes[node].kind == e.CONCAT else node
    return nodes[head].kind == e.REPEAT and nodes[head].third >= 0


@njit_inner(RESULT2)
def _relaxed_member(ctx, node, how):
    """A member of a state without the bounds that its relaxation is to do without (see :func:`relaxed_state`)."""
    nodes = t.expressions(ctx)
    head, tail = node, int64(e.EPSILON)
    if nodes[node].kind == e.CONCAT:
        head, tail = nodes[node].first, nodes[node].second
    is_bound = _begins_with_bound(ctx, node)
    if how >= 0 or ((how == BLANKS or how == WORDS) and tail != e.EPSILON and counts_blanks(ctx, head)):
        if not is_bound or nodes[head].third < how or nodes[head].flags & e.COMPLEX_FLAG:
            return node
        ctx[AGREED_BYTES] = min(ctx[AGREED_BYTES], nodes[head].third * t.shortest_lengths(ctx)[nodes[head].first])
        free = make_repeat(ctx, nodes[head].first, nodes[head].second, int64(-1), int64(0))
        return make_concat(ctx, free, tail) if free >= 0 else free
    if how == BLANKS or nodes[node].kind < e.CONCAT:
        return node
    if how == TWIN:
        return (
            node if is_bound and nodes[head].third < ctx[LONGEST] else far_call(ctx, F_RELAX, node, ctx[LONGEST] << 8)
        )
    # What begins with counted characters is looked after by repetitions.py.
    if is_bound and t.shortest_lengths(ctx)[nodes[head].first] <= 1:
        return node
    return far_call(ctx, F_RELAX, node, int64(_LEAST_AGREED << 8))


@njit_inner(RESULT2)
def relaxed_state(ctx, lexer_state, how):
    """A state without some of its bounds; itself if it has none of them, FAIL or LIMIT.

    With TWIN, it is without those that no token is long enough to feel; with WORDS, without those on words, lines and
    characters beside a pattern that are not felt at once; with BLANKS, without those on the blanks that the members
    begin with, whatever they are, and with WORDS without these too.  With a number, not negative, without bounds of so
    much or more on what the members begin with.

    AGREED_BYTES says how many bytes the two agree in: no text of so many tells them apart, neither by whether it is a
    beginning of a string nor by whether it is one.
    """
    count = t.lexer_states(ctx)[lexer_state].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    base = used(ctx, t.WORK_STACK)
    if not room(ctx, t.WORK_STACK, 2 * count):
        return int64(FAIL)
    # The members are built first: building uses the stack above them.
    set_used(ctx, t.WORK_STACK, base + 2 * count)
    least = ctx[LONGEST] if how == TWIN else int64(_LEAST_AGREED)
    ctx[AGREED_BYTES] = _ALWAYS
    changed = False
    # Keys of an object are hundreds of words with the same behind them.
    tail = free_tail = behind = int64(-1)
    for i in range(0, 2 * count, 2):
        node = t.lexer_members(ctx)[offset + i + 1]
        nodes = t.expressions(ctx)
        free = node
        if nodes[node].kind != e.CONCAT or nodes[nodes[node].first].kind != e.LITERAL:
            free = _relaxed_member(ctx, node, how)
            nodes = t.expressions(ctx)
            if how == TWIN and free == node and _begins_with_bound(ctx, node):
                # The state is left soon, and what follows has twins of its own.
                changed = False
                break
        elif how == TWIN or how == WORDS:
            ends = int64(_ends_line(ctx, nodes[node].first))
            if nodes[node].second != tail or ends != behind:
                tail, behind = nodes[node].second, ends
                free_tail = far_call(ctx, F_RELAX, tail, least << 8 | 2 | ends)
                if free_tail < 0:
                    return free_tail
            if free_tail != tail:
                free = make_concat(ctx, nodes[node].first, free_tail)
        if free < 0:
            return free
        changed = changed or free != node
        t.work_stack(ctx)[base + i] = t.lexer_members(ctx)[offset + i]
        t.work_stack(ctx)[base + i + 1] = free
    result = far_call(ctx, F_LEXER_STATE, base, count) if changed else lexer_state
    set_used(ctx, t.WORK_STACK, base)
    return result


far_entry(F_RELAX, _relaxed)
