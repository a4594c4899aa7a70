"""Splits of states that differ from another state only along a few words: the keys of an object.

A state "one of these keys, or any other" goes on like the state "any key" after nearly every byte.  So the two have
the same tokens and the same crossings, but for those below the nodes of the trie that the words lead to.  Only these
are looked at again, with both states beside each other.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int32, int64, types

from constrain.engine.automata.expressions import RESULT2, RESULT3
from constrain.engine.automata.lexer_states import (
    NO_DENSE,
    SPLIT_COUNT,
    SPLIT_CROSSING_COUNT,
    SPLIT_CROSSINGS,
    SPLIT_DENSE,
    SPLIT_LIST,
)
from constrain.engine.masks.lexer_masks import (
    FIRST_SHARED,
    add_dense,
    allow_found,
    clear_scratch,
    keep_dense,
    list_found,
    walk,
    with_same_bytes,
)
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.tables import (
    CLASS_OF,
    CLASSES,
    CROSSINGS,
    CTX,
    DENSE,
    F_ENDS,
    F_LEXER_STEP,
    F_NEAR,
    F_SPLIT,
    FAIL,
    FOUND,
    LEX_TRANS,
    LONGEST,
    N_WORDS,
    SAME_BYTES,
    SCRATCH,
    SHARED_CROSSINGS,
    SHARED_DENSE,
    SPLITS,
    STACK,
    TMP,
    TOKEN_LISTS,
    TRIE_SIZE,
    TRIE_TOKEN,
    far_call,
    far_entry,
    i32,
    room,
    set_used,
    u8,
    used,
)
from constrain.engine.vocabulary.trie import DEPTH_SHIFT

_PARTED = -1


@njit_inner(RESULT3)
def _walk_beside(ctx, lexer_state, near, closure):
    """Run two states over the border of a closure, as far as they are two.

    The nodes on the border that tell them apart are left at the end of TMP, below a count of them; tokens that the
    first state allows below these in FOUND, its crossings there at the end of CROSSINGS.  Returns the number of
    tokens, FAIL or LIMIT.
    """
    record = i32(ctx, SPLITS)
    stack = i32(ctx, STACK)
    class_of = u8(ctx, CLASS_OF)
    classes = ctx[CLASSES]
    trans = i32(ctx, LEX_TRANS)
    sizes = i32(ctx, TRIE_SIZE)
    shared = record[5 * closure + SPLIT_DENSE] <= FIRST_SHARED
    i = int64(record[5 * closure + SPLIT_CROSSINGS])
    end = i + int64(record[5 * closure + SPLIT_CROSSING_COUNT])
    beside = used(ctx, TMP)
    if not room(ctx, TMP, ctx[LONGEST] + 2):
        return int64(FAIL)
    set_used(ctx, TMP, beside + ctx[LONGEST] + 2)
    first_place = used(ctx, TMP)
    stack[0] = lexer_state
    i32(ctx, TMP)[beside] = near
    n = int64(0)
    while i < end:
        pairs = i32(ctx, SHARED_CROSSINGS) if shared else i32(ctx, CROSSINGS)
        node, place = int64(pairs[2 * i]), int64(pairs[2 * i + 1])
        depth = node >> DEPTH_SHIFT
        byte_class = int64(class_of[node & 255])
        here, before = int64(stack[depth]), int64(i32(ctx, TMP)[beside + depth])
        # Nothing follows from the dead state, 0, either.
        there = int64(trans[here * classes + byte_class])
        if there < 0:
            there = far_call(ctx, F_LEXER_STEP, here, byte_class)
            if there < 0:
                return there
        other = int64(trans[before * classes + byte_class])
        if other < 0:
            other = far_call(ctx, F_LEXER_STEP, before, byte_class)
            if other < 0:
                return other
        if there == other:
            i += max(int64(1), -place)
            continue
        if place < 0:
            stack[depth + 1] = there
            i32(ctx, TMP)[beside + depth + 1] = other
        else:
            if not room(ctx, TMP, 1):
                return int64(FAIL)
            i32(ctx, TMP)[used(ctx, TMP)] = place
            set_used(ctx, TMP, used(ctx, TMP) + 1)
            if there:
                n = walk(ctx, place, place + int64(sizes[place]), n)
                if n < 0:
                    return n
        i += 1
    if not room(ctx, TMP, 1):
        return int64(FAIL)
    top = used(ctx, TMP)
    i32(ctx, TMP)[top] = top - first_place
    set_used(ctx, TMP, top + 1)
    return with_same_bytes(ctx, n)


@njit_inner(int64(CTX, int64, int64, int64))
def _copy_crossings(ctx, near, first, count):
    """Append the crossings of a split that are not below the ``count`` trie nodes, upwards, at ``TMP[first]``.

    Returns 0, FAIL, or _PARTED if one stands for several nodes, and just some of them are.
    """
    begin = int64(i32(ctx, SPLITS)[5 * near + SPLIT_CROSSINGS])
    stop = begin + int64(i32(ctx, SPLITS)[5 * near + SPLIT_CROSSING_COUNT])
    if not room(ctx, CROSSINGS, 2 * (stop - begin)):
        return int64(FAIL)
    pairs = i32(ctx, CROSSINGS)
    sizes = i32(ctx, TRIE_SIZE)
    places = i32(ctx, TMP)
    end = used(ctx, CROSSINGS) // 2
    # Both come in the order of the trie.
    k = int64(0)
    for i in range(begin, stop):
        crossing = pairs[2 * i]
        # It may stand for nodes in the subtree of this one (loops.next_node).
        p = crossing if crossing >= 0 else ~crossing
        while k < count and places[first + k] + sizes[places[first + k]] <= p:
            k += 1
        if k < count and places[first + k] <= p:
            continue
        if crossing < 0 and k < count and places[first + k] < p + sizes[p]:
            return int64(_PARTED)
        pairs[2 * end] = crossing
        pairs[2 * end + 1] = pairs[2 * i + 1]
        end += 1
    set_used(ctx, CROSSINGS, 2 * end)
    return int64(0)


@njit_inner(RESULT2)
def _is_in_dense(ctx, near, token):
    """Whether the tokens of a split, listed ones aside, hold this one (1 or 0)."""
    dense = int64(i32(ctx, SPLITS)[5 * near + SPLIT_DENSE])
    if dense == NO_DENSE:
        return int64(0)
    pool = i32(ctx, DENSE)
    if dense <= FIRST_SHARED:
        pool = i32(ctx, SHARED_DENSE)
        dense = (FIRST_SHARED - dense) * ctx[N_WORDS]
    return (int64(pool[dense + (token >> 5)]) >> (token & 31)) & 1


@njit_inner(types.void(CTX, int64, int64, int64))
def _mark_below(ctx, first, count, allowed):
    """Set (``allowed`` 1) or clear (0) in the scratch mask the tokens below the trie nodes at ``TMP[first]``."""
    scratch = i32(ctx, SCRATCH)
    tokens = i32(ctx, TRIE_TOKEN)
    sizes = i32(ctx, TRIE_SIZE)
    same = i32(ctx, SAME_BYTES)
    for k in range(first, first + count):
        place = int64(i32(ctx, TMP)[k])
        for p in range(place, place + int64(sizes[place])):
            token = int64(tokens[p])
            while token >= 0:
                bit = int32(1) << int32(token & 31)
                scratch[token >> 5] = scratch[token >> 5] | bit if allowed else scratch[token >> 5] & ~bit
                token = int64(same[token]) if len(same) else int64(-1)


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _has_same_tokens(ctx, near, n, first, count):
    """Whether a split has, below the ``count`` trie nodes at ``TMP[first]``, the ``n`` tokens in FOUND (1 or 0)."""
    found = i32(ctx, FOUND)
    scratch = i32(ctx, SCRATCH)
    lists = i32(ctx, TOKEN_LISTS)
    tokens = i32(ctx, TRIE_TOKEN)
    sizes = i32(ctx, TRIE_SIZE)
    same = i32(ctx, SAME_BYTES)
    begin = int64(i32(ctx, SPLITS)[5 * near + SPLIT_LIST])
    stop = begin + int64(i32(ctx, SPLITS)[5 * near + SPLIT_COUNT])
    # First, which of those found the split has too.
    clear_scratch(ctx)
    allow_found(ctx, n)
    both = int64(0)
    for i in range(n):
        both += _is_in_dense(ctx, near, int64(found[i]))
    for i in range(begin, stop):
        both += (int64(scratch[lists[i] >> 5]) >> (lists[i] & 31)) & 1
    if both != n:
        return int64(0)
    # Then, whether it has more.
    clear_scratch(ctx)
    _mark_below(ctx, first, count, 1)
    for k in range(first, first + count):
        place = int64(i32(ctx, TMP)[k])
        for p in range(place, place + int64(sizes[place])):
            token = int64(tokens[p])
            while token >= 0:
                both -= _is_in_dense(ctx, near, token)
                token = int64(same[token]) if len(same) else int64(-1)
    for i in range(begin, stop):
        both -= (int64(scratch[lists[i] >> 5]) >> (lists[i] & 31)) & 1
    return int64(both == 0)


@njit_inner(RESULT2)
def near_split(ctx, lexer_state, closure_and_near):
    """Split a state by the split of one that it differs from along a few words.

    Returns 1, 0 if a lexeme may end inside the closure or a crossing would have to be parted, FAIL or LIMIT.
    """
    closure, near = closure_and_near >> 32, closure_and_near & 0xFFFFFFFF
    status = far_call(ctx, F_SPLIT, near, 0)
    if status < 0:
        return status
    words = ctx[N_WORDS]
    if not room(ctx, DENSE, words) or not room(ctx, TOKEN_LISTS, words):
        return int64(FAIL)
    bottom = used(ctx, TMP)
    first_crossing = used(ctx, CROSSINGS)
    for state in (lexer_state, near):
        status = far_call(ctx, F_ENDS, state, closure)
        if status < 0:
            return status
    if used(ctx, CROSSINGS) != first_crossing:
        set_used(ctx, CROSSINGS, first_crossing)
        return int64(0)
    n = _walk_beside(ctx, lexer_state, near, closure)
    if n < 0:
        return n
    top = used(ctx, TMP) - 1
    count = int64(i32(ctx, TMP)[top])
    first = top - count
    status = _copy_crossings(ctx, near, first, count)
    if status == _PARTED:
        set_used(ctx, TMP, bottom)
        set_used(ctx, CROSSINGS, first_crossing)
        return int64(0)
    if status < 0:
        return status

    split = i32(ctx, SPLITS)
    dense = int64(split[5 * near + SPLIT_DENSE])
    begin, listed = int64(split[5 * near + SPLIT_LIST]), int64(split[5 * near + SPLIT_COUNT])
    if not _has_same_tokens(ctx, near, n, first, count):
        lists = i32(ctx, TOKEN_LISTS)
        scratch = i32(ctx, SCRATCH)
        end = used(ctx, TOKEN_LISTS)
        if dense == split[5 * closure + SPLIT_DENSE] and listed + n <= words:
            # The dense part is the closure, which has nothing below the border.
            clear_scratch(ctx)
            _mark_below(ctx, first, count, 1)
            left = end
            for i in range(begin, begin + listed):
                if not (scratch[lists[i] >> 5] >> (lists[i] & 31)) & 1:
                    lists[left] = lists[i]
                    left += 1
            set_used(ctx, TOKEN_LISTS, left)
            list_found(ctx, n)
            begin, listed = end, left + n - end
        else:
            clear_scratch(ctx)
            if dense != NO_DENSE:
                add_dense(ctx, dense)
            for i in range(begin, begin + listed):
                scratch[lists[i] >> 5] |= int32(1) << int32(lists[i] & 31)
            _mark_below(ctx, first, count, 0)
            allow_found(ctx, n)
            dense, begin, listed = keep_dense(ctx), end, int64(0)
    set_used(ctx, TMP, bottom)
    split[5 * lexer_state + SPLIT_LIST] = begin
    split[5 * lexer_state + SPLIT_COUNT] = listed
    split[5 * lexer_state + SPLIT_CROSSINGS] = first_crossing // 2
    split[5 * lexer_state + SPLIT_CROSSING_COUNT] = (used(ctx, CROSSINGS) - first_crossing) // 2
    split[5 * lexer_state + SPLIT_DENSE] = dense
    return int64(1)


far_entry(F_NEAR, near_split)
