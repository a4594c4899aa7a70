"""From a state to the set of tokens that may come next.

A token is allowed in a state if it is allowed for one of the state's configurations (Earley set, lexer state).
For one configuration the tokens fall into two parts:

* those that stay inside the lexemes under way: they depend on the lexer state alone;
* those in which a lexeme ends: the Earley set decides about what comes after.

So each lexer state has a *lexer mask*, made once (masks/lexer_masks.py): the first part as a set of tokens, the second
as a list of *boundaries*, the nodes of the trie at which a lexeme can end.  The mask of a state is then a copy of the
first part, plus a walk below each boundary with the Earley set that follows there.  It is kept as (dense part, list of
further tokens): a few hundred bytes, since the dense part is shared.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64, types, uint64

from constrain.engine.automata.lexer_states import (
    NO_DENSE,
    clear_splits,
    leads_on,
)
from constrain.engine.masks.boundaries import goes_on, next_node
from constrain.engine.masks.lexer_masks import FIRST_SHARED, add_dense, clear_scratch, keep_dense
from constrain.engine.parser.configurations import (
    IS_HARD,
    IS_UNSURE,
    NO_MASK,
    first_groups,
    reset_work,
    state_kinds,
)
from constrain.engine.storage.access import i32, i64, room, set_used, used
from constrain.engine.storage.header import (
    CLASSES,
    CTX,
    LIST_END,
    LIST_LIMIT,
    N_WORDS,
    NEW_MASK,
    OPEN,
    RESULT1,
    RESULT2,
)
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import (
    F_LEXER_MASK,
    F_LIST,
    F_MASK,
    F_SCAN,
    F_STATE_OF_SET,
    F_STEP,
    F_TWIN,
    far_call,
    far_entry,
)
from constrain.engine.storage.schemas import (
    BOUNDARIES,
    BRANCHES,
    DENSE_MASKS,
    FOLLOWS,
    OPEN_NODES,
    SHARED_DENSE,
    STATE_HASHES,
    STATE_WORK,
    TOKEN_LISTS,
    boundaries,
    byte_classes,
    child_groups,
    configurations,
    cores,
    earley_sets,
    empty_tokens,
    eos_tokens,
    lexer_masks,
    node_tokens,
    open_nodes,
    same_bytes,
    scratch_mask,
    state_masks,
    state_work,
    states,
    subtree_sizes,
    token_lists,
    transitions,
    trie_nodes,
    walk_stack,
)
from constrain.engine.storage.statuses import BAD_MASK, FAIL, NO_STATE, NOT_MINE
from constrain.engine.vocabulary.trie import DEPTH_SHIFT

_FOLLOWS = 64
_SHIFT, _BYTE, _WORD = uint64(DEPTH_SHIFT), uint64(255), uint64(5)


@njit_inner(types.void(CTX, int64, types.boolean))
def _allow(ctx, token, listed_only):
    """List a token, and those with the same bytes; if not ``listed_only``, those that are new in SCRATCH_MASK."""
    scratch = scratch_mask(ctx)
    same = same_bytes(ctx)
    while token >= 0:
        if listed_only or not (scratch[token >> 5] >> (token & 31)) & 1:
            if not listed_only:
                scratch[token >> 5] |= 1 << (token & 31)
            n = ctx[LIST_END]
            if n < ctx[LIST_LIMIT]:
                token_lists(ctx)[n] = token
            ctx[LIST_END] = n + 1
        token = same[token] if len(same) else int64(-1)


@njit_inner(int64(CTX, int64, int64))
def _note_open(ctx, node, kinds):
    """Note that what follows a trie node depends on the text; 0 or FAIL."""
    if kinds & IS_UNSURE == 0 and subtree_sizes(ctx)[node] == 1:
        return int64(0)
    if not room(ctx, OPEN_NODES, 1):
        return int64(FAIL)
    n = used(ctx, OPEN_NODES)
    open_nodes(ctx)[n] = node
    set_used(ctx, OPEN_NODES, n + 1)
    return int64(0)


@njit_inner(RESULT2)
def _leads_on(ctx, state, byte_class):
    """As lexer.leads_on for a recognizer's state, in a grammar whose rules do not depend on the text."""
    offset = states(ctx)[state].offset
    for i in range(offset, offset + states(ctx)[state].count):
        if leads_on(ctx, configurations(ctx)[i].lexer_state, byte_class):
            return int64(1)
    return int64(0)


