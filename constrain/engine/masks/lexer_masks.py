"""Lexer masks: the tokens of a lexer state that stay inside the lexemes under way, and the boundaries of lexemes.

A lexer mask depends on the lexer state and the vocabulary, not on the parser.  Here it is made by a walk over every
trie node that the state reaches: the plain walk, which is complete and exact by itself.  What is quicker for some
states or subtrees is asked first (accelerators.py), and gives the same tokens and boundaries.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

from constrain.engine.automata.lexer_states import NO_DENSE, leads_on
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i32, room, set_used, used
from constrain.engine.storage.bits import count_bits, lowest_bit
from constrain.engine.storage.header import CLASSES, CTX, N_WORDS, RESULT0, RESULT1, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_LEXER_STEP, F_SELF_LOOP, far_call
from constrain.engine.storage.statuses import FAIL
from constrain.engine.vocabulary.trie import CHILD_OF_WIDE, DEPTH_SHIFT, LARGE, WIDE
from constrain.kernels.language import int32, int64, types, uint64

_SHIFT, _BYTE, _WORD = uint64(DEPTH_SHIFT), uint64(255), uint64(5)
_WIDE, _CHILD_OF_WIDE, _LARGE = uint64(WIDE), uint64(CHILD_OF_WIDE), uint64(LARGE)
_LEAD = uint64(0xC0)

FIRST_SHARED = -16
"""In place of where a dense mask is: ``FIRST_SHARED - i`` for the ``i``-th of the vocabulary's."""


@njit_inner(types.UniTuple(int64, 2)(CTX, int64))
def place_of_dense(ctx, dense):
    """The table that a dense mask is in, the grammar's own or the vocabulary's, and its first word there.

    It is read as ``dense_words(ctx, table)[first + i]``.
    """
    if dense >= 0:
        return int64(t.DENSE_MASKS), dense
    return int64(t.SHARED_DENSE), (FIRST_SHARED - dense) * ctx[N_WORDS]


@njit_inner(types.void(CTX, int64))
def add_dense(ctx, dense):
    """Allow in the scratch mask what a dense mask allows."""
    scratch = t.scratch_mask(ctx)
    table, first = place_of_dense(ctx, dense)
    words = t.dense_words(ctx, table)
    for i in range(ctx[N_WORDS]):
        scratch[i] |= words[first + i]


@njit_inner(types.void(CTX, int64))
def take_dense(ctx, dense):
    """Take from the scratch mask what a dense mask allows."""
    scratch = t.scratch_mask(ctx)
    table, first = place_of_dense(ctx, dense)
    words = t.dense_words(ctx, table)
    for i in range(ctx[N_WORDS]):
        scratch[i] &= ~words[first + i]


@njit_inner(types.void(CTX))
def clear_scratch(ctx):
    """Allow nothing in the scratch mask."""
    scratch = t.scratch_mask(ctx)
    for i in range(ctx[N_WORDS]):
        scratch[i] = 0


@njit_inner(RESULT0)
def keep_dense(ctx):
    """Copy the scratch mask to the pool of dense masks, which has room; returns where it is."""
    words = ctx[N_WORDS]
    scratch = t.scratch_mask(ctx)
    pool = t.dense_masks(ctx)
    dense = used(ctx, t.DENSE_MASKS)
    begin = uint64(dense)
    for i in range(words):
        pool[begin + uint64(i)] = scratch[i]
    set_used(ctx, t.DENSE_MASKS, dense + words)
    return dense


@njit_inner(types.void(CTX, int64, int64, int64, int64))
def keep_lexer_mask(ctx, lexer_state, dense, first, first_boundary):
    """Write the record of a lexer mask; its list and boundaries are the ends of their tables."""
    n_tokens, n_boundaries = used(ctx, t.TOKEN_LISTS) - first, used(ctx, t.BOUNDARIES) - first_boundary
    t.lexer_masks(ctx)[lexer_state] = dense, first, n_tokens, first_boundary, n_boundaries


@njit_inner(int64(CTX, int64, int64, int64))
def next_child(ctx, wide, byte, state):
    """The first child of a wide node from ``byte`` on, with which a lexer state may go on; else the subtree's end."""
    children = t.wide_masks(ctx)
    begins = t.lexer_first_bytes(ctx)
    rank = t.wide_first(ctx)[wide]
    for word in range(4):
        own = children[wide, word]
        if 64 * word + 63 >= byte:
            bits = own & begins[state, word]
            if byte > 64 * word:
                bits &= int64(-1) << (byte - 64 * word)
            if bits:
                below = (int64(1) << lowest_bit(bits)) - 1
                return t.wide_child(ctx)[rank + count_bits(own & below)]
        rank += count_bits(own)
    return t.wide_ends(ctx)[wide]


