"""Subtrees of the trie over which a lexer state stays what it is: a walk takes all their tokens at once.

Inside a string or a name most bytes lead back to the state that they came from.  If all that stand below a node do
(subtree_bytes.py), every token below it is allowed, and a lexeme can end at each node that a character ends at or at
none.  Characters of several bytes lead through states in which no lexeme ends, and back.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64, types, uint64

from constrain.engine.jit import njit_inner
from constrain.engine.lexer import LEX_ACCEPT
from constrain.engine.nodes import RESULT2
from constrain.engine.subtree_bytes import CONTROLS, FIRST_LEAD, ILL_FORMED, LEADS
from constrain.engine.tables import (
    CLASS_OF,
    CLASSES,
    CTX,
    F_LOOPS,
    FOUND,
    LEX,
    LEX_TRANS,
    LOOPS,
    SUBTREES,
    TOKENS_IN_ORDER,
    far_call,
    far_entry,
    i32,
    i64,
    lowest_bit,
    u8,
)

# Where in LOOPS is what is known about which state: the sets of bytes that lead back to it, and that do not.
LOOPS_STATE, LOOPS_BACK, LOOPS_AWAY = 0, 1, 3
_UNKNOWN = -1


@njit_inner(int64(CTX, int64, int64, int64))
def _common(ctx, state, low, high):
    """The state that all bytes from ``low`` to ``high`` lead to; 0 if there is none, _UNKNOWN if one is not known."""
    class_of = u8(ctx, CLASS_OF)
    trans = i32(ctx, LEX_TRANS)
    begin = state * ctx[CLASSES]
    result = int64(trans[begin + int64(class_of[low])])
    for byte in range(low, high + 1):
        there = int64(trans[begin + int64(class_of[byte])])
        if there < 0:
            return int64(_UNKNOWN)
        if there != result:
            return int64(0)
    return result


@njit_inner(RESULT2)
def _leads_back(ctx, state, bit):
    """Whether what a bit of the first word stands for leads back to a state, and no lexeme ends on the way.

    1, 0 or _UNKNOWN.
    """
    if bit == CONTROLS:
        for i in range(3):
            there = _common(ctx, state, int64((0x00, 0x0B, 0x0E)[i]), int64((0x08, 0x0C, 0x1F)[i]))
            if there != state:
                return min(there, int64(0))
        return int64(1)
    if bit < FIRST_LEAD or bit >= ILL_FORMED:
        there = _common(ctx, state, bit, bit)
        return int64(1) if there == state else min(there, int64(0))
    group = 5 * (bit - FIRST_LEAD)
    for lead in range(LEADS[group], LEADS[group + 1] + 1):
        there = _common(ctx, state, int64(lead), int64(lead))
        low, high = int64(LEADS[group + 2]), int64(LEADS[group + 3])
        for _ in range(LEADS[group + 4]):
            if there <= 0:
                return there
            if i32(ctx, LEX)[4 * there + LEX_ACCEPT] != 0:
                return int64(0)
            there = _common(ctx, there, low, high)
            low, high = int64(0x80), int64(0xBF)
        if there != state:
            return min(there, int64(0))
    return int64(1)


@njit_inner(RESULT2)
def _look_below(ctx, state, subtree):
    """:func:`loops_below`, where what is in LOOPS does not tell."""
    loops = i64(ctx, LOOPS)
    below = i64(ctx, SUBTREES)
    if loops[LOOPS_STATE] != state:
        loops[LOOPS_STATE] = state
        for i in range(2):
            loops[LOOPS_BACK + i] = 0
            loops[LOOPS_AWAY + i] = 0
        loops[LOOPS_AWAY] = int64(1) << ILL_FORMED
    for word in range(2):
        missing = below[3 * subtree + word] & ~loops[LOOPS_BACK + word]
        while missing:
            if missing & loops[LOOPS_AWAY + word]:
                return int64(0)
            bit = lowest_bit(missing)
            missing &= missing - 1
            back = _leads_back(ctx, state, bit) if word == 0 else int64(_UNKNOWN)
            if word == 1:
                there = _common(ctx, state, 64 + bit, 64 + bit)
                back = int64(1) if there == state else min(there, int64(0))
            if back == 1:
                loops[LOOPS_BACK + word] |= int64(1) << bit
                continue
            if back == 0:
                loops[LOOPS_AWAY + word] |= int64(1) << bit
            return int64(0)
    return int64(1)


far_entry(F_LOOPS, _look_below)


@njit_inner(types.void(CTX))
def forget_loops(ctx):
    """Begin a walk."""
    i64(ctx, LOOPS)[LOOPS_STATE] = -1


@njit_inner(RESULT2)
def loops_below(ctx, state, subtree):
    """Whether a state stays what it is over all of a large subtree (1 or 0), as far as its transitions are known."""
    loops = i64(ctx, LOOPS)
    if loops[LOOPS_STATE] == state:
        below = i64(ctx, SUBTREES)
        first, second = below[3 * subtree] & ~loops[LOOPS_BACK], below[3 * subtree + 1] & ~loops[LOOPS_BACK + 1]
        if first | second == 0:
            return int64(1)
        if first & loops[LOOPS_AWAY] | second & loops[LOOPS_AWAY + 1]:
            return int64(0)
    return far_call(ctx, F_LOOPS, state, subtree)


@njit_inner(RESULT2)
def take_tokens(ctx, subtree, n):
    """Append to the ``n`` tokens in FOUND all that are in a large subtree, but for its top; returns how many."""
    tokens = i32(ctx, TOKENS_IN_ORDER)
    found = i32(ctx, FOUND)
    place = i64(ctx, SUBTREES)[3 * subtree + 2]
    # Unsigned: the loop is a plain copy only if the indices cannot be negative.
    first, count, target = uint64(place & 0x7FFFFFFF), uint64(place >> 32), uint64(n)
    for i in range(count):
        found[target + i] = tokens[first + i]
    return n + int64(count)
