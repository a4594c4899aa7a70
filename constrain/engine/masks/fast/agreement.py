"""Up to how many bytes two lexer states cannot be told apart, of which one is a relaxation of the other."""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64

from constrain.engine.automata.expressions import (
    CONCAT,
    EPSILON,
    INTERSECT,
    REPEAT,
    UNION,
    make_concat,
)
from constrain.engine.masks.fast.relaxations import (
    MOST_DEPTH,
    MOST_PARTS,
    character_counter,
    ends_line,
    is_long_indent,
    spare_bytes,
)
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_AGREE, F_SET_OPERATION, far_call, far_entry
from constrain.engine.storage.schemas import (
    AGREEMENTS,
    LEXER_STATE_HASHES,
    WORK_STACK,
    agreements,
    children,
    expressions,
    lexer_members,
    lexer_states,
    shortest_lengths,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL

_MOST_STEPS = 32
_DEPTH = 40
_NODE = (1 << _DEPTH) - 1
_ALWAYS = 1 << 30


@njit_inner(RESULT1)
def _spread(ctx, node):
    """Of a sequence that begins with a union, the union of sequences; -1 for anything else or if there is no room."""
    nodes = expressions(ctx)
    if nodes[node].kind != CONCAT:
        return int64(-1)
    head, tail = nodes[node].first, nodes[node].second
    count = nodes[head].second
    if nodes[head].kind != UNION or count > MOST_PARTS or not room(ctx, WORK_STACK, count):
        return int64(-1)
    base = used(ctx, WORK_STACK)
    set_used(ctx, WORK_STACK, base + count)
    for i in range(count):
        part = make_concat(ctx, children(ctx)[nodes[head].first + i], tail)
        if part < 0:
            set_used(ctx, WORK_STACK, base)
            return int64(-1)
        work_stack(ctx)[base + i] = part
    return max(far_call(ctx, F_SET_OPERATION, int64(UNION), base), int64(-1))


@njit_inner(RESULT2)
def _unions_agree(ctx, node_and_depth, free):
    """As :func:`_agreed`, of two unions: each part has one like it on the other side."""
    nodes, pool = expressions(ctx), children(ctx)
    node = node_and_depth & _NODE
    here, there = nodes[node].second, nodes[free].second
    if here > MOST_PARTS or there > MOST_PARTS:
        return int64(-1)
    agreed = int64(_ALWAYS)
    for side in range(2):
        for i in range(there if side else here):
            best = int64(-1)
            for j in range(here if side else there):
                part = pool[nodes[node].first + (j if side else i)]
                other = pool[nodes[free].first + (i if side else j)]
                best = max(best, far_call(ctx, F_AGREE, node_and_depth & ~_NODE | part, other))
            agreed = min(agreed, best)
    return agreed


@njit_inner(RESULT2)
def _agreed(ctx, node_and_depth, free):
    """A number of bytes up to which an expression cannot be told from another, which lacks some of its bounds.

    Neither by whether a text of up to so many bytes is a beginning of a string, nor by whether it is one.  -1 if that
    is not so even without any byte, or not known.  The depth of the recursion stands above the node's _DEPTH bits.
    """
    nodes = expressions(ctx)
    node, depth = node_and_depth & _NODE, (node_and_depth >> _DEPTH) + 1
    shortest = shortest_lengths(ctx)
    # ``before`` bytes at least are read before what is looked at; and up to ``agreed`` all is the same.
    before, agreed = int64(0), int64(_ALWAYS)
    behind = False
    if depth > MOST_DEPTH:
        return int64(-1)
    for _ in range(_MOST_STEPS):
        if node == free:
            return agreed
        kind = nodes[node].kind
        head, tail = node, int64(EPSILON)
        if kind == CONCAT:
            head, tail = nodes[node].first, nodes[node].second
        if nodes[head].kind == INTERSECT and head != free:
            counted = character_counter(ctx, head)
            if counted < 0:
                return min(agreed, before - 1)
            agreed = min(agreed, before + spare_bytes(ctx, counted))
            # Without the counter it may be a part of the sequence.
            node = make_concat(ctx, counted & 0xFFFFFFFF, tail)
            if node < 0:
                return int64(-1)
            continue
        if kind != nodes[free].kind:
            # What follows a union may be part of it.
            if kind == UNION:
                free = _spread(ctx, free)
            else:
                node = _spread(ctx, node)
            if node < 0 or free < 0:
                return min(agreed, before - 1)
            continue
        if kind == UNION:
            return min(agreed, before + _unions_agree(ctx, depth << _DEPTH | node, free))
        free_head, free_tail = free, int64(EPSILON)
        if kind == CONCAT:
            free_head, free_tail = nodes[free].first, nodes[free].second
        if head == free_head:
            before += shortest[head]
            behind = ends_line(ctx, head)
        elif nodes[head].kind == REPEAT:
            item, high = nodes[head].first, nodes[head].third
            if (
                nodes[free_head].kind != REPEAT
                or nodes[free_head].first != item
                or nodes[free_head].second != nodes[head].second
                or nodes[free_head].third >= 0
            ):
                return min(agreed, before - 1)
            if not behind or not is_long_indent(ctx, head):
                agreed = min(agreed, before + high * shortest[item])
            behind = False
        elif kind == CONCAT:
            agreed = min(agreed, before + far_call(ctx, F_AGREE, depth << _DEPTH | head, free_head))
            behind = False
        else:
            return min(agreed, before - 1)
        node, free = tail, free_tail
    return min(agreed, before - 1)


@njit_inner(RESULT2)
def _states_agree(ctx, state, free):
    """A number of bytes up to which two lexer states cannot be told apart, as for :func:`_agreed`."""
    lex, pool = lexer_states(ctx), lexer_members(ctx)
    count = lex[state].count
    if count != lex[free].count:
        return int64(-1)
    here, there = lex[state].offset, lex[free].offset
    agreed = int64(_ALWAYS)
    for i in range(0, 2 * count, 2):
        if pool[here + i] != pool[there + i]:
            return int64(-1)
        agreed = min(agreed, far_call(ctx, F_AGREE, pool[here + i + 1], pool[there + i + 1]))
    return agreed


@njit_inner(RESULT2)
def agreed_bytes(ctx, state, free):
    """What :func:`_states_agree` says, kept for the state's last partner; or FAIL."""
    pairs = agreements(ctx)
    count = used(ctx, AGREEMENTS)
    if state >= count:
        # Room for all states that there are by now.
        wanted = used(ctx, LEXER_STATE_HASHES)
        if not room(ctx, AGREEMENTS, wanted - count):
            return int64(FAIL)
        for i in range(count, wanted):
            pairs[i, 0] = pairs[i, 1] = -1
        set_used(ctx, AGREEMENTS, wanted)
    if pairs[state, 0] != free:
        pairs[state, 0], pairs[state, 1] = free, _states_agree(ctx, state, free)
    return pairs[state, 1]


far_entry(F_AGREE, _agreed)
