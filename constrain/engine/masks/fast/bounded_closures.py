"""Masks of repetitions with an upper bound: the closure without the tokens that hold too many repetitions."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexer_states import NO_DENSE
from constrain.engine.masks.boundaries import next_node, path_to
from constrain.engine.masks.fast.inside_closures import after_token
from constrain.engine.masks.fast.relaxations import relaxed_state
from constrain.engine.masks.fast.repetitions import allow_up_to, forbid_beyond, more_repetitions
from constrain.engine.masks.lexer_masks import (
    FIRST_SHARED,
    add_dense,
    allow_listed,
    clear_scratch,
    keep_dense,
    keep_lexer_mask,
    take_dense,
)
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import N_WORDS, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_LEXER_MASK, F_OFFER, far_call
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.language import int32, int64

# Fewer repetitions than this rule out so many tokens that a walk is cheaper than trying them.
LEAST_HIGH = 10


@njit_inner(RESULT3)
def _boundaries_within(ctx, lexer_state, runner, high):
    """Append the boundaries of ``runner``, the state without its bound, that the state has; returns 0, FAIL or LIMIT.

    Up to ``high`` bytes the two cannot be told apart.
    """
    begin = t.lexer_masks(ctx)[runner].boundaries
    count = t.lexer_masks(ctx)[runner].boundary_count
    if not room(ctx, t.BOUNDARIES, count):
        return int64(FAIL)
    pairs = t.boundaries(ctx)
    end = used(ctx, t.BOUNDARIES)
    for i in range(begin, begin + count):
        boundary, accept = pairs[i].node, pairs[i].accept
        p = next_node(ctx, boundary, int64(0))
        while p >= 0:
            length = (t.trie_nodes(ctx)[p] >> DEPTH_SHIFT) + 1
            own = accept
            if length > high:
                there = after_token(ctx, path_to(ctx, p), lexer_state)
                if there < 0:
                    return there
                own = t.lexer_states(ctx)[there].accept
            if own != 0:
                if end + 1 > len(pairs):
                    room(ctx, t.BOUNDARIES, 4 * (end + 1 - used(ctx, t.BOUNDARIES)))
                    return int64(FAIL)
                pairs[end] = p, own
                end += 1
            p = next_node(ctx, boundary, p + 1)
    set_used(ctx, t.BOUNDARIES, end)
    return int64(0)


@njit_inner(RESULT3)
def mask_within_bound(ctx, lexer_state, closure, place_and_high):
    """Make the mask of a state whose bound rules out just the tokens of the closure with too many repetitions.

    Outside the closure, its mask is that of the state without the bound, which serves for the next character too.
    Returns 1, FAIL or LIMIT.
    """
    place, high = place_and_high >> 32, place_and_high & 0xFFFFFFFF
    runner = relaxed_state(ctx, lexer_state, high)
    if runner < 0 or runner == lexer_state:
        return int64(NOT_MINE) if runner >= 0 else runner
    status = far_call(ctx, F_LEXER_MASK, runner, 0)
    if status < 0:
        return status
    words = ctx[N_WORDS]
    if not room(ctx, t.DENSE_MASKS, words):
        return int64(FAIL)
    first_boundary = used(ctx, t.BOUNDARIES)
    status = _boundaries_within(ctx, lexer_state, runner, high)
    if status < 0:
        return status

    record = t.lexer_masks(ctx)
    scratch = t.scratch_mask(ctx)
    clear_scratch(ctx)
    if record[runner].dense != NO_DENSE:
        add_dense(ctx, record[runner].dense)
    allow_listed(ctx, record[runner].tokens, record[runner].token_count)
    if 2 * more_repetitions(ctx, place, high) > more_repetitions(ctx, place, int64(0)):
        take_dense(ctx, record[closure].dense)
        allow_up_to(ctx, place, high)
    else:
        forbid_beyond(ctx, place, high)
    # Of the tokens in the closure all is known now.
    inside = t.shared_dense(ctx)
    first_word = (FIRST_SHARED - record[closure].dense) * words
    by_length = t.tokens_by_length(ctx)
    token_start = t.token_starts(ctx)
    for i in range(len(by_length)):
        token = by_length[i]
        length = token_start[token + 1] - token_start[token]
        if length <= high:
            break
        if ((scratch[token >> 5] & ~inside[first_word + (token >> 5)]) >> (token & 31)) & 1:
            there = after_token(ctx, token << 32 | length, lexer_state)
            if there < 0:
                return there
            if there == 0:
                scratch[token >> 5] &= ~(int32(1) << int32(token & 31))
    keep_lexer_mask(ctx, lexer_state, keep_dense(ctx), used(ctx, t.TOKEN_LISTS), first_boundary)
    if high < LEAST_HIGH:
        far_call(ctx, F_OFFER, lexer_state, 0)
    return int64(1)