@njit_inner(int64(CTX, int64, int64, types.boolean))
def _walk(ctx, root, state, listed_only):
    """Allow the tokens strictly below trie node ``root`` that ``state`` allows; returns 0, FAIL, LIMIT or UNMADE.

    Where that depends on the text, the trie node is noted, for the walk goes on below as if it did not.
    """
    nodes = trie_nodes(ctx)
    sizes = subtree_sizes(ctx)
    tokens = node_tokens(ctx)
    stack = walk_stack(ctx)
    class_of = byte_classes(ctx)
    trans = transitions(ctx)
    classes = uint64(ctx[CLASSES])
    stack[(nodes[root] >> DEPTH_SHIFT) + 1] = state
    # Where rules depend on the text, what a token ends in matters.
    is_last = used(ctx, BRANCHES) == 0
    p = uint64(root + 1)
    end = uint64(root + sizes[root])
    while p < end:
        node = uint64(nodes[p])
        depth = node >> _SHIFT
        here = uint64(stack[depth])
        byte_class = uint64(class_of[node & _BYTE])
        there = trans[here * classes + byte_class]
        if there < 0:
            if is_last and sizes[p] == 1 and _leads_on(ctx, int64(here), int64(byte_class)):
                _allow(ctx, tokens[p], listed_only)
                p += uint64(1)
                continue
            there = far_call(ctx, F_STEP, int64(here), int64(byte_class))
            if there < 0:
                return there
            if there >= OPEN:
                there -= OPEN
                kinds = state_kinds(ctx, there)
                if kinds & IS_HARD and _note_open(ctx, int64(p), kinds) < 0:
                    return int64(FAIL)
                if kinds & IS_UNSURE:
                    stack[depth + uint64(1)] = there
                    p += uint64(1)
                    continue
        if there == 0:
            p += uint64(sizes[p])
            continue
        if tokens[p] >= 0:
            _allow(ctx, tokens[p], listed_only)
        stack[depth + uint64(1)] = there
        p += uint64(1)
    return int64(0)


@njit_inner(RESULT2)
def _state_after(ctx, row, accept):
    """The state after any lexeme of the accept set, for what is left of a token; FAIL or LIMIT if < 0."""
    if not room(ctx, STATE_WORK, 1):
        return int64(FAIL)
    state_work(ctx)[0] = row << 32 | accept
    next_row = far_call(ctx, F_SCAN, 0, 1)
    if next_row < 0:
        return next_row
    core = earley_sets(ctx)[next_row].core
    # The twin without bounds is as good for a token, and makes fewer states.
    begins = far_call(ctx, F_TWIN, cores(ctx)[core].initial, 0)
    if begins == NOT_MINE:
        begins = cores(ctx)[core].initial
    if begins < 0:
        return begins
    return far_call(ctx, F_STATE_OF_SET, next_row, begins)


@njit_inner(RESULT2)
def _list_tokens(ctx, offset, count_and_way):
    """List what ``count`` configurations from ``offset`` on allow beyond the dense parts of their lexer masks.

    Returns 0, FAIL or LIMIT.
    """
    count, listed_only = count_and_way >> 1, count_and_way & 1 != 0
    set_used(ctx, OPEN_NODES, 0)
    if not listed_only:
        # The scratch mask holds what is allowed so far; the list, what of it is not in the dense part.
        clear_scratch(ctx)
        for i in range(offset, offset + count):
            part = lexer_masks(ctx)[configurations(ctx)[i].lexer_state].dense
            if part != NO_DENSE:
                add_dense(ctx, part)
    children = child_groups(ctx)
    follows = i64(ctx, FOLLOWS)
    for i in range(0, 3 * _FOLLOWS, 3):
        follows[i] = -1
    for i in range(offset, offset + count):
        lists = token_lists(ctx)
        lexer_state = configurations(ctx)[i].lexer_state
        begin = lexer_masks(ctx)[lexer_state].tokens
        # The list of a single lexer mask is used where it is.
        listed = 0 if listed_only and count == 1 else lexer_masks(ctx)[lexer_state].token_count
        for j in range(begin, begin + listed):
            _allow(ctx, lists[j], listed_only)
        row = configurations(ctx)[i].earley_set
        begin = lexer_masks(ctx)[lexer_state].boundaries
        boundary_count = lexer_masks(ctx)[lexer_state].boundary_count
        last_accept = int64(-1)
        below, groups, kinds = int64(0), int64(0), int64(0)
        for j in range(begin, begin + boundary_count):
            accept = boundaries(ctx)[j].accept
            if accept != last_accept:
                last_accept = accept
                # A few accept sets take turns, so what follows each is kept at hand.
                place = 3 * (accept & (_FOLLOWS - 1))
                if follows[place] != row << 32 | accept:
                    below = _state_after(ctx, row, accept)
                    if below < 0:
                        return below
                    follows[place] = row << 32 | accept
                    follows[place + 1] = below
                    follows[place + 2] = first_groups(ctx, below)
                below, groups = follows[place + 1], follows[place + 2]
                kinds = state_kinds(ctx, below)
            boundary = boundaries(ctx)[j].node
            # Where an identifier can end at every node, few nodes have a child with which anything goes on.
            if not kinds & IS_HARD and not goes_on(ctx, boundary, groups):
                continue
            node = next_node(ctx, boundary, int64(0))
            while node >= 0:
                if kinds & IS_HARD and _note_open(ctx, node, kinds) < 0:
                    return int64(FAIL)
                if children[node] & groups:
                    status = _walk(ctx, node, below, listed_only)
                    if status < 0:
                        return status
                node = next_node(ctx, boundary, node + 1)
    return int64(0)


