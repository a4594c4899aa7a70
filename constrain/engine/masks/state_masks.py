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

from constrain.engine.automata.lexer_states import NO_DENSE, forget_lexer_masks
from constrain.engine.masks.boundary_walks import NO_MORE, begin_boundaries, next_boundary
from constrain.engine.masks.lexer_masks import add_dense, clear_scratch, keep_dense, place_of_dense
from constrain.engine.masks.token_walks import LIST, MARK, allow, note_open_below, walk_tokens
from constrain.engine.parser.configurations import IN_ROOTS, IS_HARD, NO_MASK, reset_work
from constrain.engine.storage import links
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i32, i64, room, set_used, take, used
from constrain.engine.storage.hashing import rehash
from constrain.engine.storage.header import CTX, LIST_END, LIST_LIMIT, N_WORDS, NEW_MASK, NODES_WALKED, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import far_call, far_entry
from constrain.engine.storage.statuses import BAD_MASK, FAIL, NO_STATE, NOT_MINE
from constrain.kernels.language import int64, types, uint64

_NODES_LIKE_A_SET = 256
"""Going over so many trie nodes takes as long as making an Earley set with what belongs to it."""


@njit_inner(RESULT2)
def _list_tokens(ctx, offset, count_and_way):
    """List what ``count`` configurations from ``offset`` on allow beyond the dense parts of their lexer masks.

    Returns 0, FAIL or LIMIT.
    """
    count, listed_only = count_and_way >> 1, count_and_way & 1 != 0
    set_used(ctx, t.OPEN_NODES, 0)
    if not listed_only:
        # The scratch mask holds what is allowed so far; the list, what of it is not in the dense part.
        clear_scratch(ctx)
        for i in range(offset, offset + count):
            part = t.lexer_masks(ctx)[t.configurations(ctx)[i].lexer_state].dense
            if part != NO_DENSE:
                add_dense(ctx, part)
    visitor = int64(LIST if listed_only else MARK)
    # The list of a single lexer mask is used where it is.
    for i in range(offset, offset + (0 if listed_only and count == 1 else count)):
        mask = t.lexer_masks(ctx)[t.configurations(ctx)[i].lexer_state]
        for j in range(mask.tokens, mask.tokens + mask.token_count):
            allow(ctx, t.token_lists(ctx)[j], visitor)
    cursor = t.boundary_cursor(ctx)[0]
    begin_boundaries(ctx, offset, count)
    node = next_boundary(ctx)
    while node >= 0:
        if cursor.kinds & IS_HARD and note_open_below(ctx, node, cursor.kinds) < 0:
            return int64(FAIL)
        if t.child_groups(ctx)[node] & cursor.groups:
            status = walk_tokens(ctx, node, cursor.after, visitor)
            if status < 0:
                return status
            ctx[NODES_WALKED] += status
        node = next_boundary(ctx)
    return node if node < NO_MORE else int64(0)


far_entry(links.F_LIST, _list_tokens)


@njit_inner(RESULT1)
def _keep_open_nodes(ctx, count):
    """Append the number of OPEN_NODES, and these themselves, to the token lists; 0 or FAIL."""
    end = take(ctx, t.TOKEN_LISTS, count + 1)
    if end < 0:
        return end
    lists = t.token_lists(ctx)
    lists[end] = count
    for i in range(count):
        lists[end + 1 + i] = t.open_nodes(ctx)[i]
    return int64(0)


@njit_inner(RESULT1)
def _read_open_nodes(ctx, place):
    """Fill OPEN_NODES with what :func:`_keep_open_nodes` has written at a place of the token lists; 0 or FAIL."""
    lists = t.token_lists(ctx)
    count = lists[place]
    set_used(ctx, t.OPEN_NODES, 0)
    if take(ctx, t.OPEN_NODES, count) < 0:
        return int64(FAIL)
    for i in range(count):
        t.open_nodes(ctx)[i] = lists[place + 1 + i]
    return int64(0)


