"""Literal walks: over the trie along characters in fixed order, for which no lexer states are made.

A walk for a mask looks a few bytes ahead along every way that a lexeme may take, and of the states on these ways a text
later comes to few.  Where a lexeme is a sequence of characters, each in its spellings, as the name of a key is, a place
in it is told by what is left: a node that is there already, and how much of a literal has been read.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import COMPLEX_FLAG, CONCAT, EPSILON, LITERAL, NULLABLE_FLAG, UNION
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.bits import count_bits, lowest_bit
from constrain.engine.storage.header import CTX, LONGEST, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_ACCEPT_SET, F_LITERAL_WALK, far_call, far_entry
from constrain.engine.storage.schemas import children
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.engine.vocabulary.trie import CHILD_OF_WIDE, DEPTH_SHIFT, WIDE
from constrain.kernels.language import int64

# Fields of a place: what is left behind a literal, or a node; where the rest of the literal is, and its length.
_REST, _AT, _LEFT = range(3)
_DEAD, _ALIVE, _NOT_PLAIN = range(3)
# A choice of more than this is not searched for the part that matches.
_MOST_CHOICES = 8
_UNKNOWN = -1


@njit_inner(RESULT2)
def _may_begin(ctx, node, byte):
    """Whether a string of a node may begin with a byte (1 or 0)."""
    return (t.first_bytes(ctx)[node, byte >> 6] >> (byte & 63)) & 1


@njit_inner(RESULT3)
def _advance(ctx, source, target, byte):
    """Go on with a byte from the place at ``WORK_STACK[source]`` to one at ``WORK_STACK[target]``.

    Returns _DEAD; _ALIVE; or _NOT_PLAIN, if it is alive but the place is not written.
    """
    tmp = t.work_stack(ctx)
    nodes = t.expressions(ctx)
    rest, at, left = tmp[source + _REST], tmp[source + _AT], tmp[source + _LEFT]
    if left > 0:
        if t.literal_bytes(ctx)[at] != byte:
            return int64(_DEAD)
        if left == 1 and rest == _UNKNOWN:
            return int64(_NOT_PLAIN)
        tmp[target + _REST], tmp[target + _AT], tmp[target + _LEFT] = rest, at + 1, left - 1
        return int64(_ALIVE)
    node = rest
    if not _may_begin(ctx, node, byte):
        return int64(_DEAD)
    head, tail, kind = node, int64(EPSILON), int64(0)
    while True:
        head, tail = node, int64(EPSILON)
        if nodes[node].kind == CONCAT:
            head, tail = nodes[node].first, nodes[node].second
        kind = int64(nodes[head].kind)
        if kind != UNION:
            break
        if nodes[head].flags & NULLABLE_FLAG or nodes[head].second > _MOST_CHOICES:
            return int64(_NOT_PLAIN)
        choice = int64(-1)
        for i in range(nodes[head].first, nodes[head].first + nodes[head].second):
            part = children(ctx)[i]
            if _may_begin(ctx, part, byte):
                if choice >= 0:
                    return int64(_NOT_PLAIN)
                choice = part
        head, kind = choice, int64(nodes[choice].kind)
        if kind != CONCAT:
            break
        if tail == EPSILON:
            node = choice
            continue
        # What is behind the literal would be two things; few tokens get that far.
        head, tail = nodes[choice].first, int64(_UNKNOWN)
        kind = int64(nodes[head].kind)
        if kind != LITERAL or nodes[head].second < 2:
            return int64(_NOT_PLAIN)
        break
    if kind == LITERAL:
        tmp[target + _REST] = tail
        tmp[target + _AT] = nodes[head].first + 1
        tmp[target + _LEFT] = nodes[head].second - 1
        return int64(_ALIVE)
    return int64(_NOT_PLAIN)


@njit_inner(int64(CTX, int64, int64, int64))
def _next_child(ctx, wide, byte, place):
    """The first child of a wide node from ``byte`` on that a place in WORK_STACK may go on with; else its end."""
    children = t.wide_masks(ctx)
    rest, left = t.work_stack(ctx)[place + _REST], t.work_stack(ctx)[place + _LEFT]
    only = t.literal_bytes(ctx)[t.work_stack(ctx)[place + _AT]] if left else int64(-1)
    rank = t.wide_first(ctx)[wide]
    for word in range(4):
        own = children[wide, word]
        if 64 * word + 63 >= byte:
            if left:
                bits = own & (int64(1) << (only & 63)) if only >> 6 == word else int64(0)
            else:
                bits = own & t.first_bytes(ctx)[rest, word]
            if byte > 64 * word:
                bits &= int64(-1) << (byte - 64 * word)
            if bits:
                below = (int64(1) << lowest_bit(bits)) - 1
                return t.wide_child(ctx)[rank + count_bits(own & below)]
        rank += count_bits(own)
    return t.wide_ends(ctx)[wide]


@njit_inner(RESULT2)
def walk_literals(ctx, state_and_place, n):
    """Walk the subtree of a trie node, from ``lexer state << 32 | node``, without making states.

    Tokens go to FOUND_TOKENS from ``n`` on, boundaries to the end of BOUNDARIES.  Returns how many tokens there are
    then; NOT_MINE, and nothing is added, if it takes states; or FAIL.

    All of it is one loop: a call for each node would take longer than the node.
    """
    state, top = state_and_place >> 32, state_and_place & 0xFFFFFFFF
    nodes = t.trie_nodes(ctx)
    sizes = t.subtree_sizes(ctx)
    tokens = t.node_tokens(ctx)
    wides = t.wide_stack(ctx)
    found = t.found_tokens(ctx)
    pool = t.lexer_members(ctx)
    first_byte = int64(nodes[top] & 255)
    offset = t.lexer_states(ctx)[state].offset
    start, lexeme = int64(-1), int64(-1)
    for i in range(offset, offset + 2 * t.lexer_states(ctx)[state].count, 2):
        node = pool[i + 1]
        if _may_begin(ctx, node, first_byte):
            # Whether anything is left of an intersection or a complement takes a derivative to know.
            if start >= 0 or t.expressions(ctx)[node].flags & COMPLEX_FLAG:
                return int64(NOT_MINE)
            start, lexeme = node, pool[i]
    if start < 0:
        return n
    height = nodes[top] >> DEPTH_SHIFT
    base = used(ctx, t.WORK_STACK)
    if not room(ctx, t.WORK_STACK, 3 * (ctx[LONGEST] - height + 2)):
        return int64(FAIL)
    tmp = t.work_stack(ctx)
    tmp[base + _REST], tmp[base + _AT], tmp[base + _LEFT] = start, 0, 0
    first_boundary = used(ctx, t.BOUNDARIES)
    accept = int64(-1)
    p, end = top, top + sizes[top]
    while p < end:
        depth = (nodes[p] >> DEPTH_SHIFT) - height
        byte = int64(nodes[p] & 255)
        here = base + 3 * depth
        outcome = _advance(ctx, here, here + 3, byte)
        if outcome == _DEAD:
            if depth > 0 and nodes[p] & CHILD_OF_WIDE:
                p = _next_child(ctx, wides[height + depth], byte + 1, here)
            else:
                p += sizes[p]
            continue
        # Where many bytes lead to one state, it is better made.
        if outcome == _NOT_PLAIN and (depth == 0 or sizes[p] > 1):
            set_used(ctx, t.BOUNDARIES, first_boundary)
            return int64(NOT_MINE)
        if tokens[p] >= 0:
            found[n] = tokens[p]
            n += 1
        if sizes[p] == 1:
            p += 1
            continue
        rest = tmp[here + 3 + _REST]
        if tmp[here + 3 + _LEFT] == 0 and t.expressions(ctx)[rest].flags & NULLABLE_FLAG:
            if rest != EPSILON:
                set_used(ctx, t.BOUNDARIES, first_boundary)
                return int64(NOT_MINE)
            if accept < 0:
                # Behind the places: the last of them is never written.
                stage = base + 3 * (ctx[LONGEST] - height + 1) + 2
                tmp[stage] = lexeme
                accept = far_call(ctx, F_ACCEPT_SET, stage, 1)
                if accept < 0:
                    return accept
            if not room(ctx, t.BOUNDARIES, 1):
                return int64(FAIL)
            boundary = used(ctx, t.BOUNDARIES)
            t.boundaries(ctx)[boundary].node = p
            t.boundaries(ctx)[boundary].accept = accept
            set_used(ctx, t.BOUNDARIES, boundary + 1)
            p += sizes[p]
            continue
        if nodes[p] & WIDE:
            wides[height + depth + 1] = t.wide_nodes(ctx)[p]
            p = _next_child(ctx, wides[height + depth + 1], int64(0), here + 3)
        else:
            p += 1
    return n


far_entry(F_LITERAL_WALK, walk_literals)
