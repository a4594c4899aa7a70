"""How far a key may be that only goes on to keys that are there: the kernels of unique_keys/limited_keys.py."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.conditions.unique_keys.memory import DEAD_END, DEAD_IN_TOKEN, KEYS, LIMITED, N_KEYS, NO_DEAD_END
from constrain.engine.conditions.unique_keys.ways import MOST_BLANKS, after_key, count_ways, step
from constrain.engine.parser.configurations import reset_work
from constrain.engine.storage.access import memory_i32, room, set_used
from constrain.engine.storage.header import CLASSES, CTX
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import F_LEXER_STATE, F_LEXER_STEP, far_call
from constrain.engine.storage.schemas import WORK_STACK, lexemes, work_stack
from constrain.engine.storage.statuses import FAIL, UNSURE
from constrain.kernels.language import int32, int64

# Of a key's record, the bits above RISKY and LIMITED: whether a token may hold its beginning that leads to no new one
# (DEAD_IN_TOKEN), whether that is known, and how long that beginning is, plus one, or 0 if that is not known.
HELD_SHIFT, HELD_KNOWN, DEAD_SHIFT = 2, 1 << 4, 5


@njit_entry(int64(CTX, int32[::1]))
def find_body(ctx, all_lexemes):
    """The lexer state where the text of a key begins, which is one of ``lexemes`` (int32[n], upwards).

    Returns
    -------
    0 if there is no such key; UNSURE if they do not come to a quote; FAIL and its like.
    """
    reset_work(ctx)
    count = int64(len(all_lexemes))
    if not room(ctx, WORK_STACK, 2 * count):
        return int64(FAIL)
    tmp = work_stack(ctx)
    for i in range(count):
        tmp[2 * i] = all_lexemes[i]
        tmp[2 * i + 1] = lexemes(ctx)[int64(all_lexemes[i])].expression
    set_used(ctx, WORK_STACK, 2 * count)
    state = far_call(ctx, F_LEXER_STATE, int64(0), count)
    set_used(ctx, WORK_STACK, 0)
    for _ in range(MOST_BLANKS):
        if state <= 0:
            return state
        then = step(ctx, int64(F_LEXER_STEP), state, int64(0x22))
        if then > 0:
            return then
        for byte_class in range(ctx[CLASSES]):
            if then == 0:
                then = far_call(ctx, F_LEXER_STEP, state, int64(byte_class))
        state = then
    return int64(UNSURE)


@njit_inner(int64(CTX, CTX, int64, int64, int64, int64, int64[::1]))
def _dead_length(ctx, memory, body, begin, end, most, work):
    """How long the beginning of a key is that goes on in at most ``most`` ways; NO_DEAD_END, FAIL and its like."""
    low, high = begin - 1, end
    length = end
    # All of it first, which nearly always goes on in more: then its beginnings do.
    while True:
        state = after_key(ctx, memory, int64(F_LEXER_STEP), body, begin, length, work)
        if state == UNSURE:
            return int64(0)
        if state <= 0:
            return state if state < 0 else int64(NO_DEAD_END)
        if length == end:
            then = step(ctx, int64(F_LEXER_STEP), state, int64(0x22))
            if then <= 0:
                return then if then < 0 else int64(NO_DEAD_END)
        ways = count_ways(ctx, int64(F_LEXER_STEP), state, most, work)
        if ways < 0 and ways != UNSURE:
            return ways
        if ways > most:
            if length == end:
                return int64(NO_DEAD_END)
            low = length
        else:
            high = length
        if high - low <= 1:
            return high - begin
        length = (low + high) // 2


@njit_entry(int64(CTX, CTX, int32[::1], int64, int64, int64[::1]))
def find_dead_ends(ctx, memory, bodies, n, most, work):
    """Set DEAD_END and DEAD_IN_TOKEN by the limited keys, as far as the latter is known for each; or see how many are.

    It is one kernel for both for the time that it takes to compile.

    Parameters
    ----------
    memory : int64[...]
        Of the keys.
    bodies : int32[...]
        Where the text of a limited key begins: the first ``n``.
    most : int
        A beginning leads to a dead end if it goes on in at most so many ways.  If it is 0, the keys are left alone.
    work : int64[WORK_SIZE]

    Returns
    -------
    How many keys have a dead end, and had not been looked at; or FAIL and its like.  If ``most`` is 0: in how many of
    ``bodies`` there is but one key, or that is not clear.
    """
    reset_work(ctx)
    if most == 0:
        single = int64(0)
        for i in range(n):
            ways = count_ways(ctx, int64(F_LEXER_STEP), int64(bodies[i]), int64(1), work)
            if ways < 0 and ways != UNSURE:
                return ways
            single += ways == 1 or ways == UNSURE
        return single
    keys = memory_i32(memory, KEYS)
    shortest, held, new = int64(NO_DEAD_END), int64(0), int64(0)
    for key in range(memory[N_KEYS]):
        kind = int64(keys[3 * key + 2])
        if kind & LIMITED == 0:
            continue
        if kind >> DEAD_SHIFT == 0:
            begin, end = int64(keys[3 * key]), int64(keys[3 * key + 1])
            length = int64(NO_DEAD_END)
            for i in range(n):
                found = _dead_length(ctx, memory, int64(bodies[i]), begin, end, most, work)
                if found < 0:
                    return found
                length = min(length, found)
            new += length < NO_DEAD_END
            kind = kind & ((1 << HELD_SHIFT) - 1) | (length + 1) << DEAD_SHIFT
            keys[3 * key + 2] = kind
        shortest = min(shortest, (kind >> DEAD_SHIFT) - 1)
        held |= kind >> HELD_SHIFT & 3
    memory[DEAD_END], memory[DEAD_IN_TOKEN] = shortest, held
    return new