@njit_inner(RESULT2)
def compute_mask(ctx, state, _unused):
    """Compute the mask of a state and keep it; returns 0, FAIL or LIMIT."""
    reset_work(ctx)
    words = ctx[N_WORDS]
    offset = t.states(ctx)[state].offset
    count = t.states(ctx)[state].count
    dense = int64(NO_DENSE)
    n_dense = 0
    for i in range(offset, offset + count):
        lexer_state = t.configurations(ctx)[i].lexer_state
        status = far_call(ctx, links.F_LEXER_MASK, lexer_state, 0)
        if status < 0:
            return status
        if t.lexer_masks(ctx)[lexer_state].dense != NO_DENSE:
            n_dense += 1
            dense = t.lexer_masks(ctx)[lexer_state].dense
    only = t.configurations(ctx)[offset].lexer_state if count == 1 else int64(-1)
    if only >= 0 and t.lexer_masks(ctx)[only].boundary_count == 0:
        # No lexeme ends in a token: the mask is that of the lexer state, and its list serves both.
        tokens, listed = t.lexer_masks(ctx)[only].tokens, t.lexer_masks(ctx)[only].token_count
        t.state_masks(ctx)[state] = dense, tokens, listed, 0, 0
        return int64(0)
    if not room(ctx, t.DENSE_MASKS, words) or not room(ctx, t.TOKEN_LISTS, words // 4):
        return int64(FAIL)
    first = used(ctx, t.TOKEN_LISTS)
    # What is in the list twice, or in the dense part too, does no harm; telling tokens apart takes longer.
    listed_only = n_dense < 2
    while True:
        # A list that grows too long is worth more as a dense mask: its tokens are then counted
        # (LIST_END goes on) but no longer written.
        ctx[LIST_END] = first
        ctx[LIST_LIMIT] = first + words // 4
        status = far_call(ctx, links.F_LIST, offset, count << 1 | int64(listed_only))
        if status < 0:
            return status
        if not listed_only or ctx[LIST_END] <= ctx[LIST_LIMIT]:
            break
        listed_only = False
    listed = ctx[LIST_END] - first
    if n_dense > 1 or ctx[LIST_END] > ctx[LIST_LIMIT]:
        dense = keep_dense(ctx)
        listed = int64(0)
    n_open = used(ctx, t.OPEN_NODES)
    set_used(ctx, t.TOKEN_LISTS, first + listed)
    if n_open and _keep_open_nodes(ctx, n_open) < 0:
        return int64(FAIL)
    t.state_masks(ctx)[state] = dense, first, ~listed if n_open else listed, 0, 0
    if listed_only and count == 1:
        t.state_masks(ctx)[state].inside = t.lexer_masks(ctx)[only].tokens
        t.state_masks(ctx)[state].inside_count = t.lexer_masks(ctx)[only].token_count
    return int64(0)


far_entry(links.F_MASK, compute_mask)


@njit_inner(types.void(CTX, int64, types.int32[::1]))
def _add_dense(ctx, dense, row):
    """Add a dense mask, or none, to a mask."""
    if dense == NO_DENSE:
        return
    table, begin = place_of_dense(ctx, dense)
    pool = t.dense_words(ctx, table)
    for i in range(uint64(ctx[N_WORDS])):
        row[i] |= pool[begin + int64(i)]


@njit_inner(types.void(CTX, int64, types.int32[::1]))
def _write_roots(ctx, state, row):
    """Write the mask of a state that is kept as roots."""
    for i in range(uint64(ctx[N_WORDS])):
        row[i] = 0
    lists = t.token_lists(ctx)
    first = t.state_masks(ctx)[state].tokens
    for i in range(first, first + t.state_masks(ctx)[state].token_count):
        root = t.roots(ctx)[lists[i]]
        _add_dense(ctx, root.dense, row)
        for j in range(root.runs, root.runs + root.run_count):
            _add_dense(ctx, t.runs(ctx)[lists[j]].dense, row)
        for j in range(root.tokens, root.tokens + root.token_count):
            token = lists[j]
            row[token >> 5] |= 1 << (token & 31)


@njit_entry(int64(CTX, int64, types.int32[:, ::1], int64))
def write_mask(ctx, state, out, index):
    """Write the mask of ``state`` to row ``index`` of ``out`` (int32[batch, words]), computing it if need be.

    Returns 0; FAIL, LIMIT, UNMADE, NO_STATE or BAD_MASK; or the sum of 1, if there is also a lexer mask to publish
    (NEW_MASK, which stays until the caller has done so), and 2, if tokens are missing that depend on the text: those
    at or below the nodes that are in OPEN_NODES then.
    """
    if uint64(state) >= uint64(used(ctx, t.STATE_HASHES)):
        return int64(NO_STATE)
    if uint64(index) >= uint64(len(out)) or out.shape[1] != ctx[N_WORDS]:
        return int64(BAD_MASK)
    masks = t.state_masks(ctx)
    if masks[state].dense == NO_MASK:
        reset_work(ctx)
        result = far_call(ctx, links.F_MASK_BY_CORE, state, 0)
        if result == NOT_MINE:
            sets_known = used(ctx, t.EARLEY_SET_HASHES)
            ctx[NODES_WALKED] = 0
            result = far_call(ctx, links.F_MASK, state, 0)
            if result == 0:
                cost = 1 + used(ctx, t.EARLEY_SET_HASHES) - sets_known + ctx[NODES_WALKED] // _NODES_LIKE_A_SET
                far_call(ctx, links.F_MASK_BY_CORE, state, cost)
        if result < 0:
            return result
    result = int64(ctx[NEW_MASK] >= 0)
    dense = masks[state].dense
    words = ctx[N_WORDS]
    row = out[index]
    if dense == IN_ROOTS:
        _write_roots(ctx, state, row)
    elif dense != NO_DENSE:
        table, begin = place_of_dense(ctx, dense)
        pool = t.dense_words(ctx, table)
        # Unsigned: the loop is a plain copy only if the index cannot be negative.
        for i in range(uint64(words)):
            row[i] = pool[begin + int64(i)]
    else:
        for i in range(words):
            row[i] = 0
    lists = t.token_lists(ctx)
    first = masks[state].tokens
    count = masks[state].token_count if dense != IN_ROOTS else int64(0)
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
    empty = t.empty_tokens(ctx)
    for i in range(len(empty)):
        row[empty[i] >> 5] |= 1 << (empty[i] & 31)
    if t.states(ctx)[state].accepts:
        ends = t.eos_tokens(ctx)
        for i in range(len(ends)):
            row[ends[i] >> 5] |= 1 << (ends[i] & 31)
    return result


@njit_entry(int64(CTX, int64, int64, types.int32[:, ::1], int64))
def add_below(ctx, state, node, out, index):
    """Add the tokens strictly below a trie node that ``state`` allows to row ``index`` of ``out``.

    ``out`` is int32[batch, words].  Returns 0, FAIL, LIMIT or UNMADE; what depends on the text is in OPEN_NODES then.
    """
    reset_work(ctx)
    set_used(ctx, t.OPEN_NODES, 0)
    ctx[LIST_END] = ctx[LIST_LIMIT] = used(ctx, t.TOKEN_LISTS)
    clear_scratch(ctx)
    status = walk_tokens(ctx, node, state, int64(MARK))
    if status < 0:
        return status
    scratch = t.scratch_mask(ctx)
    for i in range(ctx[N_WORDS]):
        out[index, i] |= scratch[i]
    return int64(0)


@njit_inner(types.void(CTX))
def _forget_roots(ctx):
    """Drop what masks by core are made of."""
    for slot in (t.RUNS, t.RUN_ENDS, t.SOURCES, t.SOURCE_NODES, t.SOURCE_HASHES, t.EXITS, t.ROOTS):
        set_used(ctx, slot, 0)
    for slot in (t.RUN_STATES, t.RUN_STATE_MEMBERS, t.RUN_STATE_HASHES, t.RUN_STEPS):
        set_used(ctx, slot, 0)
    rehash(i32(ctx, t.SOURCE_HASHES), 0, i32(ctx, t.SOURCE_BUCKETS))
    rehash(i32(ctx, t.RUN_STATE_HASHES), 0, i32(ctx, t.RUN_STATE_BUCKETS))
    for slot in (t.RUN_KEYS, t.ROOT_KEYS):
        keys = i64(ctx, slot)
        for i in range(len(keys)):
            keys[i] = 0
        set_used(ctx, slot, 0)


@njit_entry(types.void(CTX))
def forget_masks(ctx):
    """Drop every mask of a state and every lexer mask; states and Earley sets stay valid."""
    masks = t.state_masks(ctx)
    for state in range(used(ctx, t.STATE_HASHES)):
        masks[state].dense = NO_MASK
    forget_lexer_masks(ctx)
    set_used(ctx, t.DENSE_MASKS, 0)
    set_used(ctx, t.TOKEN_LISTS, 0)
    set_used(ctx, t.BOUNDARIES, 0)
    _forget_roots(ctx)
