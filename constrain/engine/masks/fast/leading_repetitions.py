"""Which repetition the strings of a lexer state begin with.

Inside a JSON string a state may repeat a character without end, and most of the tokens that it allows stay inside.
Here the repetition is found; what stays inside is the closure of it (closures.py).
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.expressions import first_bytes, make_repeat
from constrain.engine.automata.liveness import is_live
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push, room, set_used, used
from constrain.engine.storage.bits import count_bits
from constrain.engine.storage.header import LOOP_NODE, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_REPETITION, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64

# In place of the most repetitions: any number; any number, but some prefixes are forbidden.
UNBOUNDED, PARTLY = 0xFFFFFFFF, 0xFFFFFFFE
# Closures of few bytes (white space, digits) are as quickly walked.
_LEAST_BYTES = 16
_MOST_ALTERNATIVES = 4096


@njit_inner(RESULT1)
def repetition_in(ctx, node):
    """The repetition that a node is: ``node << 1``, or -1.

    Of the intersection of an unbounded one with complements, the repetition.  If what is forbidden is finite, any
    prefix of the repetition goes on in infinitely many ways, of which finitely many are forbidden.  Else some
    prefixes may be forbidden, and 1 is added.
    """
    nodes = t.expressions(ctx)
    if nodes[node].kind == e.REPEAT:
        return node << 1
    if nodes[node].kind != e.INTERSECT:
        return int64(-1)
    pool = t.children(ctx)
    found, partly = int64(-1), int64(0)
    for i in range(nodes[node].first, nodes[node].first + nodes[node].second):
        part = pool[i]
        kind = nodes[part].kind
        if kind == e.REPEAT and nodes[part].third < 0 and found < 0:
            found = part
        elif kind != e.NOT:
            return int64(-1)
        elif nodes[nodes[part].first].flags & e.LOOP_FLAG:
            partly = int64(1)
    return found << 1 | partly if found >= 0 else int64(-1)


@njit_inner(RESULT2)
def starts_with(ctx, node, start):
    """Whether a node is ``start`` or a sequence of that and more (1 or 0)."""
    nodes = t.expressions(ctx)
    while node != start and nodes[node].kind == e.CONCAT:
        if nodes[start].kind != e.CONCAT:
            return int64(nodes[node].first == start)
        if nodes[node].first != nodes[start].first:
            return int64(0)
        node, start = nodes[node].second, nodes[start].second
    return int64(node == start)


@njit_inner(RESULT2)
def _is_complemented(ctx, lexer_state, node):
    """Whether what an intersection forbids is allowed by another member of the state, all but finitely much (1 or 0).

    So it is with the keys of an object that match a pattern, and the additional ones, which do not.
    """
    nodes = t.expressions(ctx)
    pool = t.children(ctx)
    first, count = nodes[node].first, nodes[node].second
    forbidden = int64(-1)
    for i in range(first, first + count):
        if nodes[pool[i]].kind == e.NOT:
            inner = nodes[pool[i]].first
            if nodes[inner].flags & e.LOOP_FLAG:
                if forbidden >= 0:
                    return int64(0)
                forbidden = inner
    members = t.lexer_members(ctx)
    offset = t.lexer_states(ctx)[lexer_state].offset
    for i in range(offset, offset + 2 * t.lexer_states(ctx)[lexer_state].count, 2):
        member = members[i + 1]
        if starts_with(ctx, member, forbidden):
            return int64(1)
        if nodes[member].kind == e.CONCAT:
            member = nodes[member].first
        if nodes[member].kind != e.INTERSECT or member == node:
            continue
        # The other member asks for what is forbidden here, and for nothing that is not asked for here.
        asks, same = False, True
        for j in range(nodes[member].first, nodes[member].first + nodes[member].second):
            if pool[j] == forbidden:
                asks = True
                continue
            found = False
            for k in range(first, first + count):
                found = found or pool[k] == pool[j]
            same = same and found
        if asks and same:
            return int64(1)
    return int64(0)


@njit_inner(RESULT2)
def _loop_of(ctx, lexer_state, _unused):
    """The repetition that most tokens stay in: ``star << 32 | most repetitions``, -1 if there is none, or FAIL.

    ``star`` is the node of ``C*``.  LOOP_NODE is the repetition, or its intersection with what is forbidden.
    """
    count = t.lexer_states(ctx)[lexer_state].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    item, most = int64(-1), int64(-1)
    bottom = used(ctx, t.WORK_STACK)
    if not room(ctx, t.WORK_STACK, count):
        return int64(FAIL)
    for i in range(count):
        t.work_stack(ctx)[bottom + i] = t.lexer_members(ctx)[offset + 2 * i + 1]
    set_used(ctx, t.WORK_STACK, bottom + count)
    looked_at = 0
    while used(ctx, t.WORK_STACK) > bottom and looked_at < _MOST_ALTERNATIVES:
        looked_at += 1
        top = used(ctx, t.WORK_STACK) - 1
        set_used(ctx, t.WORK_STACK, top)
        node = t.work_stack(ctx)[top]
        nodes = t.expressions(ctx)
        # A sequence that is alive is so in all its parts, an alternative of several may not be.
        while nodes[node].kind == e.CONCAT:
            node = nodes[node].first
        if nodes[node].kind == e.UNION:
            first, alternatives = nodes[node].first, nodes[node].second
            for j in range(alternatives):
                part = t.children(ctx)[first + j]
                if t.expressions(ctx)[part].kind == e.LITERAL:
                    continue
                live = is_live(ctx, part)
                if live < 0:
                    return live
                if live and not push(ctx, t.WORK_STACK, part):
                    return int64(FAIL)
            continue
        repetition = repetition_in(ctx, node)
        if repetition >= 0:
            partly = repetition & 1
            repetition >>= 1
            if partly and _is_complemented(ctx, lexer_state, node):
                partly = int64(0)
            high = t.expressions(ctx)[repetition].third
            high = UNBOUNDED - partly if high < 0 else high
            if high > most:
                item, most = t.expressions(ctx)[repetition].first, high
                ctx[LOOP_NODE] = node
    set_used(ctx, t.WORK_STACK, bottom)
    if most < 1:
        return int64(-1)
    width = int64(0)
    for word in range(4):
        width += count_bits(first_bytes(ctx, int64(item), word))
    if width < _LEAST_BYTES:
        return int64(-1)
    star = make_repeat(ctx, item, int64(0), int64(-1), int64(0))
    return star << 32 | most if star >= 0 else star


far_entry(F_REPETITION, _loop_of)
