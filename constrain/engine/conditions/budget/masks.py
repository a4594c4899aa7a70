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
    LEX_COUNT,
    LEX_OFFSET,
    NO_DENSE,
    SPLIT_CROSSING_COUNT,
    SPLIT_CROSSINGS,
)
from constrain.engine.conditions.budget.best_first import note_way
from constrain.engine.conditions.budget.completions import CHAIN_LIMIT, reset_costs
from constrain.engine.conditions.budget.expression_costs import MISSING, NEVER
from constrain.engine.masks.fast.self_loops import goes_on, next_node
from constrain.engine.parser.configurations import (
    IS_HARD,
    first_groups,
    state_at_row,
    state_kinds,
)
from constrain.engine.storage.access import i32, room, set_used, used
from constrain.engine.storage.header import CLASSES, CTX, N_WORDS, OPEN
from constrain.engine.storage.jit import njit_allocating, njit_entry, njit_inner
from constrain.engine.storage.links import (
    F_ACCEPT_SET,
    F_LEXER_STEP,
    F_SCAN,
    F_SPLIT,
    F_STATE_COST,
    F_STEP,
    F_TOKENS,
    far_call,
)
from constrain.engine.storage.schemas import (
    CONFIGURATIONS,
    COST_STACK,
    EMPTY_TOKENS,
    EOS_TOKENS,
    LEXER_MASKS,
    LEXER_STATES,
    OPEN_NODES,
    SEARCH_HEAP,
    SEARCH_WAYS,
    STATE_WORK,
    TOKEN_COSTS,
    TRIE_NODES,
    WORK_STACK,
    boundaries,
    byte_classes,
    child_groups,
    configurations,
    cores,
    cost_stack,
    earley_sets,
    expression_costs,
    lexer_masks,
    lexer_members,
    lexer_states,
    lexer_transitions,
    node_tokens,
    open_nodes,
    same_bytes,
    scratch_mask,
    search_places,
    state_costs,
    state_work,
    states,
    subtree_sizes,
    token_bytes,
    token_costs,
    token_starts,
    transitions,
    trie_nodes,
    walk_stack,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL, IN_GROUPS, NO_GROUPS
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
    state_work(ctx)[0] = row << 32 | accept
    after = far_call(ctx, F_SCAN, 0, 1)
    return after if after < 0 else state_at_row(ctx, after)


@njit_inner(RESULT2)
def _tokens_after(ctx, row, lexeme):
    """What finishing takes in the state after a lexeme that began in a row; NEVER if not sure, FAIL or LIMIT."""
    top = used(ctx, WORK_STACK)
    if not room(ctx, WORK_STACK, 1):
        return int64(FAIL)
    work_stack(ctx)[top] = lexeme
    accept = far_call(ctx, F_ACCEPT_SET, top, 1)
    if accept < 0:
        return accept
    after = _state_after(ctx, row, accept)
    if after < 0:
        return after
    count = far_call(ctx, F_TOKENS, after, 0)
    # A long completion is not counted by how it is cut into tokens.
    if count >= 0 and state_costs(ctx)[after].least > CHAIN_LIMIT - MISSING:
        return int64(NEVER)
    return count


@njit_inner(types.boolean(CTX, int64))
def _has_begun(ctx, state):
    """Whether a lexeme may have begun with the last byte, which means that one may have ended."""
    offset = states(ctx)[state].offset
    for i in range(offset, offset + states(ctx)[state].count):
        core = earley_sets(ctx)[configurations(ctx)[i].earley_set].core
        if cores(ctx)[core].initial == configurations(ctx)[i].lexer_state:
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
    worst = state_costs(ctx)[state].worst
    if worst < MISSING and worst <= known[3]:
        return worst
    if states(ctx)[state].count != 1:
        return int64(NEVER)
    thread = 2 * states(ctx)[state].offset
    row = int64(i32(ctx, CONFIGURATIONS)[thread])
    lexer_state = 4 * int64(i32(ctx, CONFIGURATIONS)[thread + 1])
    if i32(ctx, LEXER_STATES)[lexer_state + LEX_COUNT] != 1:
        return int64(NEVER)
    member = int64(i32(ctx, LEXER_STATES)[lexer_state + LEX_OFFSET])
    lexeme, node = lexer_members(ctx)[member], lexer_members(ctx)[member + 1]
    worst = expression_costs(ctx)[node].worst
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
    out = token_costs(ctx)
    seen = scratch_mask(ctx)
    same = same_bytes(ctx)
    while token >= 0:
        if not (seen[token >> 5] >> (token & 31)) & 1:
            seen[token >> 5] |= int32(1) << int32(token & 31)
            out[n].token = token
            out[n].count = count
            n += 1
        token = same[token] if len(same) else int64(-1)
    return n


@njit_inner(int64(CTX, int64, int64, int64, int64[::1]))
def _note_state(ctx, token, state, n, known):
    """Note a token with the count of the state behind it, unless that is surely low enough; returns the new length."""
    status = far_call(ctx, F_STATE_COST, state, 0)
    if status < 0:
        return status
    least = state_costs(ctx)[state].least
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
    least = state_costs(ctx)[state].least
    return least if least < MISSING else int64(NEVER)


@njit_inner(types.boolean(CTX, int64))
def _note_open(ctx, node):
    """Note a trie node from which on the text decides what tokens leave to be finished; False if there is no room."""
    n = used(ctx, OPEN_NODES)
    if n > 0 and open_nodes(ctx)[n - 1] == node:
        return True
    if not room(ctx, OPEN_NODES, 1):
        return False
    open_nodes(ctx)[n] = node
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
    nodes = trie_nodes(ctx)
    sizes = subtree_sizes(ctx)
    tokens = node_tokens(ctx)
    stack = walk_stack(ctx)
    class_of = byte_classes(ctx)
    trans = transitions(ctx)
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
        there = trans[here * classes + byte_class]
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
            n = _note_state(ctx, tokens[p], there, n, known)
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
                    cost_stack(ctx)[left_out] = p
                    cost_stack(ctx)[left_out + 1] = p + uint64(sizes[p])
                    set_used(ctx, COST_STACK, left_out + 2)
                    p += uint64(sizes[p])
                    continue
        stack[depth + 1] = there
        p += uint64(1)
    return n


@njit_inner(types.boolean(CTX, int64, int64))
def _is_left_out(ctx, node, count):
    """Whether a trie node is in one of the ``count`` parts in COST_STACK, which are in the order of the trie."""
    parts = cost_stack(ctx)
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
    tokens = node_tokens(ctx)
    class_of = byte_classes(ctx)
    data = token_bytes(ctx)
    # A node's bytes are the first of any token below it.
    p = node
    while tokens[p] < 0:
        p += 1
    first = token_starts(ctx)[tokens[p]]
    here = state
    last = first + int64(trie_nodes(ctx)[node] >> DEPTH_SHIFT)
    for k in range(first, last + 1):
        byte_class = class_of[data[k]]
        there = transitions(ctx)[here * ctx[CLASSES] + byte_class]
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
    # The mask may have been forgotten since it was written, and the lexer masks with it.  What makes one uses
    # SCRATCH_MASK.
    offset = states(ctx)[state].offset
    for i in range(offset, offset + states(ctx)[state].count):
        status = far_call(ctx, F_SPLIT, configurations(ctx)[i].lexer_state, 0)
        if status < 0:
            return status
    seen = scratch_mask(ctx)
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
    if most >= 0 and states(ctx)[state].count == 1:
        lexer_state = configurations(ctx)[states(ctx)[state].offset].lexer_state
        if lexer_masks(ctx)[lexer_state].dense != NO_DENSE:
            if most < bound < NEVER:
                return int64(IN_GROUPS)
            known[5] = _MANY
    if bound <= most or most == CROSSINGS_ONLY:
        known[4] = bound
        known[5] = 1 << 40
        if not room(ctx, COST_STACK, 2):
            return int64(FAIL)
        cost_stack(ctx)[0] = 0
        cost_stack(ctx)[1] = len(i32(ctx, TRIE_NODES))
        set_used(ctx, COST_STACK, 2)
    else:
        n = _walk(ctx, int64(-1), state, n, known, False)
        if n < 0:
            return n
    # The tokens that go beyond the lexeme, in what was left out.
    parts = used(ctx, COST_STACK) // 2
    if parts == 0:
        return n
    children = child_groups(ctx)
    for i in range(offset, offset + states(ctx)[state].count):
        split = 5 * configurations(ctx)[i].lexer_state
        begin = int64(i32(ctx, LEXER_MASKS)[split + SPLIT_CROSSINGS])
        last_accept, groups, kinds = int64(-1), int64(0), int64(0)
        for j in range(begin, begin + int64(i32(ctx, LEXER_MASKS)[split + SPLIT_CROSSING_COUNT])):
            accept = boundaries(ctx)[j].accept
            if accept != last_accept:
                after = _state_after(ctx, configurations(ctx)[i].earley_set, accept)
                if after < 0:
                    return after
                last_accept, groups, kinds = accept, first_groups(ctx, after), state_kinds(ctx, after)
            # Few nodes have a child with which something goes on behind the lexeme.
            crossing = boundaries(ctx)[j].node
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
    seen = scratch_mask(ctx)
    for i in range(ctx[N_WORDS]):
        seen[i] = 0
    known[0], known[3], known[4], known[5] = -1, int64(ALL), -1, 1 << 40
    n = int64(0)
    if node_tokens(ctx)[node] >= 0:
        n = _note_state(ctx, node_tokens(ctx)[node], state, n, known)
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
    with its group; SEARCH_WAYS has a way to each group, whose step is one of its tokens.
    """
    reset_costs(ctx)
    set_used(ctx, SEARCH_WAYS, 0)
    if not room(ctx, TOKEN_COSTS, 2 * 32 * ctx[N_WORDS]):
        return int64(FAIL)
    seen = scratch_mask(ctx)
    for i in range(ctx[N_WORDS]):
        seen[i] = 0
    nodes = trie_nodes(ctx)
    sizes = subtree_sizes(ctx)
    tokens = node_tokens(ctx)
    stack = walk_stack(ctx)
    class_of = byte_classes(ctx)
    trans = lexer_transitions(ctx)
    lex = lexer_states(ctx)
    classes = uint64(ctx[CLASSES])
    stack[0] = lexer_state
    n = int64(0)
    p = uint64(0)
    while p < uint64(len(nodes)):
        node = uint64(nodes[p])
        depth = node >> _SHIFT
        here = uint64(stack[depth])
        byte_class = uint64(class_of[node & _BYTE])
        there = trans[here * classes + byte_class]
        if there < 0:
            there = far_call(ctx, F_LEXER_STEP, int64(here), int64(byte_class))
            if there < 0:
                return there
        if there == 0:
            p += uint64(sizes[p])
            continue
        if depth > uint64(0) and lex[int64(here)].accept:
            return int64(NO_GROUPS)
        if tokens[p] >= 0:
            if note_way(ctx, SEARCH_HEAP, there, int64(0), int64(-1), tokens[p]) == FAIL:
                return int64(FAIL)
            group = search_places(ctx)[there]
            if group >= _HISTOGRAM - 1:
                return int64(NO_GROUPS)
            n = _note(ctx, tokens[p], group, n)
        stack[depth + uint64(1)] = there
        p += uint64(1)
    return n


@njit_allocating(int64(CTX, int64, int64))
def drop_usual(ctx, n, least):
    """Of the ``n`` tokens in TOKEN_COSTS keep those that need more than ``least``, or if that is -1, all but the usual.

    Returns ``left << 32 | usual``: how many are left, in front and in their order; and what the others need at most.
    """
    table = token_costs(ctx)
    usual = least
    if least < 0:
        # A histogram of small counts; larger ones are all different from the usual.
        times = np.zeros(_HISTOGRAM, np.int64)
        usual = np.int64(0)
        for i in range(n):
            count = min(table[i].count, int64(_HISTOGRAM - 1))
            times[count] += 1
        for count in range(_HISTOGRAM):
            if times[count] > times[usual]:
                usual = np.int64(count)
        if usual == _HISTOGRAM - 1:
            usual = np.int64(NEVER)
    left = np.int64(0)
    for i in range(n):
        count = table[i].count
        if count > usual or (least < 0 and count < usual):
            table[left].token = table[i].token
            table[left].count = count
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
    if states(ctx)[state].accepts:
        for token in i32(ctx, EOS_TOKENS):
            row[token >> 5] |= int32(1) << (token & int32(31))
