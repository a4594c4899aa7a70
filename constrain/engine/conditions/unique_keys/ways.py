"""In how many ways a key can go on: what the kernels of limited_keys.py and exhaustion.py have in common.

Ways are counted on automata whose dead states are known, those of lexemes or that of the grammar, layer by layer, one
byte of the key at a time: each state of a layer stands for at least one key, and no two of these are the same, so
counting ends as soon as there are more than asked for.  Most keys go on in a hundred ways after one byte.

Every character of a key can be written raw, but for quotes, backslashes and control characters; and in texts that are
ASCII only, for all that are not.  So escapes stand for further keys only there, and others are not followed.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.conditions.unique_keys.memory import KEY_BYTES
from constrain.engine.storage.access import memory_u8
from constrain.engine.storage.header import CLASSES, CTX, OPEN
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_STEP, far_call
from constrain.engine.storage.schemas import byte_classes, class_bytes, class_sizes, lexer_transitions, transitions
from constrain.engine.storage.statuses import UNSURE
from constrain.kernels.language import int64

# How many states a layer may have, and all layers.
_WIDTH = 4096
_MOST_STATES = 1 << 17

# In the work space: two layers of states, each with the ways that lead to them; states after escapes; and what
# unique_keys/masks.py keeps there.
_COUNTS, _NEXT, _OTHERS, _ESCAPED = _WIDTH, 2 * _WIDTH, 4 * _WIDTH, 4 * _WIDTH + 1
KNOWN, WORK_SIZE = 4 * _WIDTH + 40, 4 * _WIDTH + 56

MOST_BLANKS = 1000
"""What may stand before a quote: more than in a layout with line breaks and many levels."""


@njit_inner(int64(CTX, int64, int64, int64))
def step_class(ctx, automaton, state, byte_class):
    """The state after a byte of a class; 0, UNSURE if it is an open one, or FAIL and its like."""
    place = state * ctx[CLASSES] + byte_class
    known = int64(transitions(ctx)[place] if automaton == F_STEP else lexer_transitions(ctx)[place])
    if known >= 0:
        return known
    state = far_call(ctx, automaton, state, byte_class)
    return int64(UNSURE) if state >= OPEN else state


@njit_inner(int64(CTX, int64, int64, int64))
def step(ctx, automaton, state, byte):
    """The state after a byte; what is not above 0 stays as it is."""
    return step_class(ctx, automaton, state, byte_classes(ctx)[byte]) if state > 0 else state


@njit_inner(int64(CTX, int64, int64, int64))
def _step_digit(ctx, automaton, state, digit):
    """The state after a hexadecimal digit."""
    return step(ctx, automaton, state, digit + (0x30 if digit < 10 else 0x57))


@njit_inner(int64(CTX, int64, int64, int64))
def _step_escaped(ctx, automaton, state, byte):
    """The state after a character that is always escaped."""
    state = step(ctx, automaton, state, int64(0x5C))
    if byte == 0x22 or byte == 0x5C:
        return step(ctx, automaton, state, byte)
    for each in (0x75, 0x30, 0x30, 0x30 | byte >> 4):
        state = step(ctx, automaton, state, int64(each))
    return _step_digit(ctx, automaton, state, byte & 15)


@njit_inner(int64(CTX, int64, int64, int64[::1]))
def _find_escapes(ctx, automaton, state, work):
    """Write the states after each character that is always escaped to the work space.

    And whether characters outside of ASCII may be escaped here.

    Returns
    -------
    How many there are; < 0: UNSURE, FAIL and its like.
    """
    count, others, error = int64(0), int64(0), int64(0)
    state = step(ctx, automaton, state, int64(0x5C))
    for byte in (0x22, 0x5C):
        work[_ESCAPED + count] = step(ctx, automaton, state, int64(byte))
        count += work[_ESCAPED + count] != 0
    state = step(ctx, automaton, state, int64(0x75))
    # Behind \u00, what comes up to 1 is a control character, and up to 7 ASCII.
    for place in range(3):
        for digit in range(8 if place == 2 else 1, 16):
            then = _step_digit(ctx, automaton, state, int64(digit))
            error = min(error, then)
            others |= then
        if place < 2:
            state = _step_digit(ctx, automaton, state, int64(0))
    for high in range(2):
        then = _step_digit(ctx, automaton, state, int64(high))
        if then != 0:
            for low in range(16):
                work[_ESCAPED + count] = _step_digit(ctx, automaton, then, int64(low))
                count += work[_ESCAPED + count] != 0
    for i in range(count):
        error = min(error, work[_ESCAPED + i])
    work[_OTHERS] = others
    error = min(error, state)
    return error if error < 0 else count


@njit_inner(int64(CTX, int64[::1], int64, int64, int64, int64))
def _add(ctx, work, layer, n, state, ways):
    """Add a state to the ``n`` of a layer: how many there are then, or UNSURE if there is no room."""
    for i in range(n):
        if work[layer + i] == state:
            work[layer + _COUNTS + i] += ways
            return n
    if n == _WIDTH:
        return int64(UNSURE)
    work[layer + n] = state
    work[layer + _COUNTS + n] = ways
    return n + 1


@njit_inner(int64(CTX, int64, int64, int64, int64[::1]))
def count_ways(ctx, automaton, state, most, work):
    """In how many ways a key can go on from a state within it, the quote behind it included.

    Any number above ``most`` if there are more than that.  < 0: UNSURE, FAIL and its like.
    """
    quote, backslash = byte_classes(ctx)[0x22], byte_classes(ctx)[0x5C]
    layer, other = int64(0), int64(_NEXT)
    work[0], work[_COUNTS] = state, int64(1)
    n, ended, looked, going_on = int64(1), int64(0), int64(0), int64(1)
    while n > 0:
        following, before = int64(0), going_on
        going_on = int64(0)
        for i in range(n):
            here, ways = work[layer + i], work[layer + _COUNTS + i]
            before -= ways
            looked += 1
            if looked > _MOST_STATES:
                return int64(UNSURE)
            raw = False
            for byte_class in range(ctx[CLASSES]):
                if byte_class == quote or byte_class == backslash:
                    continue
                then = step_class(ctx, automaton, here, int64(byte_class))
                if then < 0:
                    return then
                if then == 0:
                    continue
                raw |= class_bytes(ctx)[byte_class] >= 0x80
                more = ways * class_sizes(ctx)[byte_class]
                going_on += more
                if ended + before + going_on > most:
                    return most + 1
                following = _add(ctx, work, other, following, then, more)
                if following < 0:
                    return following
            then = step_class(ctx, automaton, here, quote)
            if then < 0 and then != UNSURE:
                return then
            if then != 0:
                ended += ways
            escapes = _find_escapes(ctx, automaton, here, work)
            if escapes < 0:
                return escapes
            if work[_OTHERS] and not raw:
                return int64(UNSURE)
            for i in range(escapes):
                going_on += ways
                following = _add(ctx, work, other, following, work[_ESCAPED + i], ways)
                if following < 0:
                    return following
            if ended + before + going_on > most:
                return most + 1
        layer, other, n = other, layer, following
    return ended


@njit_inner(int64(CTX, CTX, int64, int64, int64, int64, int64[::1]))
def after_key(ctx, memory, automaton, state, begin, end, work):
    """The state after ``KEY_BYTES[begin:end]`` as part of a key; 0, or < 0: UNSURE, FAIL and its like."""
    data = memory_u8(memory, KEY_BYTES)
    for i in range(begin, end):
        byte = int64(data[i])
        if byte < 0x20 or byte == 0x22 or byte == 0x5C:
            state = _step_escaped(ctx, automaton, state, byte)
        else:
            before, state = state, step(ctx, automaton, state, byte)
            if state == 0 and byte >= 0x80 and (_find_escapes(ctx, automaton, before, work) < 0 or work[_OTHERS]):
                return int64(UNSURE)
        if state <= 0:
            return state
    return state
