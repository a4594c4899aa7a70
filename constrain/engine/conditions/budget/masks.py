"""What each token that is allowed would leave to be finished, in tokens: the mask under a budget.

A walk over the trie with whole states, as for a recognizer; each state's count is known after its first
visit (budget/completions.py).  Inside a string that would be a hundred thousand tokens, so most of it is left out:

    No token that stays within the lexemes of a state needs more than a token for each byte that finishing
    then costs at most (budget/costs.py).  Often it is far less: let the only thread of a state be in the only
    lexeme x, begun in row r, with the expression n, and T the state after x in r.  However x goes on, it can
    be finished at the cost WORST of n at most, a token for each byte; and then T.  So no token that stays
    within x needs more than WORST(n) + tokens(T).

This is so for the counts as they are, not only for some completion.  The completion of a state in the
middle of x is a way to the end of x and then that of T: where x could go on as well as end, going on means
ending it later, which costs more.

If that is within the budget, the tokens below the trie node are left out, but for those that go beyond the
end of x.  They are found by the crossings of the lexer state (masks/lexer_masks.py), and their states are visited.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import int32, int64, types, uint64

from constrain.engine.automata.expressions import RESULT1, RESULT2
from constrain.engine.automata.lexer_states import (
    LEX_ACCEPT,
    LEX_COUNT,
    LEX_OFFSET,
    NO_DENSE,
    SPLIT_CROSSING_COUNT,
    SPLIT_CROSSINGS,
    SPLIT_DENSE,
)
from constrain.engine.conditions.budget.completions import CHAIN_LIMIT, reset_costs
from constrain.engine.conditions.budget.costs import STATE_FIELDS, STATE_LEAST, STATE_WORST
from constrain.engine.conditions.budget.expression_costs import COST_FIELDS, MISSING, NEVER, WORST, search_record
from constrain.engine.masks.fast.self_loops import goes_on, next_node
from constrain.engine.parser.configurations import (
    IS_HARD,
    STATE_ACCEPTS,
    STATE_COUNT,
    STATE_OFFSET,
    first_groups,
    state_at_row,
    state_kinds,
)
from constrain.engine.parser.earley_sets import CORE_INIT, ROW_CORE
from constrain.engine.storage.jit import njit_allocating, njit_entry, njit_inner
from constrain.engine.storage.statuses import IN_GROUPS, NO_GROUPS
from constrain.engine.storage.tables import (
    CLASS_OF,
    CLASSES,
    CORES,
    COST_STACK,
    CROSSINGS,
    CTX,
    EMPTY_TOKENS,
    EOS_TOKENS,
    F_ACCEPT_SET,
    F_LEXER_STEP,
    F_SCAN,
    F_SPLIT,
    F_STATE_COST,
    F_STEP,
    F_TOKENS,
    FAIL,
    LEX,
    LEX_POOL,
    LEX_TRANS,
    N_WORDS,
    NODE_COSTS,
    OPEN,
    OPEN_NODES,
    ROWS,
    SAME_BYTES,
    SCRATCH,
    SEARCH_PLACES,
    SEARCH_RECORDS,
    SPLITS,
    STACK,
    STATE_COSTS,
    STATE_TRANS,
    STATE_WORK,
    STATES,
    THREADS,
    TMP,
    TOKEN_BYTES,
    TOKEN_COSTS,
    TOKEN_START,
    TRIE_CHILDREN,
    TRIE_NODE,
    TRIE_SIZE,
    TRIE_TOKEN,
    far_call,
    i32,
    i64,
    room,
    set_used,
    u8,
    used,
)
from constrain.engine.vocabulary.trie import DEPTH_SHIFT

_SHIFT, _BYTE = uint64(DEPTH_SHIFT), uint64(255)

_HISTOGRAM = 4096

# More tokens than this in a string are not gone through one by one.
_MANY = 8192

ALL, CROSSINGS_ONLY = -1, -2
"""Instead of a budget, for :func:`cost_tokens`: leave nothing out; leave out all that stays within the lexemes."""


@njit_inner(RESULT2)
def _state_after(ctx, row, accept):
    """The state after any lexeme of an accept set that began in a row; FAIL or LIMIT if < 0."""
    if not room(ctx, STATE_WORK, 1):
        return int64(FAIL)
    i64(ctx, STATE_WORK)[0] = row << 32 | accept
    after = far_call(ctx, F_SCAN, 0, 1)
    return after if after < 0 else state_at_row(ctx, after)


@njit_inner(RESULT2)
def _tokens_after(ctx, row, lexeme):
    """What finishing takes in the state after a lexeme that began in a row; NEVER if not sure, FAIL or LIMIT."""
    top = used(ctx, TMP)
    if not room(ctx, TMP, 1):
        return int64(FAIL)
    i32(ctx, TMP)[top] = lexeme
    accept = far_call(ctx, F_ACCEPT_SET, top, 1)
    if accept < 0:
        return accept
    after = _state_after(ctx, row, accept)
    if after < 0:
        return after
    count = far_call(ctx, F_TOKENS, after, 0)
    # A long completion is not counted by how it is cut into tokens.
    if count >= 0 and i32(ctx, STATE_COSTS)[STATE_FIELDS * after + STATE_LEAST] > CHAIN_LIMIT - MISSING:
        return int64(NEVER)
    return count


@njit_inner(types.boolean(CTX, int64))
def _has_begun(ctx, state):
    """Whether a lexeme may have begun with the last byte, which means that one may have ended."""
    offset = int64(i32(ctx, STATES)[3 * state + STATE_OFFSET])
    for i in range(offset, offset + int64(i32(ctx, STATES)[3 * state + STATE_COUNT])):
        core = int64(i32(ctx, ROWS)[5 * int64(i32(ctx, THREADS)[2 * i]) + ROW_CORE])
        if i32(ctx, CORES)[7 * core + CORE_INIT] == i32(ctx, THREADS)[2 * i + 1]:
            return True
    return False


@njit_inner(int64(CTX, int64, int64[::1]))
def _inside(ctx, state, known):
    """What a token that stays within the lexemes of a state needs at most; NEVER if not known, FAIL or LIMIT.

    ``known`` is int64[4]: the row, the lexeme and the tokens after it of the last call, so that most calls are
    short; and what is small enough.
    """
    status = far_call(ctx, F_STATE_COST, state, 0)
    if status < 0:
        return status
    # No more than a token for each byte; unless there is a byte that is no token.
    worst = int64(i32(ctx, STATE_COSTS)[STATE_FIELDS * state + STATE_WORST])
    if worst < MISSING and worst <= known[3]:
        return worst
    if i32(ctx, STATES)[3 * state + STATE_COUNT] != 1:
        return int64(NEVER)
    thread = 2 * int64(i32(ctx, STATES)[3 * state + STATE_OFFSET])
    row = int64(i32(ctx, THREADS)[thread])
    lexer_state = 4 * int64(i32(ctx, THREADS)[thread + 1])
    if i32(ctx, LEX)[lexer_state + LEX_COUNT] != 1:
        return int64(NEVER)
    member = int64(i32(ctx, LEX)[lexer_state + LEX_OFFSET])
    lexeme, node = int64(i32(ctx, LEX_POOL)[member]), int64(i32(ctx, LEX_POOL)[member + 1])
    worst = int64(i32(ctx, NODE_COSTS)[COST_FIELDS * node + WORST])
    if worst >= MISSING:
        return int64(NEVER)
    if known[0] != row or known[1] != lexeme:
        after = _tokens_after(ctx, row, lexeme)
        if after < 0:
            return after
        known[0], known[1], known[2] = row, lexeme, after
    return min(worst + known[2], int64(NEVER))


@njit_inner(int64(CTX, int64, int64, int64))
def _note(ctx, token, count, n):
    """Append a token and those with the same bytes, with their counts, to TOKEN_COSTS; returns the new length."""
    out = i32(ctx, TOKEN_COSTS)
    seen = i32(ctx, SCRATCH)
    same = i32(ctx, SAME_BYTES)
    while token >= 0:
        if not (seen[token >> 5] >> (token & 31)) & 1:
            seen[token >> 5] |= int32(1) << int32(token & 31)
            out[2 * n] = token
            out[2 * n + 1] = count
            n += 1
        token = int64(same[token]) if len(same) else int64(-1)
    return n


@njit_inner(int64(CTX, int64, int64, int64, int64[::1]))
def _note_state(ctx, token, state, n, known):
    """Note a token with the count of the state behind it, unless that is surely low enough; returns the new length."""
    status = far_call(ctx, F_STATE_COST, state, 0)
    if status < 0:
        return status
    least = int64(i32(ctx, STATE_COSTS)[STATE_FIELDS * state + STATE_LEAST])
    if least < MISSING and least <= known[3]:
        # Finding out how its completion is cut into tokens would mean going through it.
        known[4] = max(known[4], least)
        return n
    count = far_call(ctx, F_TOKENS, state, 0)
    return count if count < 0 else _note(ctx, token, count, n)


@njit_inner(RESULT1)
def _least(ctx, state):
    """What finishing costs from a state, in bytes that are tokens; NEVER if not in such, FAIL or LIMIT."""
    status = far_call(ctx, F_STATE_COST, state, 0)
    if status < 0:
        return status
    least = int64(i32(ctx, STATE_COSTS)[STATE_FIELDS * state + STATE_LEAST])
    return least if least < MISSING else int64(NEVER)


@njit_inner(types.boolean(CTX, int64))
def _note_open(ctx, node):
    """Note a trie node from which on the text decides what tokens leave to be finished; False if there is no room."""
    n = used(ctx, OPEN_NODES)
    if n > 0 and i32(ctx, OPEN_NODES)[n - 1] == node:
        return True
    if not room(ctx, OPEN_NODES, 1):
        return False
    i32(ctx, OPEN_NODES)[n] = node
    set_used(ctx, OPEN_NODES, n + 1)
    return True


@njit_inner(int64(CTX, int64, int64, int64, int64[::1], types.boolean))
def _walk(ctx, root, state, n, known, is_open):
    """Note the tokens below trie node ``root`` with the counts of their states; returns the new length.

    ``is_open``: the text decides how it goes on from the state, which stands in for the one that it will be.

    If ``root`` is -1 it is the whole trie, of which parts may be left out.
    ``known`` is int64[6]: four for :func:`_inside`, the last of which is the budget (-1: nothing is left out); the
    most that a token that is left out needs; and with how many tokens to give up, with IN_GROUPS.  Parts of the
    trie that are left out go to COST_STACK, as (begin, end).

    Where the text decides how it goes on, the rules that stand in for those that it will be cost no less.  If that is
    not within the budget, or nothing stands in for them, the trie node goes to OPEN_NODES and the walk goes round it.
    """
    nodes = i32(ctx, TRIE_NODE)
    sizes = i32(ctx, TRIE_SIZE)
    tokens = i32(ctx, TRIE_TOKEN)
    stack = i32(ctx, STACK)
    class_of = u8(ctx, CLASS_OF)
    trans = i32(ctx, STATE_TRANS)
    classes = uint64(ctx[CLASSES])
    most = known[3]
    skips = root < 0 and most >= 0
    visited = int64(0)
    top = int64(0) if root < 0 else int64(nodes[root] >> DEPTH_SHIFT) + 1
    stack[top] = state
    # From this depth on a lexeme has ended on the way, and nothing may be left out.
    ended = int64(1 << 30)
    p = uint64(root + 1)
    end = uint64(len(nodes)) if root < 0 else uint64(root + sizes[root])
    # The part of the trie behind a place where the text decides, in which the walk is.
    open_node, open_end = int64(root), end if is_open else uint64(0)
    while p < end:
        node = uint64(nodes[p])
        depth = int64(node >> _SHIFT)
        here = uint64(stack[depth])
        byte_class = uint64(class_of[node & _BYTE])
        there = int64(trans[here * classes + byte_class])
        if there < 0:
            there = far_call(ctx, F_STEP, int64(here), int64(byte_class))
            if there < 0:
                return there
            if there >= OPEN:
                there -= OPEN
                if p >= open_end:
                    open_node, open_end = int64(p), p + uint64(sizes[p])
                if state_kinds(ctx, there) & IS_HARD:
                    if not _note_open(ctx, open_node):
                        return int64(FAIL)
                    p = open_end
                    continue
        if there == 0:
            p += uint64(sizes[p])
            continue
        if p < open_end:
            if tokens[p] >= 0:
                bound = _least(ctx, there)
                if bound < 0:
                    return bound
                if bound > most:
                    if not _note_open(ctx, open_node):
                        return int64(FAIL)
                    p = open_end
                    continue
                known[4] = max(known[4], bound)
        elif tokens[p] >= 0:
            n = _note_state(ctx, int64(tokens[p]), there, n, known)
            if n < 0:
                return n
            visited += 1
            if visited > known[5]:
                return int64(IN_GROUPS)
        if skips and sizes[p] > 1:
            if depth <= ended:
                ended = depth if _has_begun(ctx, there) else int64(1 << 30)
            if depth < ended:
                bound = _inside(ctx, there, known)
                if bound < 0:
                    return bound
                if bound <= most:
                    known[4] = max(known[4], bound)
                    if not room(ctx, COST_STACK, 2):
                        return int64(FAIL)
                    left_out = used(ctx, COST_STACK)
                    i32(ctx, COST_STACK)[left_out] = p
                    i32(ctx, COST_STACK)[left_out + 1] = p + uint64(sizes[p])
                    set_used(ctx, COST_STACK, left_out + 2)
                    p += uint64(sizes[p])
                    continue
        stack[depth + 1] = there
        p += uint64(1)
    return n


@njit_inner(types.boolean(CTX, int64, int64))
def _is_left_out(ctx, node, count):
    """Whether a trie node is in one of the ``count`` parts in COST_STACK, which are in the order of the trie."""
    parts = i32(ctx, COST_STACK)
    low, high = int64(0), count
    while low < high:
        middle = (low + high) // 2
        if parts[2 * middle] <= node:
            low = middle + 1
        else:
            high = middle
    return low > 0 and node < parts[2 * low - 1]


@njit_inner(RESULT2)
def _state_at(ctx, state, node):
    """The state after the bytes of a trie node, with OPEN added if it is an open one; 0 if it is dead, or < 0."""
    tokens = i32(ctx, TRIE_TOKEN)
    class_of = u8(ctx, CLASS_OF)
    data = u8(ctx, TOKEN_BYTES)
    # A node's bytes are the first of any token below it.
    p = node
    while tokens[p] < 0:
        p += 1
    first = i64(ctx, TOKEN_START)[tokens[p]]
    here = state
    last = first + int64(i32(ctx, TRIE_NODE)[node] >> DEPTH_SHIFT)
    for k in range(first, last + 1):
        byte_class = int64(class_of[data[k]])
        there = int64(i32(ctx, STATE_TRANS)[here * ctx[CLASSES] + byte_class])
        here = there if there >= 0 else far_call(ctx, F_STEP, here, byte_class)
        if here <= 0:
            break
        if here >= OPEN and k < last:
            # The walk comes this way from the node where that is.
            return int64(0)
    return here


@njit_entry(int64(CTX, int64, int64, int64[::1]))
def cost_tokens(ctx, state, most, known):
    """Find out how many tokens finish the text after each token that is allowed.

    Parameters
    ----------
    ctx : int64[...]
    state : int
        Its splits are made here if they are not known.
    most : int
        How many there may be; tokens that surely need no more can be left out.  Or ALL, or CROSSINGS_ONLY.
    known : int64[6]
        Scratch; ``known[4]`` is then the most that a token that was left out needs, or -1 if none was left out.

    Returns
    -------
    n, FAIL, LIMIT, UNMADE or IN_GROUPS.  TOKEN_COSTS then begins with the ``n`` tokens that were looked at, each
    with its count (NEVER if none is known), in any order.  What the text decides is not among them, nor left out: the
    tokens at and below the nodes in OPEN_NODES.
    """
    reset_costs(ctx)
    set_used(ctx, OPEN_NODES, 0)
    if not room(ctx, TOKEN_COSTS, 2 * 32 * ctx[N_WORDS]):
        return int64(FAIL)
    # The mask may have been forgotten since it was written, and the splits with it.  What makes a split uses SCRATCH.
    offset = int64(i32(ctx, STATES)[3 * state + STATE_OFFSET])
    for i in range(offset, offset + int64(i32(ctx, STATES)[3 * state + STATE_COUNT])):
        status = far_call(ctx, F_SPLIT, int64(i32(ctx, THREADS)[2 * i + 1]), 0)
        if status < 0:
            return status
    seen = i32(ctx, SCRATCH)
    for i in range(ctx[N_WORDS]):
        seen[i] = 0
    known[0], known[3], known[4] = -1, max(most, int64(ALL)), -1
    n = int64(0)
    for token in i32(ctx, EMPTY_TOKENS):
        n = _note_state(ctx, int64(token), state, n, known)
        if n < 0:
            return n
    bound = _inside(ctx, state, known)
    if bound < 0:
        return bound
    known[5] = 1 << 40
    if most >= 0 and i32(ctx, STATES)[3 * state + STATE_COUNT] == 1:
        lexer_state = int64(i32(ctx, THREADS)[2 * int64(i32(ctx, STATES)[3 * state + STATE_OFFSET]) + 1])
        if i32(ctx, SPLITS)[5 * lexer_state + SPLIT_DENSE] != NO_DENSE:
            if most < bound < NEVER:
                return int64(IN_GROUPS)
            known[5] = _MANY
    if bound <= most or most == CROSSINGS_ONLY:
        known[4] = bound
        known[5] = 1 << 40
        if not room(ctx, COST_STACK, 2):
            return int64(FAIL)
        i32(ctx, COST_STACK)[0] = 0
        i32(ctx, COST_STACK)[1] = len(i32(ctx, TRIE_NODE))
        set_used(ctx, COST_STACK, 2)
    else:
        n = _walk(ctx, int64(-1), state, n, known, False)
        if n < 0:
            return n
    # The tokens that go beyond the lexeme, in what was left out.
    parts = used(ctx, COST_STACK) // 2
    if parts == 0:
        return n
    children = i64(ctx, TRIE_CHILDREN)
    for i in range(offset, offset + int64(i32(ctx, STATES)[3 * state + STATE_COUNT])):
        split = 5 * int64(i32(ctx, THREADS)[2 * i + 1])
        begin = int64(i32(ctx, SPLITS)[split + SPLIT_CROSSINGS])
        last_accept, groups, kinds = int64(-1), int64(0), int64(0)
        for j in range(begin, begin + int64(i32(ctx, SPLITS)[split + SPLIT_CROSSING_COUNT])):
            accept = int64(i32(ctx, CROSSINGS)[2 * j + 1])
            if accept != last_accept:
                after = _state_after(ctx, int64(i32(ctx, THREADS)[2 * i]), accept)
                if after < 0:
                    return after
                last_accept, groups, kinds = accept, first_groups(ctx, after), state_kinds(ctx, after)
            # Few nodes have a child with which something goes on behind the lexeme.
            crossing = int64(i32(ctx, CROSSINGS)[2 * j])
            is_hard = kinds & IS_HARD != 0
            node = next_node(ctx, crossing, int64(0)) if is_hard or goes_on(ctx, crossing, groups) else int64(-1)
            while node >= 0:
                if (is_hard or children[node] & groups) and _is_left_out(ctx, node, parts):
                    here = _state_at(ctx, state, node)
                    if here < 0:
                        return here
                    if here >= OPEN and state_kinds(ctx, here - OPEN) & IS_HARD:
                        if not _note_open(ctx, node):
                            return int64(FAIL)
                    elif here > 0:
                        is_open = here >= OPEN
                        n = _walk(ctx, node, here - OPEN if is_open else here, n, known, is_open)
                        if n < 0:
                            return n
                node = next_node(ctx, crossing, node + 1)
    return n


@njit_entry(int64(CTX, int64, int64, int64[::1]))
def cost_below(ctx, state, node, known):
    """Find out how many tokens finish the text after each token at or below a trie node that leads to a state.

    Parameters and results are those of :func:`cost_tokens`, which was given ALL.
    """
    reset_costs(ctx)
    set_used(ctx, OPEN_NODES, 0)
    if not room(ctx, TOKEN_COSTS, 2 * 32 * ctx[N_WORDS]):
        return int64(FAIL)
    seen = i32(ctx, SCRATCH)
    for i in range(ctx[N_WORDS]):
        seen[i] = 0
    known[0], known[3], known[4], known[5] = -1, int64(ALL), -1, 1 << 40
    n = int64(0)
    if i32(ctx, TRIE_TOKEN)[node] >= 0:
        n = _note_state(ctx, int64(i32(ctx, TRIE_TOKEN)[node]), state, n, known)
        if n < 0:
            return n
    return _walk(ctx, node, state, n, known, False)


@njit_entry(int64(CTX, int64))
def group_tokens(ctx, lexer_state):
    """Group the tokens that stay within the lexemes of a lexer state by the lexer state that they lead to.

    Of a state with one thread all tokens of a group lead to one state, as long as no lexeme can end on the way.

    Returns
    -------
    n, FAIL, LIMIT; or NO_GROUPS if a lexeme can end on the way.  TOKEN_COSTS then begins with the ``n`` tokens, each
    with its group; SEARCH_RECORDS has four numbers for each group, of which the last is one of its tokens.
    """
    reset_costs(ctx)
    set_used(ctx, SEARCH_RECORDS, 0)
    if not room(ctx, TOKEN_COSTS, 2 * 32 * ctx[N_WORDS]):
        return int64(FAIL)
    seen = i32(ctx, SCRATCH)
    for i in range(ctx[N_WORDS]):
        seen[i] = 0
    nodes = i32(ctx, TRIE_NODE)
    sizes = i32(ctx, TRIE_SIZE)
    tokens = i32(ctx, TRIE_TOKEN)
    stack = i32(ctx, STACK)
    class_of = u8(ctx, CLASS_OF)
    trans = i32(ctx, LEX_TRANS)
    lex = i32(ctx, LEX)
    classes = uint64(ctx[CLASSES])
    stack[0] = lexer_state
    n = int64(0)
    p = uint64(0)
    while p < uint64(len(nodes)):
        node = uint64(nodes[p])
        depth = node >> _SHIFT
        here = uint64(stack[depth])
        byte_class = uint64(class_of[node & _BYTE])
        there = int64(trans[here * classes + byte_class])
        if there < 0:
            there = far_call(ctx, F_LEXER_STEP, int64(here), int64(byte_class))
            if there < 0:
                return there
        if there == 0:
            p += uint64(sizes[p])
            continue
        if depth > uint64(0) and lex[4 * int64(here) + LEX_ACCEPT]:
            return int64(NO_GROUPS)
        if tokens[p] >= 0:
            if search_record(ctx, SEARCH_PLACES, there, int64(0), int64(-1), int64(tokens[p])) == FAIL:
                return int64(FAIL)
            group = int64(i32(ctx, SEARCH_PLACES)[there])
            if group >= _HISTOGRAM - 1:
                return int64(NO_GROUPS)
            n = _note(ctx, int64(tokens[p]), group, n)
        stack[depth + uint64(1)] = there
        p += uint64(1)
    return n


@njit_allocating(int64(CTX, int64, int64))
def drop_usual(ctx, n, least):
    """Of the ``n`` tokens in TOKEN_COSTS keep those that need more than ``least``, or if that is -1, all but the usual.

    Returns ``left << 32 | usual``: how many are left, in front and in their order; and what the others need at most.
    """
    table = i32(ctx, TOKEN_COSTS)
    usual = least
    if least < 0:
        # A histogram of small counts; larger ones are all different from the usual.
        times = np.zeros(_HISTOGRAM, np.int64)
        usual = np.int64(0)
        for i in range(n):
            count = table[2 * i + 1] if table[2 * i + 1] < _HISTOGRAM - 1 else _HISTOGRAM - 1
            times[count] += 1
        for count in range(_HISTOGRAM):
            if times[count] > times[usual]:
                usual = np.int64(count)
        if usual == _HISTOGRAM - 1:
            usual = np.int64(NEVER)
    left = np.int64(0)
    for i in range(n):
        count = table[2 * i + 1]
        if count > usual or (least < 0 and count < usual):
            table[2 * left] = table[2 * i]
            table[2 * left + 1] = count
            left += 1
    return left << 32 | usual


@njit_entry(types.void(types.int32[:, ::1], int64, int32[::1]))
def forbid_tokens(out, index, tokens):
    """Clear the bits of tokens (int32[n]) in row ``index`` of a mask."""
    row = out[index]
    for token in tokens:
        row[token >> 5] &= ~(int32(1) << (token & int32(31)))


@njit_entry(types.void(CTX, int64, types.int32[:, ::1], int64, int32[::1]))
def allow_only(ctx, state, out, index, tokens):
    """Write the mask of nothing but tokens (int32[n]), and of the end tokens if ``state`` accepts."""
    row = out[index]
    for i in range(ctx[N_WORDS]):
        row[i] = 0
    for token in tokens:
        row[token >> 5] |= int32(1) << (token & int32(31))
    if i32(ctx, STATES)[3 * state + STATE_ACCEPTS]:
        for token in i32(ctx, EOS_TOKENS):
            row[token >> 5] |= int32(1) << (token & int32(31))
