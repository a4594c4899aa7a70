"""Subtrees of the trie over which a lexer state stays what it is: a walk takes all their tokens at once.

Inside a string or a name most bytes lead back to the state that they came from.  If all that stand below a node do
(subtree_classes.py), every token below it is allowed, and a lexeme can end at each node that a character ends at or at
none.  Characters of several bytes lead through states in which no lexeme ends, and back.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64, types, uint64

from constrain.engine.storage.bits import lowest_bit
from constrain.engine.storage.header import CLASSES, CTX, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_INSIDE, F_LOOPS, far_call, far_entry
from constrain.engine.storage.schemas import (
    byte_classes,
    child_groups,
    found_tokens,
    lexer_states,
    lexer_transitions,
    self_loops,
    subtree_sizes,
    subtrees,
    tokens_in_order,
    trie_nodes,
    wide_nodes,
)
from constrain.engine.vocabulary.subtree_classes import CHARACTERS, ILL_FORMED

# Where in SELF_LOOPS is what is known about which state: the sets of bytes that lead back to it, and that do not.
LOOPS_STATE, LOOPS_BACK, LOOPS_AWAY = 0, 1, 3


@njit_inner(RESULT2)
def _leads_back(ctx, state, bit):
    """Whether the characters of a bit lead back to a state, and no lexeme ends on the way: 1, 0, or -1 if not known."""
    class_of = byte_classes(ctx)
    trans = lexer_transitions(ctx)
    classes = ctx[CLASSES]
    row = 5 * bit
    for lead in range(CHARACTERS[row], CHARACTERS[row + 1] + 1):
        there = trans[state * classes + class_of[lead]]
        low, high = CHARACTERS[row + 2], CHARACTERS[row + 3]
        for _ in range(CHARACTERS[row + 4]):
            if there <= 0 or lexer_states(ctx)[there].accept != 0:
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

    Returns how many tokens there are then; -1 if it does not, as far as its transitions are known.
    """
    state, subtree = state_and_subtree >> 32, state_and_subtree & 0xFFFFFFFF
    loops = self_loops(ctx)
    below = subtrees(ctx)
    if loops[LOOPS_STATE] != state:
        loops[LOOPS_STATE] = state
        loops[LOOPS_BACK], loops[LOOPS_BACK + 1] = 0, 0
        loops[LOOPS_AWAY], loops[LOOPS_AWAY + 1] = int64(1) << ILL_FORMED, 0
    for word in range(2):
        missing = below[subtree, word] & ~loops[LOOPS_BACK + word]
        if missing & loops[LOOPS_AWAY + word]:
            return int64(-1)
        while missing:
            bit = lowest_bit(missing)
            back = _leads_back(ctx, state, 64 * word + bit)
            if back == 0:
                loops[LOOPS_AWAY + word] |= int64(1) << bit
            if back <= 0:
                return int64(-1)
            loops[LOOPS_BACK + word] |= int64(1) << bit
            missing &= missing - 1
    tokens = tokens_in_order(ctx)
    found = found_tokens(ctx)
    place = below[subtree, 2]
    # Unsigned: the loop is a plain copy only if the indices cannot be negative.
    first, count, target = uint64(place & 0x7FFFFFFF), uint64(place >> 32), uint64(n)
    for i in range(count):
        found[target + i] = tokens[first + i]
    return n + int64(count)


@njit_inner(RESULT2)
def _next_inside(ctx, top, node):
    """The first node from ``node`` on in the subtree of ``top`` that ends a character and has children, or -1."""
    sizes = subtree_sizes(ctx)
    nodes = trie_nodes(ctx)
    for inner in range(max(node, top), top + sizes[top] - 1):
        # In the middle of a character, bytes go on with it.
        if sizes[inner] > 1 and nodes[inner + 1] & 0xC0 != 0x80:
            return int64(inner)
    return int64(-1)


far_entry(F_LOOPS, _take_subtree)
far_entry(F_INSIDE, _next_inside)


@njit_inner(types.void(CTX))
def forget_loops(ctx):
    """Begin a walk."""
    self_loops(ctx)[LOOPS_STATE] = -1


@njit_inner(RESULT2)
def next_node(ctx, crossing, node):
    """The first trie node from ``node`` on of those that a crossing stands for; -1 if there is none.

    A crossing, the first number of its pair, is a trie node; or it is ``~p``, and stands for all nodes in the subtree
    of ``p`` that end a character and have children.
    """
    if crossing >= 0:
        return crossing if node <= crossing else int64(-1)
    return far_call(ctx, F_INSIDE, ~crossing, node)


@njit_inner(RESULT2)
def goes_on(ctx, crossing, groups):
    """Whether a node that a crossing stands for may have a child whose byte is in one of the groups (not 0) or not."""
    if crossing >= 0:
        return child_groups(ctx)[crossing] & groups
    return subtrees(ctx)[wide_nodes(ctx)[~crossing], 3] & groups
