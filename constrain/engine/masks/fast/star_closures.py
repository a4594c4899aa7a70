"""Masks made from closures: the mask of a state that repeats a character, by the tokens made of such characters.

Inside a JSON string a state may repeat a character without end, and so every token that is made of whole or begun
characters is allowed, whether the string is plain, has a least length, has to match a pattern somewhere or is any
key but twenty.  Let a member of the state begin with a repetition ``C{low,}`` (leading_repetitions.py).  A token that
is the beginning of some ``C C ... C`` can be completed to enough of them, and then by the rest of the member; so it is
allowed.  The set of those tokens is the *closure* of C (closures.py).

What is left are the tokens that leave the closure, over its border; the lexemes that end inside
(inside_closures.py); and what is excluded from the repetition (excluded_texts.py).

With an upper bound, ``C{low,high}``, tokens with more than ``high`` repetitions are taken away again
(bounded_closures.py, repetitions.py).  Where their number does not tell all, the mask is relative to that without the
bound (relative_masks.py).
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexer_states import NO_DENSE
from constrain.engine.masks.fast import (  # noqa: F401 (their kernels are called through links)
    closures,
    excluded_texts,
    relative_masks,
)
from constrain.engine.masks.fast.bounded_closures import LEAST_HIGH, mask_within_bound
from constrain.engine.masks.fast.inside_closures import last_bytes, necessary_byte
from constrain.engine.masks.fast.leading_repetitions import PARTLY, UNBOUNDED
from constrain.engine.masks.fast.repetitions import bound_tells, counted_place
from constrain.engine.masks.lexer_masks import (
    add_dense,
    allow_found,
    clear_scratch,
    keep_dense,
    keep_lexer_mask,
    list_found,
)
from constrain.engine.parser.followed import all_are_followed, find_followed
from constrain.engine.storage import links
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.bits import lowest_bit
from constrain.engine.storage.header import LONGEST, N_WORDS, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import far_call, far_entry
from constrain.engine.storage.statuses import FAIL, NOT_MINE, UNSORTED
from constrain.kernels.language import int64

# More trie nodes than this at which a lexeme might end inside are not worth trying.
_MOST_ENDS = 2048


@njit_inner(RESULT2)
def closure_mask(ctx, lexer_state, _unused):
    """Make the mask of a state by the closure of a repetition in it; 1, NOT_MINE if none is fit, FAIL or LIMIT."""
    loop = far_call(ctx, links.F_REPETITION, lexer_state, 0)
    if loop < 0:
        return int64(NOT_MINE) if loop == -1 else loop
    high = loop & 0xFFFFFFFF
    if find_followed(ctx) < 0:
        return int64(FAIL)
    if necessary_byte(ctx, lexer_state, loop >> 32) < 0:
        starts = t.byte_starts(ctx)
        ends = int64(0)
        for word in range(4):
            bits = last_bytes(ctx, lexer_state, word)
            while bits:
                byte = 64 * word + lowest_bit(bits)
                ends += starts[byte + 1] - starts[byte]
                bits &= bits - 1
        if ends > _MOST_ENDS:
            return int64(NOT_MINE)
    bounded = high < ctx[LONGEST]
    counts = bounded and bound_tells(ctx, lexer_state, t.expressions(ctx)[loop >> 32].first) != 0
    if high < LEAST_HIGH and not counts:
        return int64(NOT_MINE)
    closure = far_call(ctx, links.F_FIND_CLOSURE, loop >> 32, 0)
    if closure < 0:
        return closure
    dense = t.lexer_masks(ctx)[closure].dense
    if dense == NO_DENSE:
        return int64(NOT_MINE)
    if counts:
        place = counted_place(ctx, closure, high)
        if place >= 0:
            return mask_within_bound(ctx, lexer_state, closure, place << 32 | high)
        if place == UNSORTED:
            far_call(ctx, links.F_OFFER, closure, 0)
    if bounded:
        return far_call(ctx, links.F_BOUNDED, lexer_state, 0)
    near = far_call(ctx, links.F_FILL, lexer_state, 0)
    if near < 0:
        return near
    if near > 0 and near != lexer_state and high == UNBOUNDED:
        status = far_call(ctx, links.F_ALONG_WORDS, lexer_state, closure << 32 | near)
        if status != NOT_MINE:
            return status
    words = ctx[N_WORDS]
    if not room(ctx, t.DENSE_MASKS, words) or not room(ctx, t.TOKEN_LISTS, words // 8):
        return int64(FAIL)

    first_boundary = used(ctx, t.BOUNDARIES)
    n = far_call(ctx, links.F_BORDER, lexer_state, closure)
    if n < 0:
        return n
    status = far_call(ctx, links.F_ENDS, lexer_state, closure)
    if status < 0:
        return status

    own = high == PARTLY or n > words // 8
    if own:
        clear_scratch(ctx)
        add_dense(ctx, dense)
    if high == PARTLY:
        status = far_call(ctx, links.F_FORBID, lexer_state, closure)
        if status != 0:
            set_used(ctx, t.BOUNDARIES, first_boundary)
            return int64(NOT_MINE) if status == 1 else status
    first = used(ctx, t.TOKEN_LISTS)
    if own:
        allow_found(ctx, n)
        dense = keep_dense(ctx)
    else:
        first = list_found(ctx, n)
    keep_lexer_mask(ctx, lexer_state, dense, first, first_boundary)
    # One at a time: the closure itself serves more grammars.  Where nothing follows, boundaries have been left out; in
    # another grammar something may follow.
    if high == UNBOUNDED and all_are_followed(ctx, lexer_state):
        far_call(ctx, links.F_OFFER, lexer_state, 0)
    return int64(1)


far_entry(links.F_STAR_CLOSURE, closure_mask)
