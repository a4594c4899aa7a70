"""Walks over the trie along plain sequences, for which no lexer states are made.

A walk for a mask looks a few bytes ahead along every way that a lexeme may take, and of the states on these ways a text
later comes to few.  Where a lexeme is a sequence of characters, each in its spellings, as the name of a key is, a place
in it is told by what is left: a node that is there already, and how much of a literal has been read.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64

from constrain.engine.automata.expressions import (
    COMPLEX_FLAG,
    CONCAT,
    EPSILON,
    LITERAL,
    NULLABLE_FLAG,
    RESULT2,
    RESULT3,
    UNION,
)
from constrain.engine.automata.lexer_states import LEX_COUNT, LEX_OFFSET
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.tables import (
    BYTES,
    CROSSINGS,
    CTX,
    F_ACCEPT_SET,
    F_PLAIN,
    FAIL,
    FOUND,
    LEX,
    LEX_POOL,
    LONGEST,
    NODE_FIRST,
    NODES,
    POOL,
    TMP,
    TRIE_NODE,
    TRIE_SIZE,
    TRIE_TOKEN,
    TRIE_WIDE,
    WIDE_CHILD,
    WIDE_ENDS,
    WIDE_FIRST,
    WIDE_MASKS,
    WIDE_STACK,
    count_bits,
    far_call,
    far_entry,
    i32,
    i64,
    lowest_bit,
    room,
    set_used,
    u8,
    used,
)
from constrain.engine.vocabulary.trie import CHILD_OF_WIDE, DEPTH_SHIFT, WIDE

# Fields of a place: what is left behind a literal, or a node; where the rest of the literal is, and its length.
_REST, _AT, _LEFT = range(3)
_DEAD, _ALIVE, _NOT_PLAIN = range(3)
# A choice of more than this is not searched for the part that matches.
_MOST_CHOICES = 8
_UNKNOWN = -1


@njit_inner(RESULT2)
def _may_begin(ctx, node, byte):
    """Whether a string of a node may begin with a byte (1 or 0)."""
    return (i64(ctx, NODE_FIRST)[4 * node + (byte >> 6)] >> (byte & 63)) & 1


@njit_inner(RESULT3)
def _advance(ctx, source, target, byte):
    """Go on with a byte from the place at ``TMP[source]`` to one at ``TMP[target]``.

    Returns _DEAD; _ALIVE; or _NOT_PLAIN, if it is alive but the place is not written.
    """
    tmp = i32(ctx, TMP)
    nodes = i32(ctx, NODES)
    rest, at, left = int64(tmp[source + _REST]), int64(tmp[source + _AT]), int64(tmp[source + _LEFT])
    if left > 0:
        if u8(ctx, BYTES)[at] != byte:
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
        if nodes[4 * node] & 255 == CONCAT:
            head, tail = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
        kind = int64(nodes[4 * head] & 255)
        if kind != UNION:
            break
        if nodes[4 * head] & NULLABLE_FLAG or nodes[4 * head + 2] > _MOST_CHOICES:
            return int64(_NOT_PLAIN)
        choice = int64(-1)
        for i in range(nodes[4 * head + 1], nodes[4 * head + 1] + nodes[4 * head + 2]):
            part = int64(i32(ctx, POOL)[i])
            if _may_begin(ctx, part, byte):
                if choice >= 0:
                    return int64(_NOT_PLAIN)
                choice = part
        head, kind = choice, int64(nodes[4 * choice] & 255)
        if kind != CONCAT:
            break
        if tail == EPSILON:
            node = choice
            continue
        # What is behind the literal would be two things; few tokens get that far.
        head, tail = int64(nodes[4 * choice + 1]), int64(_UNKNOWN)
        kind = int64(nodes[4 * head] & 255)
        if kind != LITERAL or nodes[4 * head + 2] < 2:
            return int64(_NOT_PLAIN)
        break
    if kind == LITERAL:
        tmp[target + _REST] = tail
        tmp[target + _AT] = nodes[4 * head + 1] + 1
        tmp[target + _LEFT] = nodes[4 * head + 2] - 1
        return int64(_ALIVE)
    return int64(_NOT_PLAIN)


@njit_inner(int64(CTX, int64, int64, int64))
def _next_child(ctx, wide, byte, place):
    """The first child of a wide node from ``byte`` on that the place at ``TMP[place]`` may go on with; else its end."""
    children = i64(ctx, WIDE_MASKS)
    rest, left = int64(i32(ctx, TMP)[place + _REST]), i32(ctx, TMP)[place + _LEFT]
    only = int64(u8(ctx, BYTES)[i32(ctx, TMP)[place + _AT]]) if left else int64(-1)
    rank = int64(i32(ctx, WIDE_FIRST)[wide])
    for word in range(4):
        own = children[4 * wide + word]
        if 64 * word + 63 >= byte:
            if left:
                bits = own & (int64(1) << (only & 63)) if only >> 6 == word else int64(0)
            else:
                bits = own & i64(ctx, NODE_FIRST)[4 * rest + word]
            if byte > 64 * word:
                bits &= int64(-1) << (byte - 64 * word)
            if bits:
                below = (int64(1) << lowest_bit(bits)) - 1
                return int64(i32(ctx, WIDE_CHILD)[rank + count_bits(own & below)])
        rank += count_bits(own)
    return int64(i32(ctx, WIDE_ENDS)[wide])


@njit_inner(RESULT2)
def walk_plainly(ctx, state_and_place, n):
    """Walk the subtree of a trie node, from ``lexer state << 32 | node``, without making states, as splits.walk does.

    Tokens go to FOUND from ``n`` on, crossings to the end of CROSSINGS.  Returns how many tokens there are then; -1,
    and nothing is added, if it takes states; or FAIL.
    """
    state, top = state_and_place >> 32, state_and_place & 0xFFFFFFFF
    nodes = i32(ctx, TRIE_NODE)
    sizes = i32(ctx, TRIE_SIZE)
    tokens = i32(ctx, TRIE_TOKEN)
    wides = i32(ctx, WIDE_STACK)
    found = i32(ctx, FOUND)
    pool = i32(ctx, LEX_POOL)
    first_byte = int64(nodes[top] & 255)
    offset = int64(i32(ctx, LEX)[4 * state + LEX_OFFSET])
    start, lexeme = int64(-1), int64(-1)
    for i in range(offset, offset + 2 * int64(i32(ctx, LEX)[4 * state + LEX_COUNT]), 2):
        node = int64(pool[i + 1])
        if _may_begin(ctx, node, first_byte):
            # Whether anything is left of an intersection or a complement takes a derivative to know.
            if start >= 0 or i32(ctx, NODES)[4 * node] & COMPLEX_FLAG:
                return int64(-1)
            start, lexeme = node, int64(pool[i])
    if start < 0:
        return n
    height = int64(nodes[top]) >> DEPTH_SHIFT
    base = used(ctx, TMP)
    if not room(ctx, TMP, 3 * (ctx[LONGEST] - height + 2)):
        return int64(FAIL)
    tmp = i32(ctx, TMP)
    tmp[base + _REST], tmp[base + _AT], tmp[base + _LEFT] = start, 0, 0
    first_crossing = used(ctx, CROSSINGS)
    accept = int64(-1)
    p, end = top, top + int64(sizes[top])
    while p < end:
        depth = (int64(nodes[p]) >> DEPTH_SHIFT) - height
        byte = int64(nodes[p] & 255)
        here = base + 3 * depth
        outcome = _advance(ctx, here, here + 3, byte)
        if outcome == _DEAD:
            if depth > 0 and nodes[p] & CHILD_OF_WIDE:
                p = _next_child(ctx, int64(wides[height + depth]), byte + 1, here)
            else:
                p += int64(sizes[p])
            continue
        # Where many bytes lead to one state, it is better made.
        if outcome == _NOT_PLAIN and (depth == 0 or sizes[p] > 1):
            set_used(ctx, CROSSINGS, first_crossing)
            return int64(-1)
        if tokens[p] >= 0:
            found[n] = tokens[p]
            n += 1
        if sizes[p] == 1:
            p += 1
            continue
        rest = int64(tmp[here + 3 + _REST])
        if tmp[here + 3 + _LEFT] == 0 and i32(ctx, NODES)[4 * rest] & NULLABLE_FLAG:
            if rest != EPSILON:
                set_used(ctx, CROSSINGS, first_crossing)
                return int64(-1)
            if accept < 0:
                # Behind the places: the last of them is never written.
                stage = base + 3 * (ctx[LONGEST] - height + 1) + 2
                tmp[stage] = lexeme
                accept = far_call(ctx, F_ACCEPT_SET, stage, 1)
                if accept < 0:
                    return accept
            if not room(ctx, CROSSINGS, 2):
                return int64(FAIL)
            crossing = used(ctx, CROSSINGS)
            i32(ctx, CROSSINGS)[crossing] = p
            i32(ctx, CROSSINGS)[crossing + 1] = accept
            set_used(ctx, CROSSINGS, crossing + 2)
            p += int64(sizes[p])
            continue
        if nodes[p] & WIDE:
            wides[height + depth + 1] = i32(ctx, TRIE_WIDE)[p]
            p = _next_child(ctx, int64(wides[height + depth + 1]), int64(0), here + 3)
        else:
            p += 1
    return n


far_entry(F_PLAIN, walk_plainly)
