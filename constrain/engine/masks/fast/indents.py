"""States that count the blanks of an indent, and the tokens with more of them than are left.

A line may be indented by so many blanks and no more, and a vocabulary may have tokens that are longer.  But of a
token only two kinds of places are of any concern: its beginning, and what stands behind a line end in it, where no
vocabulary has many blanks.  So

* before the line end (:func:`without_indents`) a state goes on like the one in which indents have no bound, if no
  token has that many blanks behind another byte;
* within the indent (:func:`indent_split`) a state has the tokens of the one without bound, but for those that begin
  with more blanks than are left.  These are below few trie nodes.

Otherwise each blank would make a state of its own, and all of them for each kind of value that may follow.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int32, int64, types

from constrain.engine.automata.expressions import (
    CONCAT,
    NULLABLE_FLAG,
    REPEAT,
    RESULT1,
    RESULT2,
    SET,
    UNION,
    make_concat,
    make_repeat,
)
from constrain.engine.automata.lexer_states import (
    LEX_COUNT,
    LEX_OFFSET,
    NO_DENSE,
    SPLIT_COUNT,
    SPLIT_CROSSING_COUNT,
    SPLIT_CROSSINGS,
    SPLIT_DENSE,
    SPLIT_LIST,
)
from constrain.engine.masks.lexer_masks import add_dense, clear_scratch, keep_dense, keep_split, next_child
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.tables import (
    CROSSINGS,
    CTX,
    DENSE,
    F_INDENTS,
    F_LEXER_STATE,
    F_SET_OPERATION,
    F_SPLIT,
    F_WITHOUT_INDENTS,
    FAIL,
    INNER_BLANKS,
    LEX,
    LEX_POOL,
    N_WORDS,
    NODE_FIRST,
    NODE_LAST,
    NODES,
    POOL,
    SAME_BYTES,
    SCRATCH,
    SETS,
    SPLITS,
    TMP,
    TOKEN_LISTS,
    TRIE_NODE,
    TRIE_SIZE,
    TRIE_TOKEN,
    TRIE_WIDE,
    WIDE_STACK,
    far_call,
    far_entry,
    i32,
    i64,
    room,
    set_used,
    used,
)
from constrain.engine.vocabulary.trie import CHILD_OF_WIDE, DEPTH_SHIFT, WIDE

_BLANKS = 1 << 0x20 | 1 << 0x09
# Longer unions and sequences are not looked into.
_MOST_PARTS = 4


@njit_inner(types.boolean(CTX, int64))
def _is_indent(ctx, node):
    """Whether an expression is a counter of blanks or tabs."""
    nodes = i32(ctx, NODES)
    if nodes[4 * node] & 255 != REPEAT or nodes[4 * node + 3] < 0:
        return False
    item = int64(nodes[4 * node + 1])
    if nodes[4 * item] & 255 != SET:
        return False
    members = 4 * int64(nodes[4 * item + 1])
    sets = i64(ctx, SETS)
    return (sets[members] & ~_BLANKS) | sets[members + 1] | sets[members + 2] | sets[members + 3] == 0


@njit_inner(RESULT1)
def _without_indent(ctx, node):
    """A sequence without the bound of the indent that it ends with; itself if there is none, or FAIL.

    The indent must stand behind something that is not a blank, and be longer than any such run of blanks in a token.
    """
    base = used(ctx, TMP)
    nodes = i32(ctx, NODES)
    last, before = node, int64(-1)
    while nodes[4 * last] & 255 == CONCAT:
        if not room(ctx, TMP, 1):
            return int64(FAIL)
        before = int64(nodes[4 * last + 1])
        i32(ctx, TMP)[used(ctx, TMP)] = before
        set_used(ctx, TMP, used(ctx, TMP) + 1)
        last = int64(nodes[4 * last + 2])
    result = node
    if (
        before >= 0
        and _is_indent(ctx, last)
        and nodes[4 * last + 3] >= ctx[INNER_BLANKS]
        and not nodes[4 * before] & NULLABLE_FLAG
        and not i64(ctx, NODE_LAST)[4 * before] & _BLANKS
    ):
        result = make_repeat(ctx, int64(nodes[4 * last + 1]), int64(nodes[4 * last + 2]), int64(-1))
        while result >= 0 and used(ctx, TMP) > base:
            top = used(ctx, TMP) - 1
            set_used(ctx, TMP, top)
            result = make_concat(ctx, int64(i32(ctx, TMP)[top]), result)
    set_used(ctx, TMP, base)
    return result


@njit_inner(RESULT2)
def without_indents(ctx, node, _unused):
    """An expression without the bounds of indents, if no token can tell the two apart; else itself, or FAIL.

    It is a sequence with a union near its beginning, of which some parts end with an indent.
    """
    nodes = i32(ctx, NODES)
    rest, n = node, 0
    while nodes[4 * rest] & 255 == CONCAT and n < _MOST_PARTS:
        if nodes[4 * int64(nodes[4 * rest + 1])] & 255 == UNION:
            break
        rest = int64(nodes[4 * rest + 2])
        n += 1
    if nodes[4 * rest] & 255 != CONCAT or n == _MOST_PARTS:
        return node
    gap, tail = int64(nodes[4 * rest + 1]), int64(nodes[4 * rest + 2])
    first, count = int64(nodes[4 * gap + 1]), int64(nodes[4 * gap + 2])
    if count > _MOST_PARTS or not room(ctx, TMP, n + count):
        return node if count > _MOST_PARTS else int64(FAIL)
    base = used(ctx, TMP)
    set_used(ctx, TMP, base + n + count)
    rest = node
    for i in range(n):
        i32(ctx, TMP)[base + i] = nodes[4 * rest + 1]
        rest = int64(nodes[4 * rest + 2])
    changed = False
    for i in range(count):
        part = int64(i32(ctx, POOL)[first + i])
        free = _without_indent(ctx, part)
        if free < 0:
            return free
        changed = changed or free != part
        i32(ctx, TMP)[base + n + i] = free
    if not changed:
        set_used(ctx, TMP, base)
        return node
    result = far_call(ctx, F_SET_OPERATION, int64(UNION), base + n)
    if result >= 0:
        result = make_concat(ctx, result, tail)
    for i in range(n - 1, -1, -1):
        if result >= 0:
            result = make_concat(ctx, int64(i32(ctx, TMP)[base + i]), result)
    set_used(ctx, TMP, base)
    return result


@njit_inner(RESULT2)
def _blanks_left(ctx, state, free):
    """How many blanks may still come in a state, if that is all that tells it from another; else -1.

    What follows the blanks does not begin with one.
    """
    lex, pool, nodes = i32(ctx, LEX), i32(ctx, LEX_POOL), i32(ctx, NODES)
    here, there = int64(lex[4 * state + LEX_OFFSET]), int64(lex[4 * free + LEX_OFFSET])
    if lex[4 * state + LEX_COUNT] != lex[4 * free + LEX_COUNT]:
        return int64(-1)
    left = int64(-1)
    for i in range(0, 2 * int64(lex[4 * state + LEX_COUNT]), 2):
        node, other = int64(pool[here + i + 1]), int64(pool[there + i + 1])
        if pool[here + i] != pool[there + i] or nodes[4 * node] & nodes[4 * other] & 255 != CONCAT:
            return int64(-1)
        head, tail = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
        if tail != nodes[4 * other + 2] or nodes[4 * tail] & NULLABLE_FLAG or not _is_indent(ctx, head):
            return int64(-1)
        if i64(ctx, NODE_FIRST)[4 * tail] & _BLANKS or (left >= 0 and nodes[4 * head + 3] != left):
            return int64(-1)
        left = int64(nodes[4 * head + 3])
    return left


@njit_inner(int64(CTX, int64, int64, int64))
def _find_longer(ctx, members, left, free):
    """Push on TMP the topmost trie nodes to which more than ``left`` bytes of a set lead, and no other.

    Returns the least number of blanks left with which the tokens would be the same, or FAIL.  All of these bytes may
    begin the state ``free``.
    """
    nodes = i32(ctx, TRIE_NODE)
    sizes = i32(ctx, TRIE_SIZE)
    wide = i32(ctx, TRIE_WIDE)
    wides = i32(ctx, WIDE_STACK)
    allowed = i64(ctx, SETS)[4 * members]
    least = int64(0)
    wides[0] = 0
    p = next_child(ctx, int64(0), int64(0), free)
    while p < len(nodes):
        node = int64(nodes[p])
        byte, depth = node & 255, node >> DEPTH_SHIFT
        if byte < 64 and (allowed >> byte) & 1:
            if depth < left:
                # A node without a token whose only child is another blank makes no difference.
                below = int64(nodes[p + 1]) & 255 if sizes[p] > 1 else int64(64)
                if (
                    i32(ctx, TRIE_TOKEN)[p] >= 0
                    or below >= 64
                    or not (allowed >> below) & 1
                    or sizes[p] != sizes[p + 1] + 1
                ):
                    least = max(least, depth + 1)
                if node & WIDE:
                    wides[depth + 1] = wide[p]
                    p = next_child(ctx, int64(wide[p]), int64(0), free)
                else:
                    p += 1
                continue
            if not room(ctx, TMP, 1):
                return int64(FAIL)
            i32(ctx, TMP)[used(ctx, TMP)] = p
            set_used(ctx, TMP, used(ctx, TMP) + 1)
        if node & CHILD_OF_WIDE:
            p = next_child(ctx, int64(wides[depth]), byte + 1, free)
        else:
            p += int64(sizes[p])
    return least


@njit_inner(RESULT2)
def _with_fewer(ctx, state, left):
    """The state in whose indents so many blanks are left, or FAIL or LIMIT."""
    count = int64(i32(ctx, LEX)[4 * state + LEX_COUNT])
    offset = int64(i32(ctx, LEX)[4 * state + LEX_OFFSET])
    base = used(ctx, TMP)
    if not room(ctx, TMP, 2 * count):
        return int64(FAIL)
    set_used(ctx, TMP, base + 2 * count)
    for i in range(0, 2 * count, 2):
        node = int64(i32(ctx, LEX_POOL)[offset + i + 1])
        nodes = i32(ctx, NODES)
        head, tail = int64(nodes[4 * node + 1]), int64(nodes[4 * node + 2])
        fewer = make_repeat(ctx, int64(nodes[4 * head + 1]), int64(nodes[4 * head + 2]), left)
        if fewer >= 0:
            fewer = make_concat(ctx, fewer, tail)
        if fewer < 0:
            return fewer
        i32(ctx, TMP)[base + i] = i32(ctx, LEX_POOL)[offset + i]
        i32(ctx, TMP)[base + i + 1] = fewer
    result = far_call(ctx, F_LEXER_STATE, base, count)
    set_used(ctx, TMP, base)
    return result


@njit_inner(types.void(CTX, int64, types.boolean))
def _mark_tokens(ctx, base, value):
    """Set or clear in the scratch mask the tokens of the subtrees that stand on TMP from ``base`` on."""
    scratch = i32(ctx, SCRATCH)
    tokens = i32(ctx, TRIE_TOKEN)
    sizes = i32(ctx, TRIE_SIZE)
    same = i32(ctx, SAME_BYTES)
    for i in range(base, used(ctx, TMP)):
        top = int64(i32(ctx, TMP)[i])
        for p in range(top, top + int64(sizes[top])):
            token = int64(tokens[p])
            while token >= 0:
                bit = int32(1) << int32(token & 31)
                scratch[token >> 5] = scratch[token >> 5] | bit if value else scratch[token >> 5] & ~bit
                token = int64(same[token]) if len(same) else int64(-1)


@njit_inner(types.boolean(CTX, int64, int64))
def _is_below(ctx, base, node):
    """Whether a trie node is in one of the subtrees that stand on TMP from ``base`` on."""
    for i in range(base, used(ctx, TMP)):
        top = int64(i32(ctx, TMP)[i])
        if top <= node < top + int64(i32(ctx, TRIE_SIZE)[top]):
            return True
    return False


@njit_inner(RESULT2)
def indent_split(ctx, lexer_state, free):
    """Split a state by the split of the one without bound; returns 1, 0 if it is no indent, FAIL or LIMIT."""
    left = _blanks_left(ctx, lexer_state, free)
    if left < 0:
        return int64(0)
    status = far_call(ctx, F_SPLIT, free, 0)
    if status < 0:
        return status
    split = i32(ctx, SPLITS)
    base = used(ctx, TMP)
    offset = int64(i32(ctx, LEX)[4 * lexer_state + LEX_OFFSET])
    head = int64(i32(ctx, NODES)[4 * int64(i32(ctx, LEX_POOL)[offset + 1]) + 1])
    item = int64(i32(ctx, NODES)[4 * head + 1])
    least = _find_longer(ctx, int64(i32(ctx, NODES)[4 * item + 1]), left, free)
    if least < 0:
        return int64(FAIL)
    other = free
    if used(ctx, TMP) > base and least < left:
        # Many counts have the same tokens.
        set_used(ctx, TMP, base)
        other = _with_fewer(ctx, lexer_state, least)
        status = far_call(ctx, F_SPLIT, other, 0) if other >= 0 else other
        if status < 0:
            return status
    if used(ctx, TMP) == base:
        split = i32(ctx, SPLITS)
        for i in range(5):
            split[5 * lexer_state + i] = split[5 * other + i]
        return int64(1)
    first, count = int64(split[5 * free + SPLIT_LIST]), int64(split[5 * free + SPLIT_COUNT])
    first_crossing, crossing_count = (
        int64(split[5 * free + SPLIT_CROSSINGS]),
        int64(split[5 * free + SPLIT_CROSSING_COUNT]),
    )
    dense = int64(split[5 * free + SPLIT_DENSE])
    if (
        not room(ctx, TOKEN_LISTS, count)
        or not room(ctx, CROSSINGS, 2 * crossing_count)
        or not room(ctx, DENSE, ctx[N_WORDS])
    ):
        return int64(FAIL)
    clear_scratch(ctx)
    _mark_tokens(ctx, base, True)
    lists, scratch = i32(ctx, TOKEN_LISTS), i32(ctx, SCRATCH)
    begin = end = used(ctx, TOKEN_LISTS)
    for i in range(first, first + count):
        token = lists[i]
        lists[end] = token
        end += 1 - ((scratch[token >> 5] >> (token & 31)) & 1)
    set_used(ctx, TOKEN_LISTS, end)
    crossings = i32(ctx, CROSSINGS)
    begin_crossing = end_crossing = used(ctx, CROSSINGS) // 2
    for i in range(first_crossing, first_crossing + crossing_count):
        node = int64(crossings[2 * i])
        if not _is_below(ctx, base, node if node >= 0 else ~node):
            crossings[2 * end_crossing], crossings[2 * end_crossing + 1] = crossings[2 * i], crossings[2 * i + 1]
            end_crossing += 1
    set_used(ctx, CROSSINGS, 2 * end_crossing)
    if dense != NO_DENSE:
        clear_scratch(ctx)
        add_dense(ctx, dense)
        _mark_tokens(ctx, base, False)
        dense = keep_dense(ctx)
    set_used(ctx, TMP, base)
    keep_split(ctx, lexer_state, dense, begin, begin_crossing)
    return int64(1)


far_entry(F_WITHOUT_INDENTS, without_indents)
far_entry(F_INDENTS, indent_split)
