"""Subtrees of the trie over which a lexer state stays what it is: a walk takes all their tokens at once.

Inside a string or a name most bytes lead back to the state that they came from.  If all that stand below a node do
(subtree_classes.py), every token below it is allowed, and a lexeme can end at each node that a character ends at or at
none: one boundary stands for all of them (boundaries.py).  Characters of several bytes lead through states in which no
lexeme ends, and back.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.storage import schemas as t
from constrain.engine.storage.bits import lowest_bit
from constrain.engine.storage.header import CLASSES, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_SELF_LOOP, far_entry
from constrain.engine.storage.statuses import NOT_MINE
from constrain.engine.vocabulary.subtree_classes import CHARACTERS, ILL_FORMED
from constrain.kernels.language import int64, uint64

# Where in SELF_LOOPS is what is known about which state: the sets of bytes that lead back to it, and that do not.
LOOPS_STATE, LOOPS_BACK, LOOPS_AWAY = 0, 1, 3


@njit_inner(RESULT2)
def _leads_back(ctx, state, bit):
    """Whether the characters of a bit lead back to a state, and no lexeme ends on the way: 1, 0, or -1 if not known."""
    class_of = t.byte_classes(ctx)
    trans = t.lexer_transitions(ctx)
    classes = ctx[CLASSES]
    row = 5 * bit
    for lead in range(CHARACTERS[row], CHARACTERS[row + 1] + 1):
        there = trans[state * classes + class_of[lead]]
        low, high = CHARACTERS[row + 2], CHARACTERS[row + 3]
        for _ in range(CHARACTERS[row + 4]):
            if there <= 0 or t.lexer_states(ctx)[there].accept != 0:
                return min(there, int64(0))
            # All bytes that may come next have to lead to one state.
            common = trans[there * classes + class_of[low]]
            for byte in range(low, high + 1):
                after = trans[there * classes + class_of[byte]]
                if after != common or after <= 0:
                    return min(after, common, int64(0))
            there = common
            low, high = int64(0x80), int64(0xBF)
        if there != state:
            return min(there, int64(0))
    return int64(1)


@njit_inner(RESULT2)
def _take_subtree(ctx, state_and_subtree, n):
    """Append to the ``n`` tokens in FOUND_TOKENS all below the top of a large subtree, if a state loops over it.

    Returns how many tokens there are then; NOT_MINE if it does not, as far as its transitions are known.  A walk begins
    with a call for -1 in place of a state and a subtree.
    """
    loops = t.self_loops(ctx)
    if state_and_subtree < 0:
        loops[LOOPS_STATE] = -1
        return int64(NOT_MINE)
    state, subtree = state_and_subtree >> 32, state_and_subtree & 0xFFFFFFFF
    below = t.subtrees(ctx)
    if loops[LOOPS_STATE] != state:
        loops[LOOPS_STATE] = state
        loops[LOOPS_BACK], loops[LOOPS_BACK + 1] = 0, 0
        loops[LOOPS_AWAY], loops[LOOPS_AWAY + 1] = int64(1) << ILL_FORMED, 0
    for word in range(2):
        missing = below[subtree, word] & ~loops[LOOPS_BACK + word]
        if missing & loops[LOOPS_AWAY + word]:
            return int64(NOT_MINE)
        while missing:
            bit = lowest_bit(missing)
            back = _leads_back(ctx, state, 64 * word + bit)
            if back == 0:
                loops[LOOPS_AWAY + word] |= int64(1) << bit
            if back <= 0:
                return int64(NOT_MINE)
            loops[LOOPS_BACK + word] |= int64(1) << bit
            missing &= missing - 1
    tokens = t.tokens_in_order(ctx)
    found = t.found_tokens(ctx)
    place = below[subtree, 2]
    # Unsigned: the loop is a plain copy only if the indices cannot be negative.
    first, count, target = uint64(place & 0x7FFFFFFF), uint64(place >> 32), uint64(n)
    for i in range(count):
        found[target + i] = tokens[first + i]
    return n + int64(count)


far_entry(F_SELF_LOOP, _take_subtree)
