"""From a state to the set of tokens that may come next.

A token is allowed in a state if it is allowed for one of the state's threads (row, lexer state).
For one thread the tokens fall into two parts:

* those that stay inside the lexemes under way: they depend on the lexer state alone;
* those in which a lexeme ends: the row decides about what comes after.

So each lexer state is *split* once: the first part as a set of tokens, the second as a list of
*crossings*, the places in the trie at which a lexeme can end.  The mask of a state is then a copy
of the first part, plus a walk below each crossing with the row that follows there.  It is kept as
(dense part, list of further tokens): a few hundred bytes, since the dense part is shared.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64, njit, types

from constrain.engine.lexer import (
    LEX_ACCEPT,
    LEX_GOES_ON,
    NOT_SPLIT,
    SPLIT_COUNT,
    SPLIT_CROSSING_COUNT,
    SPLIT_CROSSINGS,
    SPLIT_DENSE,
    SPLIT_LIST,
    clear_splits,
    lexer_step,
)
from constrain.engine.nodes import RESULT1
from constrain.engine.rows import CORE_INIT, ROW_CORE, scan
from constrain.engine.states import (
    MASK_COUNT,
    MASK_DENSE,
    MASK_LIST,
    NO_MASK,
    STATE_ACCEPTS,
    STATE_COUNT,
    STATE_OFFSET,
    reset_work,
    state_of_row,
    step,
)
from constrain.engine.tables import (
    CLASS_OF,
    CLASSES,
    CORES,
    CROSSINGS,
    CTX,
    DENSE,
    DUPLICATES,
    EMPTY_TOKENS,
    EOS_TOKENS,
    FAIL,
    LEX,
    LEX_TRANS,
    N_WORDS,
    ROWS,
    SCRATCH,
    SPLITS,
    STACK,
    STATE_HASH,
    STATE_MASKS,
    STATE_TRANS,
    STATE_WORK,
    STATES,
    THREADS,
    TOKEN_LISTS,
    TRIE_NODE,
    TRIE_SIZE,
    TRIE_TOKEN,
    i32,
    i64,
    room,
    set_used,
    u8,
    used,
)


@njit(RESULT1, cache=True, nogil=True)
def _add_duplicates(ctx, first):
    """Extend the list TOKEN_LISTS[first:] and the scratch mask by the tokens that have the same bytes as one in it."""
    pairs = i32(ctx, DUPLICATES)
    scratch = i32(ctx, SCRATCH)
    if not room(ctx, TOKEN_LISTS, len(pairs) // 2):
        return int64(FAIL)
    lists = i32(ctx, TOKEN_LISTS)
    n = used(ctx, TOKEN_LISTS)
    for i in range(0, len(pairs), 2):
        original, duplicate = int64(pairs[i]), int64(pairs[i + 1])
        if (scratch[original >> 5] >> (original & 31)) & 1 and not (scratch[duplicate >> 5] >> (duplicate & 31)) & 1:
            scratch[duplicate >> 5] |= 1 << (duplicate & 31)
            lists[n] = duplicate
            n += 1
    set_used(ctx, TOKEN_LISTS, n)
    return n - first


@njit(RESULT1, cache=True, nogil=True)
def _split(ctx, lexer_state):
    """Split the tokens of a lexer state (see the module's docstring); returns 0, FAIL or LIMIT."""
    if i32(ctx, SPLITS)[5 * lexer_state + SPLIT_DENSE] != NOT_SPLIT:
        return int64(0)
    words = ctx[N_WORDS]
    nodes = i32(ctx, TRIE_NODE)
    sizes = i32(ctx, TRIE_SIZE)
    tokens = i32(ctx, TRIE_TOKEN)
    stack = i32(ctx, STACK)
    class_of = u8(ctx, CLASS_OF)
    scratch = i32(ctx, SCRATCH)
    classes = ctx[CLASSES]
    n_nodes = len(nodes)
    # Room for every token there is, so that the walk need not ask.
    if not room(ctx, TOKEN_LISTS, 32 * words):
        return int64(FAIL)
    for i in range(words):
        scratch[i] = 0
    lists = i32(ctx, TOKEN_LISTS)
    first = used(ctx, TOKEN_LISTS)
    n = first
    first_crossing = used(ctx, CROSSINGS) // 2
    crossing = first_crossing
    stack[0] = lexer_state
    p = 0
    while p < n_nodes:
        node = int64(nodes[p])
        depth = node >> 8
        here = int64(stack[depth])
        byte_class = int64(class_of[node & 255])
        there = int64(i32(ctx, LEX_TRANS)[here * classes + byte_class])
        if there < 0:
            there = lexer_step(ctx, here, byte_class)
            if there < 0:
                return there
        if there == 0:
            p += sizes[p]
            continue
        token = int64(tokens[p])
        if token >= 0:
            scratch[token >> 5] |= 1 << (token & 31)
            lists[n] = token
            n += 1
        if sizes[p] > 1:
            record = 4 * there
            accept = i32(ctx, LEX)[record + LEX_ACCEPT]
            if accept:
                if not room(ctx, CROSSINGS, 2 * (crossing - first_crossing + 1)):
                    return int64(FAIL)
                crossings = i32(ctx, CROSSINGS)
                crossings[2 * crossing] = p
                crossings[2 * crossing + 1] = accept
                crossing += 1
            if i32(ctx, LEX)[record + LEX_GOES_ON] == 0:
                p += sizes[p]
                continue
        stack[depth + 1] = there
        p += 1
    set_used(ctx, TOKEN_LISTS, n)
    count = _add_duplicates(ctx, first)
    if count < 0:
        set_used(ctx, TOKEN_LISTS, first)
        return count
    dense = int64(-1)
    if count > words // 8:
        set_used(ctx, TOKEN_LISTS, first)
        if not room(ctx, DENSE, words):
            return int64(FAIL)
        dense = used(ctx, DENSE)
        copy = i32(ctx, DENSE)
        for i in range(words):
            copy[dense + i] = scratch[i]
        set_used(ctx, DENSE, dense + words)
        count = int64(0)
    set_used(ctx, CROSSINGS, 2 * crossing)
    split = i32(ctx, SPLITS)
    split[5 * lexer_state + SPLIT_DENSE] = dense
    split[5 * lexer_state + SPLIT_LIST] = first
    split[5 * lexer_state + SPLIT_COUNT] = count
    split[5 * lexer_state + SPLIT_CROSSINGS] = first_crossing
    split[5 * lexer_state + SPLIT_CROSSING_COUNT] = crossing - first_crossing
    return int64(0)


@njit(int64(CTX, int64, int64), cache=True, nogil=True)
def _walk(ctx, root, state):
    """Note the tokens strictly below trie node ``root`` that are allowed in ``state``; returns 0, FAIL or LIMIT.

    They are set in the scratch mask, and those that were not set before are appended to TOKEN_LISTS.
    """
    nodes = i32(ctx, TRIE_NODE)
    sizes = i32(ctx, TRIE_SIZE)
    tokens = i32(ctx, TRIE_TOKEN)
    stack = i32(ctx, STACK)
    class_of = u8(ctx, CLASS_OF)
    scratch = i32(ctx, SCRATCH)
    lists = i32(ctx, TOKEN_LISTS)
    classes = ctx[CLASSES]
    n = used(ctx, TOKEN_LISTS)
    stack[(int64(nodes[root]) >> 8) + 1] = state
    p = root + 1
    end = root + int64(sizes[root])
    while p < end:
        node = int64(nodes[p])
        depth = node >> 8
        here = int64(stack[depth])
        byte_class = int64(class_of[node & 255])
        there = int64(i32(ctx, STATE_TRANS)[here * classes + byte_class])
        if there < 0:
            there = step(ctx, here, byte_class)
            if there < 0:
                return there
        if there == 0:
            p += int64(sizes[p])
            continue
        token = int64(tokens[p])
        if token >= 0 and not (scratch[token >> 5] >> (token & 31)) & 1:
            scratch[token >> 5] |= 1 << (token & 31)
            lists[n] = token
            n += 1
        stack[depth + 1] = there
        p += 1
    set_used(ctx, TOKEN_LISTS, n)
    return int64(0)


@njit(RESULT1, cache=True, nogil=True)
def compute_mask(ctx, state):
    """Compute the mask of a state and keep it; returns 0, FAIL or LIMIT."""
    reset_work(ctx)
    words = ctx[N_WORDS]
    offset = int64(i32(ctx, STATES)[3 * state + STATE_OFFSET])
    count = int64(i32(ctx, STATES)[3 * state + STATE_COUNT])
    dense = int64(-1)
    n_dense = 0
    for i in range(offset, offset + count):
        lexer_state = int64(i32(ctx, THREADS)[2 * i + 1])
        status = _split(ctx, lexer_state)
        if status < 0:
            return status
        if i32(ctx, SPLITS)[5 * lexer_state + SPLIT_DENSE] >= 0:
            n_dense += 1
            dense = int64(i32(ctx, SPLITS)[5 * lexer_state + SPLIT_DENSE])
    if not room(ctx, TOKEN_LISTS, 32 * words) or not room(ctx, STATE_WORK, 1):
        return int64(FAIL)
    # The scratch mask holds what is allowed so far; the list, what of it is not in the dense part.
    scratch = i32(ctx, SCRATCH)
    pool = i32(ctx, DENSE)
    if n_dense == 1:
        for i in range(words):
            scratch[i] = pool[dense + i]
    else:
        for i in range(words):
            scratch[i] = 0
        for i in range(offset, offset + count):
            part = int64(i32(ctx, SPLITS)[5 * int64(i32(ctx, THREADS)[2 * i + 1]) + SPLIT_DENSE])
            if part >= 0:
                for j in range(words):
                    scratch[j] |= pool[part + j]
    first = used(ctx, TOKEN_LISTS)
    for i in range(offset, offset + count):
        lists = i32(ctx, TOKEN_LISTS)
        split = i32(ctx, SPLITS)
        record = 5 * int64(i32(ctx, THREADS)[2 * i + 1])
        n = used(ctx, TOKEN_LISTS)
        begin = int64(split[record + SPLIT_LIST])
        for j in range(begin, begin + int64(split[record + SPLIT_COUNT])):
            token = int64(lists[j])
            if not (scratch[token >> 5] >> (token & 31)) & 1:
                scratch[token >> 5] |= 1 << (token & 31)
                lists[n] = token
                n += 1
        set_used(ctx, TOKEN_LISTS, n)
        row = int64(i32(ctx, THREADS)[2 * i])
        begin = int64(split[record + SPLIT_CROSSINGS])
        last_accept = int64(-1)
        below = int64(0)
        for j in range(begin, begin + int64(split[record + SPLIT_CROSSING_COUNT])):
            crossings = i32(ctx, CROSSINGS)
            accept = int64(crossings[2 * j + 1])
            if accept != last_accept:
                last_accept = accept
                if not room(ctx, STATE_WORK, 1):
                    return int64(FAIL)
                i64(ctx, STATE_WORK)[0] = row << 32 | accept
                next_row = scan(ctx, i64(ctx, STATE_WORK), int64(1))
                if next_row < 0:
                    return next_row
                core = int64(i32(ctx, ROWS)[5 * next_row + ROW_CORE])
                below = state_of_row(ctx, next_row, int64(i32(ctx, CORES)[7 * core + CORE_INIT]))
                if below < 0:
                    return below
            if below:
                status = _walk(ctx, int64(i32(ctx, CROSSINGS)[2 * j]), below)
                if status < 0:
                    set_used(ctx, TOKEN_LISTS, first)
                    return status
    listed = _add_duplicates(ctx, first)
    if listed < 0:
        set_used(ctx, TOKEN_LISTS, first)
        return listed
    if n_dense > 1 or listed > words // 4:
        set_used(ctx, TOKEN_LISTS, first)
        if not room(ctx, DENSE, words):
            return int64(FAIL)
        dense = used(ctx, DENSE)
        pool = i32(ctx, DENSE)
        for i in range(words):
            pool[dense + i] = scratch[i]
        set_used(ctx, DENSE, dense + words)
        listed = int64(0)
    masks = i32(ctx, STATE_MASKS)
    masks[3 * state + MASK_DENSE] = dense
    masks[3 * state + MASK_LIST] = first
    masks[3 * state + MASK_COUNT] = listed
    return int64(0)


@njit(int64(CTX, int64, types.int32[:, ::1], int64), cache=True, nogil=True)
def write_mask(ctx, state, out, index):
    """Write the mask of ``state`` to row ``index`` of ``out`` (int32[batch, words]).

    Returns 0, or -1 if the mask has yet to be computed (:func:`compute_mask`).
    """
    masks = i32(ctx, STATE_MASKS)
    dense = int64(masks[3 * state + MASK_DENSE])
    if dense == NO_MASK:
        return int64(-1)
    words = ctx[N_WORDS]
    row = out[index]
    if dense >= 0:
        pool = i32(ctx, DENSE)
        for i in range(words):
            row[i] = pool[dense + i]
    else:
        for i in range(words):
            row[i] = 0
    lists = i32(ctx, TOKEN_LISTS)
    begin = int64(masks[3 * state + MASK_LIST])
    for i in range(begin, begin + int64(masks[3 * state + MASK_COUNT])):
        token = int64(lists[i])
        row[token >> 5] |= 1 << (token & 31)
    empty = i32(ctx, EMPTY_TOKENS)
    for i in range(len(empty)):
        row[empty[i] >> 5] |= 1 << (empty[i] & 31)
    if i32(ctx, STATES)[3 * state + STATE_ACCEPTS]:
        ends = i32(ctx, EOS_TOKENS)
        for i in range(len(ends)):
            row[ends[i] >> 5] |= 1 << (ends[i] & 31)
    return int64(0)


@njit(types.void(CTX), cache=True, nogil=True)
def forget_masks(ctx):
    """Drop every mask and every split; states and rows stay valid."""
    masks = i32(ctx, STATE_MASKS)
    for state in range(used(ctx, STATE_HASH)):
        masks[3 * state + MASK_DENSE] = NO_MASK
    clear_splits(ctx)
    set_used(ctx, DENSE, 0)
    set_used(ctx, TOKEN_LISTS, 0)
    set_used(ctx, CROSSINGS, 0)