far_entry(F_LIST, _list_tokens)


@njit_inner(RESULT1)
def _keep_open_nodes(ctx, count):
    """Append the number of OPEN_NODES, and these themselves, to the token lists; 0 or FAIL."""
    end = used(ctx, TOKEN_LISTS)
    if not room(ctx, TOKEN_LISTS, count + 1):
        return int64(FAIL)
    lists = token_lists(ctx)
    lists[end] = count
    for i in range(count):
        lists[end + 1 + i] = open_nodes(ctx)[i]
    set_used(ctx, TOKEN_LISTS, end + 1 + count)
    return int64(0)


@njit_inner(RESULT1)
def _read_open_nodes(ctx, place):
    """Fill OPEN_NODES with what :func:`_keep_open_nodes` has written at a place of the token lists; 0 or FAIL."""
    lists = token_lists(ctx)
    count = lists[place]
    set_used(ctx, OPEN_NODES, 0)
    if not room(ctx, OPEN_NODES, count):
        return int64(FAIL)
    for i in range(count):
        open_nodes(ctx)[i] = lists[place + 1 + i]
    set_used(ctx, OPEN_NODES, count)
    return int64(0)


@njit_inner(RESULT2)
def compute_mask(ctx, state, _unused):
    """Compute the mask of a state and keep it; returns 0, FAIL or LIMIT."""
    reset_work(ctx)
    words = ctx[N_WORDS]
    offset = states(ctx)[state].offset
    count = states(ctx)[state].count
    dense = int64(NO_DENSE)
    n_dense = 0
    for i in range(offset, offset + count):
        lexer_state = configurations(ctx)[i].lexer_state
        status = far_call(ctx, F_LEXER_MASK, lexer_state, 0)
        if status < 0:
            return status
        if lexer_masks(ctx)[lexer_state].dense != NO_DENSE:
            n_dense += 1
            dense = lexer_masks(ctx)[lexer_state].dense
    only = configurations(ctx)[offset].lexer_state if count == 1 else int64(-1)
    if only >= 0 and lexer_masks(ctx)[only].boundary_count == 0:
        # No lexeme ends in a token: the mask is that of the lexer state, and its list serves both.
        masks = state_masks(ctx)
        masks[state].dense = dense
        masks[state].tokens = lexer_masks(ctx)[only].tokens
        masks[state].token_count = lexer_masks(ctx)[only].token_count
        masks[state].inside_count = 0
        return int64(0)
    if not room(ctx, DENSE_MASKS, words) or not room(ctx, TOKEN_LISTS, words // 4):
        return int64(FAIL)
    first = used(ctx, TOKEN_LISTS)
    # What is in the list twice, or in the dense part too, does no harm; telling tokens apart takes longer.
    listed_only = n_dense < 2
    while True:
        # A list that grows too long is worth more as a dense mask: its tokens are then counted
        # (LIST_END goes on) but no longer written.
        ctx[LIST_END] = first
        ctx[LIST_LIMIT] = first + words // 4
        status = far_call(ctx, F_LIST, offset, count << 1 | int64(listed_only))
        if status < 0:
            return status
        if not listed_only or ctx[LIST_END] <= ctx[LIST_LIMIT]:
            break
        listed_only = False
    listed = ctx[LIST_END] - first
    if n_dense > 1 or ctx[LIST_END] > ctx[LIST_LIMIT]:
        dense = keep_dense(ctx)
        listed = int64(0)
    n_open = used(ctx, OPEN_NODES)
    set_used(ctx, TOKEN_LISTS, first + listed)
    if n_open and _keep_open_nodes(ctx, n_open) < 0:
        return int64(FAIL)
    masks = state_masks(ctx)
    masks[state].dense = dense
    masks[state].tokens = first
    masks[state].token_count = ~listed if n_open else listed
    if listed_only and count == 1:
        masks[state].inside = lexer_masks(ctx)[only].tokens
        masks[state].inside_count = lexer_masks(ctx)[only].token_count
    else:
        masks[state].inside_count = 0
    return int64(0)


far_entry(F_MASK, compute_mask)


@njit_entry(int64(CTX, int64, types.int32[:, ::1], int64))
def write_mask(ctx, state, out, index):
    """Write the mask of ``state`` to row ``index`` of ``out`` (int32[batch, words]), computing it if need be.

    Returns 0; FAIL, LIMIT, UNMADE, NO_STATE or BAD_MASK; or the sum of 1, if there is also a lexer mask to publish
    (NEW_MASK, which stays until the caller has done so), and 2, if tokens are missing that depend on the text: those
    at or below the nodes that are in OPEN_NODES then.
    """
    if uint64(state) >= uint64(used(ctx, STATE_HASHES)):
        return int64(NO_STATE)
    if uint64(index) >= uint64(len(out)) or out.shape[1] != ctx[N_WORDS]:
        return int64(BAD_MASK)
    masks = state_masks(ctx)
    result = int64(0)
    if masks[state].dense == NO_MASK:
        result = far_call(ctx, F_MASK, state, 0)
        if result < 0:
            return result
        result = int64(ctx[NEW_MASK] >= 0)
    dense = masks[state].dense
    words = ctx[N_WORDS]
    row = out[index]
    # Unsigned: the loops are plain copies only if the index cannot be negative.
    if dense >= 0:
        pool = i32(ctx, DENSE_MASKS)
        begin = uint64(dense)
        for i in range(words):
            row[i] = pool[begin + uint64(i)]
    elif dense != NO_DENSE:
        pool = i32(ctx, SHARED_DENSE)
        begin = uint64((FIRST_SHARED - dense) * words)
        for i in range(words):
            row[i] = pool[begin + uint64(i)]
    else:
        for i in range(words):
            row[i] = 0
    lists = token_lists(ctx)
    first = masks[state].tokens
    count = masks[state].token_count
    if count < 0:
        count = ~count
        if _read_open_nodes(ctx, first + count) < 0:
            return int64(FAIL)
        result |= 2
    for i in range(first, first + count):
        token = lists[i]
        row[token >> 5] |= 1 << (token & 31)
    first = masks[state].inside
    for i in range(first, first + masks[state].inside_count):
        token = lists[i]
        row[token >> 5] |= 1 << (token & 31)
    empty = empty_tokens(ctx)
    for i in range(len(empty)):
        row[empty[i] >> 5] |= 1 << (empty[i] & 31)
    if states(ctx)[state].accepts:
        ends = eos_tokens(ctx)
        for i in range(len(ends)):
            row[ends[i] >> 5] |= 1 << (ends[i] & 31)
    return result


@njit_entry(int64(CTX, int64, int64, types.int32[:, ::1], int64))
def add_below(ctx, state, node, out, index):
    """Add the tokens strictly below a trie node that ``state`` allows to row ``index`` of ``out``.

    ``out`` is int32[batch, words].  Returns 0, FAIL, LIMIT or UNMADE; what depends on the text is in OPEN_NODES then.
    """
    reset_work(ctx)
    set_used(ctx, OPEN_NODES, 0)
    ctx[LIST_END] = ctx[LIST_LIMIT] = used(ctx, TOKEN_LISTS)
    clear_scratch(ctx)
    status = _walk(ctx, node, state, False)
    if status < 0:
        return status
    scratch = scratch_mask(ctx)
    for i in range(ctx[N_WORDS]):
        out[index, i] |= scratch[i]
    return status


@njit_entry(types.void(CTX))
def forget_masks(ctx):
    """Drop every mask of a state and every lexer mask; states and Earley sets stay valid."""
    masks = state_masks(ctx)
    for state in range(used(ctx, STATE_HASHES)):
        masks[state].dense = NO_MASK
    clear_splits(ctx)
    set_used(ctx, DENSE_MASKS, 0)
    set_used(ctx, TOKEN_LISTS, 0)
    set_used(ctx, BOUNDARIES, 0)
