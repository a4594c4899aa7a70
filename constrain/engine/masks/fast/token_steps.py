"""Leaps: several bytes of a token at once, without the states between them.

A text comes to few of the places within its tokens again, so their states would be made for nothing: where a token has
been from where is remembered instead.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64

from constrain.engine.automata.expressions import RESULT2, is_nullable
from constrain.engine.automata.lexer_states import LEX_ACCEPT, LEX_COUNT, LEX_OFFSET, members_after
from constrain.engine.parser.configurations import STATE_COUNT, STATE_OFFSET
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.tables import (
    CLASS_OF,
    CLASSES,
    F_LEAP,
    F_LEXER_STATE,
    F_STATE_OF_ROW,
    FAIL,
    LEAP_SHIFT,
    LEX,
    LEX_POOL,
    LEX_TRANS,
    NO_LEAP,
    STATES,
    THREADS,
    TMP,
    TOKEN_BYTES,
    TOKEN_START,
    far_call,
    far_entry,
    i32,
    i64,
    room,
    set_used,
    u8,
    used,
)


@njit_inner(RESULT2)
def leap(ctx, state, token_and_place):
    """Go on from a state with the bytes of a token, ``token << 32 | place`` and on, until a lexeme could end.

    Returns the state there, and above it from LEAP_SHIFT on how many bytes these were, two at least; 0 if nothing
    begins so; NO_LEAP; or FAIL or LIMIT.
    """
    if i32(ctx, STATES)[3 * state + STATE_COUNT] != 1:
        return int64(NO_LEAP)
    thread = 2 * int64(i32(ctx, STATES)[3 * state + STATE_OFFSET])
    row, lexer_state = int64(i32(ctx, THREADS)[thread]), int64(i32(ctx, THREADS)[thread + 1])
    token, place = token_and_place >> 32, token_and_place & 0xFFFFFFFF
    data = u8(ctx, TOKEN_BYTES)
    class_of = u8(ctx, CLASS_OF)
    classes = ctx[CLASSES]
    begin, end = i64(ctx, TOKEN_START)[token] + place, i64(ctx, TOKEN_START)[token + 1]
    at = begin
    while at < end:
        known = int64(i32(ctx, LEX_TRANS)[lexer_state * classes + int64(class_of[data[at]])])
        if known <= 0 or i32(ctx, LEX)[4 * known + LEX_ACCEPT] != 0:
            break
        lexer_state = known
        at += 1
    base = used(ctx, TMP)
    slot, offset = int64(LEX_POOL), int64(i32(ctx, LEX)[4 * lexer_state + LEX_OFFSET])
    count = int64(i32(ctx, LEX)[4 * lexer_state + LEX_COUNT])
    while at < end:
        top = used(ctx, TMP)
        after = members_after(ctx, slot, offset, count, int64(data[at]))
        if after <= 0:
            set_used(ctx, TMP, base)
            return after
        may_end = False
        for i in range(after):
            may_end |= is_nullable(ctx, int64(i32(ctx, TMP)[top + 2 * i + 1]))
        if may_end:
            break
        slot, offset, count = int64(TMP), top, after
        at += 1
    if at - begin < 2:
        set_used(ctx, TMP, base)
        return int64(NO_LEAP)
    if slot == TMP:
        # To the top of the stack, where members are made a state.
        if not room(ctx, TMP, 2 * count):
            return int64(FAIL)
        top = used(ctx, TMP)
        tmp = i32(ctx, TMP)
        for i in range(2 * count):
            tmp[top + i] = tmp[offset + i]
        set_used(ctx, TMP, top + 2 * count)
        lexer_state = far_call(ctx, F_LEXER_STATE, top, count)
        set_used(ctx, TMP, base)
        if lexer_state < 0:
            return lexer_state
    set_used(ctx, TMP, base)
    result = far_call(ctx, F_STATE_OF_ROW, row, lexer_state)
    return result if result < 0 else result | (at - begin) << LEAP_SHIFT


far_entry(F_LEAP, leap)
