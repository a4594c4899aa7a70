"""Token steps: several bytes of a token at once, without the states between them.

A text comes to few of the places within its tokens again, so their states would be made for nothing: where a token has
been from where is remembered instead.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import is_nullable
from constrain.engine.automata.lexer_states import members_after
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import CLASSES, RESULT2, STEP_SHIFT
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_LEXER_STATE, F_STATE_OF_SET, F_TOKEN_STEP, far_call, far_entry
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.kernels.language import int64


@njit_inner(RESULT2)
def token_step(ctx, state, token_and_place):
    """Go on from a state with the bytes of a token, ``token << 32 | place`` and on, until a lexeme could end.

    Returns the state there, and above it from STEP_SHIFT on how many bytes these were, two at least; 0 if nothing
    begins so; NOT_MINE; or FAIL or LIMIT.
    """
    if t.states(ctx)[state].count != 1:
        return int64(NOT_MINE)
    offset = t.states(ctx)[state].offset
    row, lexer_state = t.configurations(ctx)[offset].earley_set, t.configurations(ctx)[offset].lexer_state
    token, place = token_and_place >> 32, token_and_place & 0xFFFFFFFF
    data = t.token_bytes(ctx)
    class_of = t.byte_classes(ctx)
    classes = ctx[CLASSES]
    begin, end = t.token_starts(ctx)[token] + place, t.token_starts(ctx)[token + 1]
    at = begin
    while at < end:
        known = t.lexer_transitions(ctx)[lexer_state * classes + class_of[data[at]]]
        if known <= 0 or t.lexer_states(ctx)[known].accept != 0:
            break
        lexer_state = known
        at += 1
    base = used(ctx, t.WORK_STACK)
    slot, offset = int64(t.LEXER_MEMBERS), t.lexer_states(ctx)[lexer_state].offset
    count = t.lexer_states(ctx)[lexer_state].count
    while at < end:
        top = used(ctx, t.WORK_STACK)
        after = members_after(ctx, slot, offset, count, data[at])
        if after <= 0:
            set_used(ctx, t.WORK_STACK, base)
            return after
        may_end = False
        for i in range(after):
            may_end |= is_nullable(ctx, t.work_stack(ctx)[top + 2 * i + 1])
        if may_end:
            break
        slot, offset, count = int64(t.WORK_STACK), top, after
        at += 1
    if at - begin < 2:
        set_used(ctx, t.WORK_STACK, base)
        return int64(NOT_MINE)
    if slot == t.WORK_STACK:
        # To the top of the stack, where members are made a state.
        if not room(ctx, t.WORK_STACK, 2 * count):
            return int64(FAIL)
        top = used(ctx, t.WORK_STACK)
        tmp = t.work_stack(ctx)
        for i in range(2 * count):
            tmp[top + i] = tmp[offset + i]
        set_used(ctx, t.WORK_STACK, top + 2 * count)
        lexer_state = far_call(ctx, F_LEXER_STATE, top, count)
        set_used(ctx, t.WORK_STACK, base)
        if lexer_state < 0:
            return lexer_state
    set_used(ctx, t.WORK_STACK, base)
    result = far_call(ctx, F_STATE_OF_SET, row, lexer_state)
    return result if result < 0 else result | (at - begin) << STEP_SHIFT


far_entry(F_TOKEN_STEP, token_step)