@njit_inner(RESULT3)
def walk(ctx, p, end, n):
    """Walk the trie from node ``p`` to ``end``, its subtree's or the trie's; WALK_STACK has the state before ``p``.

    Tokens go to FOUND_TOKENS from ``n`` on, boundaries (boundaries.py) to the end of BOUNDARIES.  Returns how many
    tokens there are then, or FAIL or LIMIT.  If ``p`` is not at the top of the trie, the state must be able to go on
    with its byte.

    All of it is one loop: a call for each node would take longer than the node.
    """
    nodes = t.trie_nodes(ctx)
    sizes = t.subtree_sizes(ctx)
    tokens = t.node_tokens(ctx)
    stack = t.walk_stack(ctx)
    wides = t.wide_stack(ctx)
    wide = t.wide_nodes(ctx)
    class_of = t.byte_classes(ctx)
    classes = uint64(ctx[CLASSES])
    trans = t.lexer_transitions(ctx)
    records = t.lexer_states(ctx)
    found = t.found_tokens(ctx)
    pairs = t.boundaries(ctx)
    n_boundaries = used(ctx, t.BOUNDARIES)
    space = len(pairs)
    wides[0] = 0
    far_call(ctx, F_SELF_LOOP, int64(-1), int64(0))
    looping = int64(-1)
    # Unsigned indices spare the check for negative ones, a quarter of the walk's time.
    place, stop, count = uint64(p), uint64(end), uint64(n)
    while place < stop:
        node = uint64(nodes[place])
        depth = node >> _SHIFT
        here = uint64(stack[depth])
        byte_class = uint64(class_of[node & _BYTE])
        there = trans[here * classes + byte_class]
        if there <= 0:
            if there < 0 and sizes[place] == 1 and leads_on(ctx, int64(here), int64(byte_class)):
                found[count] = tokens[place]
                count += uint64(1)
                place += uint64(1)
                continue
            if there < 0:
                set_used(ctx, t.BOUNDARIES, n_boundaries)
                there = far_call(ctx, F_LEXER_STEP, int64(here), int64(byte_class))
                if there < 0:
                    return there
            if there == 0:
                if node & _CHILD_OF_WIDE:
                    place = uint64(next_child(ctx, wides[depth], int64(node & _BYTE) + 1, int64(here)))
                else:
                    place += uint64(sizes[place])
                continue
        token = tokens[place]
        # Without a branch: whether a node ends a token is a coin toss to the processor.
        found[count] = token
        count += uint64(token >= 0)
        stack[depth + uint64(1)] = there
        # What a boundary at this node stands for, and for which lexemes.
        boundary, ending = int64(place), there
        if there == int64(here):
            looping = there
        if looping >= 0 and node & _LARGE:
            state = there if node & _LEAD != _LEAD else int64(here)
            if state == looping:
                taken = far_call(ctx, F_SELF_LOOP, state << 32 | wide[place], int64(count))
                if taken >= 0:
                    count, boundary, ending = uint64(taken), ~boundary, state
        accept = records[ending].accept
        if accept != 0 and sizes[place] > 1:
            if n_boundaries == space:
                # Where a lexeme can end at many nodes it can at many more; to ask often means walking often.
                room(ctx, t.BOUNDARIES, 4 * n_boundaries)
                return int64(FAIL)
            pairs[n_boundaries] = boundary, accept
            n_boundaries += 1
        if boundary < 0 or (accept != 0 and records[ending].goes_on == 0):
            place += uint64(sizes[place])
            continue
        if node & _WIDE:
            wides[depth + uint64(1)] = wide[place]
            place = uint64(next_child(ctx, wides[depth + uint64(1)], int64(0), there))
        else:
            place += uint64(1)
    set_used(ctx, t.BOUNDARIES, n_boundaries)
    return int64(count)


@njit_inner(RESULT1)
def with_same_bytes(ctx, n):
    """Append to the ``n`` tokens in FOUND_TOKENS those with the same bytes; returns how many there are then."""
    found = t.found_tokens(ctx)
    same = t.same_bytes(ctx)
    count = n
    if len(same):
        for i in range(n):
            token = same[found[i]]
            while token >= 0:
                found[count] = token
                count += 1
                token = same[token]
    return count


@njit_inner(types.void(CTX, int64))
def allow_found(ctx, n):
    """Set the ``n`` tokens in FOUND_TOKENS in the scratch mask."""
    found = t.found_tokens(ctx)
    scratch = t.scratch_mask(ctx)
    for i in range(n):
        token = found[i]
        scratch[uint64(token) >> _WORD] |= int32(1) << (token & int32(31))


@njit_inner(types.void(CTX, int64, int64))
def allow_listed(ctx, first, count):
    """Set the tokens ``TOKEN_LISTS[first:][:count]`` in the scratch mask."""
    scratch, lists = t.scratch_mask(ctx), t.token_lists(ctx)
    for i in range(first, first + count):
        scratch[lists[i] >> 5] |= int64(1) << (lists[i] & 31)


@njit_inner(RESULT1)
def list_found(ctx, n):
    """Append the ``n`` tokens in FOUND_TOKENS to the token lists, which have room; returns where they begin."""
    found = t.found_tokens(ctx)
    lists = t.token_lists(ctx)
    first = used(ctx, t.TOKEN_LISTS)
    for i in range(n):
        lists[first + i] = found[i]
    set_used(ctx, t.TOKEN_LISTS, first + n)
    return first


@njit_inner(RESULT1)
def walk_lexer_mask(ctx, lexer_state):
    """Make the mask of a lexer state by a walk over the whole trie; returns 0, FAIL or LIMIT."""
    words = ctx[N_WORDS]
    # Asked for before the walk: to find out afterwards would mean walking twice.
    if not room(ctx, t.DENSE_MASKS, words) or not room(ctx, t.TOKEN_LISTS, words // 8):
        return int64(FAIL)
    first_boundary = used(ctx, t.BOUNDARIES)
    t.walk_stack(ctx)[0] = lexer_state
    n = walk(ctx, next_child(ctx, int64(0), int64(0), lexer_state), len(i32(ctx, t.TRIE_NODES)), int64(0))
    if n < 0:
        set_used(ctx, t.BOUNDARIES, first_boundary)
        return n
    n = with_same_bytes(ctx, n)
    dense, first = int64(NO_DENSE), used(ctx, t.TOKEN_LISTS)
    if n > words // 8:
        clear_scratch(ctx)
        allow_found(ctx, n)
        dense = keep_dense(ctx)
    else:
        first = list_found(ctx, n)
    keep_lexer_mask(ctx, lexer_state, dense, first, first_boundary)
    return int64(0)
