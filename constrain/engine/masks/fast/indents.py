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

from constrain.engine.automata.expressions import CONCAT, NULLABLE_FLAG, REPEAT, SET, UNION, make_concat, make_repeat
from constrain.engine.automata.lexer_states import (
    NO_DENSE,
    SPLIT_COUNT,
    SPLIT_CROSSING_COUNT,
    SPLIT_CROSSINGS,
    SPLIT_DENSE,
    SPLIT_LIST,
)
from constrain.engine.masks.fast.unbounded_twins import uncounted
from constrain.engine.masks.lexer_masks import add_dense, clear_scratch, keep_dense, keep_lexer_mask, next_child
from constrain.engine.storage.access import i32, i64, room, set_used, used
from constrain.engine.storage.header import CTX, INNER_BLANKS, N_WORDS, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import (
    F_INDENTS,
    F_LEXER_MASK,
    F_LEXER_STATE,
    F_SET_OPERATION,
    F_WITHOUT_INDENTS,
    far_call,
    far_entry,
)
from constrain.engine.storage.schemas import (
    BOUNDARIES,
    BYTE_SETS,
    DENSE_MASKS,
    LEXER_MASKS,
    TOKEN_LISTS,
    WORK_STACK,
    boundaries,
    byte_sets,
    children,
    expressions,
    first_bytes,
    last_bytes,
    lexer_members,
    lexer_states,
    node_tokens,
    same_bytes,
    scratch_mask,
    subtree_sizes,
    token_lists,
    trie_nodes,
    wide_nodes,
    wide_stack,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.engine.vocabulary.trie import CHILD_OF_WIDE, DEPTH_SHIFT, WIDE
from constrain.kernels.language import int32, int64, types

_BLANKS = 1 << 0x20 | 1 << 0x09
# Longer unions and sequences are not looked into.
_MOST_PARTS = 4


@njit_inner(types.boolean(CTX, int64))
def _is_indent(ctx, node):
    """Whether an expression is a counter of blanks or tabs."""
    nodes = expressions(ctx)
    if nodes[node].kind != REPEAT or nodes[node].third < 0:
        return False
    item = nodes[node].first
    if nodes[item].kind != SET:
        return False
    members = 4 * nodes[item].first
    sets = i64(ctx, BYTE_SETS)
    return (sets[members] & ~_BLANKS) | sets[members + 1] | sets[members + 2] | sets[members + 3] == 0


@njit_inner(RESULT1)
def _without_indent(ctx, node):
    """A sequence without the bound of the indent that it ends with; itself if there is none, or FAIL.

    The indent must stand behind something that is not a blank, and be longer than any such run of blanks in a token.
    """
    base = used(ctx, WORK_STACK)
    nodes = expressions(ctx)
    last, before = node, int64(-1)
    while nodes[last].kind == CONCAT:
        if not room(ctx, WORK_STACK, 1):
            return int64(FAIL)
        before = nodes[last].first
        work_stack(ctx)[used(ctx, WORK_STACK)] = before
        set_used(ctx, WORK_STACK, used(ctx, WORK_STACK) + 1)
        last = nodes[last].second
    result = node
    if (
        before >= 0
        and _is_indent(ctx, last)
        and nodes[last].third >= ctx[INNER_BLANKS]
        and not nodes[before].flags & NULLABLE_FLAG
        and not last_bytes(ctx)[before, 0] & _BLANKS
    ):
        result = make_repeat(ctx, nodes[last].first, nodes[last].second, int64(-1))
        while result >= 0 and used(ctx, WORK_STACK) > base:
            top = used(ctx, WORK_STACK) - 1
            set_used(ctx, WORK_STACK, top)
            result = make_concat(ctx, work_stack(ctx)[top], result)
    set_used(ctx, WORK_STACK, base)
    return result


@njit_inner(RESULT2)
def without_indents(ctx, node, _unused):
    """An expression without the bounds of indents, if no token can tell the two apart; else itself, or FAIL.

    It is a sequence with a union near its beginning, of which some parts end with an indent.
    """
    nodes = expressions(ctx)
    rest, n = node, 0
    while nodes[rest].kind == CONCAT and n < _MOST_PARTS:
        if nodes[nodes[rest].first].kind == UNION:
            break
        rest = nodes[rest].second
        n += 1
    if nodes[rest].kind != CONCAT or n == _MOST_PARTS:
        return node
    gap, tail = nodes[rest].first, nodes[rest].second
    first, count = nodes[gap].first, nodes[gap].second
    if count > _MOST_PARTS or not room(ctx, WORK_STACK, n + count):
        return node if count > _MOST_PARTS else int64(FAIL)
    base = used(ctx, WORK_STACK)
    set_used(ctx, WORK_STACK, base + n + count)
    rest = node
    for i in range(n):
        work_stack(ctx)[base + i] = nodes[rest].first
        rest = nodes[rest].second
    changed = False
    for i in range(count):
        part = children(ctx)[first + i]
        free = _without_indent(ctx, part)
        if free < 0:
            return free
        changed = changed or free != part
        work_stack(ctx)[base + n + i] = free
    if not changed:
        set_used(ctx, WORK_STACK, base)
        return node
    result = far_call(ctx, F_SET_OPERATION, int64(UNION), base + n)
    if result >= 0:
        result = make_concat(ctx, result, tail)
    for i in range(n - 1, -1, -1):
        if result >= 0:
            result = make_concat(ctx, work_stack(ctx)[base + i], result)
    set_used(ctx, WORK_STACK, base)
    return result


@njit_inner(RESULT2)
def _blanks_left(ctx, state, free):
    """How many blanks may still come in a state, if that is all that tells it from another; else -1.

    What follows the blanks does not begin with one.
    """
    lex, pool, nodes = lexer_states(ctx), lexer_members(ctx), expressions(ctx)
    here, there = lex[state].offset, lex[free].offset
    if lex[state].count != lex[free].count:
        return int64(-1)
    left = int64(-1)
    for i in range(0, 2 * lex[state].count, 2):
        node, other = pool[here + i + 1], pool[there + i + 1]
        if pool[here + i] != pool[there + i] or nodes[node].flags & nodes[other].kind != CONCAT:
            return int64(-1)
        head, tail = nodes[node].first, nodes[node].second
        if tail != nodes[other].second or nodes[tail].flags & NULLABLE_FLAG or not _is_indent(ctx, head):
            return int64(-1)
        if first_bytes(ctx)[tail, 0] & _BLANKS or (left >= 0 and nodes[head].third != left):
            return int64(-1)
        left = nodes[head].third
    return left


@njit_inner(int64(CTX, int64, int64, int64))
def _find_longer(ctx, members, left, free):
    """Push on WORK_STACK the topmost trie nodes to which more than ``left`` bytes of a set lead, and no other.

    Returns the least number of blanks left with which the tokens would be the same, or FAIL.  All of these bytes may
    begin the state ``free``.
    """
    nodes = trie_nodes(ctx)
    sizes = subtree_sizes(ctx)
    wide = wide_nodes(ctx)
    wides = wide_stack(ctx)
    allowed = byte_sets(ctx)[members, 0]
    least = int64(0)
    wides[0] = 0
    p = next_child(ctx, int64(0), int64(0), free)
    while p < len(nodes):
        node = nodes[p]
        byte, depth = node & 255, node >> DEPTH_SHIFT
        if byte < 64 and (allowed >> byte) & 1:
            if depth < left:
                # A node without a token whose only child is another blank makes no difference.
                below = nodes[p + 1] & 255 if sizes[p] > 1 else int64(64)
                if (
                    node_tokens(ctx)[p] >= 0
                    or below >= 64
                    or not (allowed >> below) & 1
                    or sizes[p] != sizes[p + 1] + 1
                ):
                    least = max(least, depth + 1)
                if node & WIDE:
                    wides[depth + 1] = wide[p]
                    p = next_child(ctx, wide[p], int64(0), free)
                else:
                    p += 1
                continue
            if not room(ctx, WORK_STACK, 1):
                return int64(FAIL)
            work_stack(ctx)[used(ctx, WORK_STACK)] = p
            set_used(ctx, WORK_STACK, used(ctx, WORK_STACK) + 1)
        if node & CHILD_OF_WIDE:
            p = next_child(ctx, wides[depth], byte + 1, free)
        else:
            p += sizes[p]
    return least


@njit_inner(RESULT2)
def _with_fewer(ctx, state, left):
    """The state in whose indents so many blanks are left, or FAIL or LIMIT."""
    count = lexer_states(ctx)[state].count
    offset = lexer_states(ctx)[state].offset
    base = used(ctx, WORK_STACK)
    if not room(ctx, WORK_STACK, 2 * count):
        return int64(FAIL)
    set_used(ctx, WORK_STACK, base + 2 * count)
    for i in range(0, 2 * count, 2):
        node = lexer_members(ctx)[offset + i + 1]
        nodes = expressions(ctx)
        head, tail = nodes[node].first, nodes[node].second
        fewer = make_repeat(ctx, nodes[head].first, nodes[head].second, left)
        if fewer >= 0:
            fewer = make_concat(ctx, fewer, tail)
        if fewer < 0:
            return fewer
        work_stack(ctx)[base + i] = lexer_members(ctx)[offset + i]
        work_stack(ctx)[base + i + 1] = fewer
    result = far_call(ctx, F_LEXER_STATE, base, count)
    set_used(ctx, WORK_STACK, base)
    return result


@njit_inner(types.void(CTX, int64, types.boolean))
def _mark_tokens(ctx, base, value):
    """Set or clear in the scratch mask the tokens of the subtrees that stand on WORK_STACK from ``base`` on."""
    scratch = scratch_mask(ctx)
    tokens = node_tokens(ctx)
    sizes = subtree_sizes(ctx)
    same = same_bytes(ctx)
    for i in range(base, used(ctx, WORK_STACK)):
        top = work_stack(ctx)[i]
        for p in range(top, top + sizes[top]):
            token = tokens[p]
            while token >= 0:
                bit = int32(1) << int32(token & 31)
                scratch[token >> 5] = scratch[token >> 5] | bit if value else scratch[token >> 5] & ~bit
                token = same[token] if len(same) else int64(-1)


@njit_inner(types.boolean(CTX, int64, int64))
def _is_below(ctx, base, node):
    """Whether a trie node is in one of the subtrees that stand on WORK_STACK from ``base`` on."""
    for i in range(base, used(ctx, WORK_STACK)):
        top = work_stack(ctx)[i]
        if top <= node < top + subtree_sizes(ctx)[top]:
            return True
    return False


@njit_inner(RESULT2)
def indent_split(ctx, lexer_state, _unused):
    """Split a state by the split of the one without bound; returns 1, NOT_MINE if it is no indent, FAIL or LIMIT."""
    free = uncounted(ctx, lexer_state)
    if free < 0:
        return int64(NOT_MINE) if free == -1 else free
    left = _blanks_left(ctx, lexer_state, free)
    if left < 0:
        return int64(NOT_MINE)
    status = far_call(ctx, F_LEXER_MASK, free, 0)
    if status < 0:
        return status
    split = i32(ctx, LEXER_MASKS)
    base = used(ctx, WORK_STACK)
    offset = lexer_states(ctx)[lexer_state].offset
    head = expressions(ctx)[lexer_members(ctx)[offset + 1]].first
    item = expressions(ctx)[head].first
    least = _find_longer(ctx, expressions(ctx)[item].first, left, free)
    if least < 0:
        return int64(FAIL)
    other = free
    if used(ctx, WORK_STACK) > base and least < left:
        # Many counts have the same tokens.
        set_used(ctx, WORK_STACK, base)
        other = _with_fewer(ctx, lexer_state, least)
        status = far_call(ctx, F_LEXER_MASK, other, 0) if other >= 0 else other
        if status < 0:
            return status
    if used(ctx, WORK_STACK) == base:
        split = i32(ctx, LEXER_MASKS)
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
        or not room(ctx, BOUNDARIES, crossing_count)
        or not room(ctx, DENSE_MASKS, ctx[N_WORDS])
    ):
        return int64(FAIL)
    clear_scratch(ctx)
    _mark_tokens(ctx, base, True)
    lists, scratch = token_lists(ctx), scratch_mask(ctx)
    begin = end = used(ctx, TOKEN_LISTS)
    for i in range(first, first + count):
        token = lists[i]
        lists[end] = token
        end += 1 - ((scratch[token >> 5] >> (token & 31)) & 1)
    set_used(ctx, TOKEN_LISTS, end)
    crossings = boundaries(ctx)
    begin_crossing = end_crossing = used(ctx, BOUNDARIES)
    for i in range(first_crossing, first_crossing + crossing_count):
        node = crossings[i].node
        if not _is_below(ctx, base, node if node >= 0 else ~node):
            crossings[end_crossing].node, crossings[end_crossing].accept = crossings[i].node, crossings[i].accept
            end_crossing += 1
    set_used(ctx, BOUNDARIES, end_crossing)
    if dense != NO_DENSE:
        clear_scratch(ctx)
        add_dense(ctx, dense)
        _mark_tokens(ctx, base, False)
        dense = keep_dense(ctx)
    set_used(ctx, WORK_STACK, base)
    keep_lexer_mask(ctx, lexer_state, dense, begin, begin_crossing)
    return int64(1)


far_entry(F_WITHOUT_INDENTS, without_indents)
far_entry(F_INDENTS, indent_split)
