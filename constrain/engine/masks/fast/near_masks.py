"""Splits of states that differ from another state only along a few words: the keys of an object.

A state "one of these keys, or any other" goes on like the state "any key" after nearly every byte.  So the two have
the same tokens and the same crossings, but for those below the nodes of the trie that the words lead to.  Only these
are looked at again, with both states beside each other.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexer_states import (
    NO_DENSE,
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
from constrain.engine.storage.access import i32, room, set_used, used
from constrain.engine.storage.header import CLASSES, CTX, LONGEST, N_WORDS, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_ENDS, F_LEXER_MASK, F_LEXER_STEP, F_NEAR, far_call, far_entry
from constrain.engine.storage.schemas import (
    BOUNDARIES,
    DENSE_MASKS,
    SHARED_BOUNDARIES,
    SHARED_DENSE,
    TOKEN_LISTS,
    WORK_STACK,
    boundaries,
    byte_classes,
    found_tokens,
    lexer_masks,
    lexer_transitions,
    node_tokens,
    same_bytes,
    scratch_mask,
    subtree_sizes,
    token_lists,
    walk_stack,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.language import int32, int64, types

_PARTED = -1


@njit_inner(RESULT3)
def _walk_beside(ctx, lexer_state, near, closure):
    """Run two states over the border of a closure, as far as they are two.

    The nodes on the border that tell them apart are left at the end of WORK_STACK, below a count of them; tokens that
    the first state allows below these in FOUND_TOKENS, its boundaries there at the end of BOUNDARIES.  Returns the
    number of tokens, FAIL or LIMIT.
    """
    record = lexer_masks(ctx)
    stack = walk_stack(ctx)
    class_of = byte_classes(ctx)
    classes = ctx[CLASSES]
    trans = lexer_transitions(ctx)
    sizes = subtree_sizes(ctx)
    shared = record[closure].dense <= FIRST_SHARED
    i = record[closure].boundaries
    end = i + record[closure].boundary_count
    beside = used(ctx, WORK_STACK)
    if not room(ctx, WORK_STACK, ctx[LONGEST] + 2):
        return int64(FAIL)
    set_used(ctx, WORK_STACK, beside + ctx[LONGEST] + 2)
    first_place = used(ctx, WORK_STACK)
    stack[0] = lexer_state
    work_stack(ctx)[beside] = near
    n = int64(0)
    while i < end:
        pairs = i32(ctx, SHARED_BOUNDARIES) if shared else i32(ctx, BOUNDARIES)
        node, place = int64(pairs[2 * i]), int64(pairs[2 * i + 1])
        depth = node >> DEPTH_SHIFT
        byte_class = class_of[node & 255]
        here, before = stack[depth], work_stack(ctx)[beside + depth]
        # Nothing follows from the dead state, 0, either.
        there = trans[here * classes + byte_class]
        if there < 0:
            there = far_call(ctx, F_LEXER_STEP, here, byte_class)
            if there < 0:
                return there
        other = trans[before * classes + byte_class]
        if other < 0:
            other = far_call(ctx, F_LEXER_STEP, before, byte_class)
            if other < 0:
                return other
        if there == other:
            i += max(int64(1), -place)
            continue
        if place < 0:
            stack[depth + 1] = there
            work_stack(ctx)[beside + depth + 1] = other
        else:
            if not room(ctx, WORK_STACK, 1):
                return int64(FAIL)
            work_stack(ctx)[used(ctx, WORK_STACK)] = place
            set_used(ctx, WORK_STACK, used(ctx, WORK_STACK) + 1)
            if there:
                n = walk(ctx, place, place + sizes[place], n)
                if n < 0:
                    return n
        i += 1
    if not room(ctx, WORK_STACK, 1):
        return int64(FAIL)
    top = used(ctx, WORK_STACK)
    work_stack(ctx)[top] = top - first_place
    set_used(ctx, WORK_STACK, top + 1)
    return with_same_bytes(ctx, n)


@njit_inner(int64(CTX, int64, int64, int64))
def _copy_crossings(ctx, near, first, count):
    """Append the crossings of a split that are not below the ``count`` trie nodes, upwards, at ``WORK_STACK[first]``.

    Returns 0, FAIL, or _PARTED if one stands for several nodes, and just some of them are.
    """
    begin = lexer_masks(ctx)[near].boundaries
    stop = begin + lexer_masks(ctx)[near].boundary_count
    if not room(ctx, BOUNDARIES, stop - begin):
        return int64(FAIL)
    pairs = boundaries(ctx)
    sizes = subtree_sizes(ctx)
    places = work_stack(ctx)
    end = used(ctx, BOUNDARIES)
    # Both come in the order of the trie.
    k = int64(0)
    for i in range(begin, stop):
        crossing = pairs[i].node
        # It may stand for nodes in the subtree of this one (boundaries.py).
        p = crossing if crossing >= 0 else ~crossing
        while k < count and places[first + k] + sizes[places[first + k]] <= p:
            k += 1
        if k < count and places[first + k] <= p:
            continue
        if crossing < 0 and k < count and places[first + k] < p + sizes[p]:
            return int64(_PARTED)
        pairs[end].node = crossing
        pairs[end].accept = pairs[i].accept
        end += 1
    set_used(ctx, BOUNDARIES, end)
    return int64(0)


@njit_inner(RESULT2)
def _is_in_dense(ctx, near, token):
    """Whether the tokens of a split, listed ones aside, hold this one (1 or 0)."""
    dense = lexer_masks(ctx)[near].dense
    if dense == NO_DENSE:
        return int64(0)
    pool = i32(ctx, DENSE_MASKS)
    if dense <= FIRST_SHARED:
        pool = i32(ctx, SHARED_DENSE)
        dense = (FIRST_SHARED - dense) * ctx[N_WORDS]
    return (int64(pool[dense + (token >> 5)]) >> (token & 31)) & 1


@njit_inner(types.void(CTX, int64, int64, int64))
def _mark_below(ctx, first, count, allowed):
    """Set (``allowed`` 1) or clear (0) in the scratch mask the tokens below the trie nodes at ``WORK_STACK[first]``."""
    scratch = scratch_mask(ctx)
    tokens = node_tokens(ctx)
    sizes = subtree_sizes(ctx)
    same = same_bytes(ctx)
    for k in range(first, first + count):
        place = work_stack(ctx)[k]
        for p in range(place, place + sizes[place]):
            token = tokens[p]
            while token >= 0:
                bit = int32(1) << int32(token & 31)
                scratch[token >> 5] = scratch[token >> 5] | bit if allowed else scratch[token >> 5] & ~bit
                token = same[token] if len(same) else int64(-1)


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _has_same_tokens(ctx, near, n, first, count):
    """Whether a split has the ``n`` tokens in FOUND_TOKENS below the ``count`` nodes at ``WORK_STACK[first]``."""
    found = found_tokens(ctx)
    scratch = scratch_mask(ctx)
    lists = token_lists(ctx)
    tokens = node_tokens(ctx)
    sizes = subtree_sizes(ctx)
    same = same_bytes(ctx)
    begin = lexer_masks(ctx)[near].tokens
    stop = begin + lexer_masks(ctx)[near].token_count
    # First, which of those found the split has too.
    clear_scratch(ctx)
    allow_found(ctx, n)
    both = int64(0)
    for i in range(n):
        both += _is_in_dense(ctx, near, found[i])
    for i in range(begin, stop):
        both += (scratch[lists[i] >> 5] >> (lists[i] & 31)) & 1
    if both != n:
        return int64(0)
    # Then, whether it has more.
    clear_scratch(ctx)
    _mark_below(ctx, first, count, 1)
    for k in range(first, first + count):
        place = work_stack(ctx)[k]
        for p in range(place, place + sizes[place]):
            token = tokens[p]
            while token >= 0:
                both -= _is_in_dense(ctx, near, token)
                token = same[token] if len(same) else int64(-1)
    for i in range(begin, stop):
        both -= (scratch[lists[i] >> 5] >> (lists[i] & 31)) & 1
    return int64(both == 0)


@njit_inner(RESULT2)
def near_split(ctx, lexer_state, closure_and_near):
    """Split a state by the split of one that it differs from along a few words.

    Returns 1, NOT_MINE if a lexeme may end inside the closure or a crossing would have to be parted, FAIL or LIMIT.
    """
    closure, near = closure_and_near >> 32, closure_and_near & 0xFFFFFFFF
    status = far_call(ctx, F_LEXER_MASK, near, 0)
    if status < 0:
        return status
    words = ctx[N_WORDS]
    if not room(ctx, DENSE_MASKS, words) or not room(ctx, TOKEN_LISTS, words):
        return int64(FAIL)
    bottom = used(ctx, WORK_STACK)
    first_crossing = used(ctx, BOUNDARIES)
    for state in (lexer_state, near):
        status = far_call(ctx, F_ENDS, state, closure)
        if status < 0:
            return status
    if used(ctx, BOUNDARIES) != first_crossing:
        set_used(ctx, BOUNDARIES, first_crossing)
        return int64(NOT_MINE)
    n = _walk_beside(ctx, lexer_state, near, closure)
    if n < 0:
        return n
    top = used(ctx, WORK_STACK) - 1
    count = work_stack(ctx)[top]
    first = top - count
    status = _copy_crossings(ctx, near, first, count)
    if status == _PARTED:
        set_used(ctx, WORK_STACK, bottom)
        set_used(ctx, BOUNDARIES, first_crossing)
        return int64(NOT_MINE)
    if status < 0:
        return status

    split = lexer_masks(ctx)
    dense = split[near].dense
    begin, listed = split[near].tokens, split[near].token_count
    if not _has_same_tokens(ctx, near, n, first, count):
        lists = token_lists(ctx)
        scratch = scratch_mask(ctx)
        end = used(ctx, TOKEN_LISTS)
        if dense == split[closure].dense and listed + n <= words:
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
    set_used(ctx, WORK_STACK, bottom)
    split[lexer_state].tokens = begin
    split[lexer_state].token_count = listed
    split[lexer_state].boundaries = first_crossing
    split[lexer_state].boundary_count = used(ctx, BOUNDARIES) - first_crossing
    split[lexer_state].dense = dense
    return int64(1)


far_entry(F_NEAR, near_split)
