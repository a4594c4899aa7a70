"""Neighbours: the mask of a state by that of another one with which it is soon the same.

In a text without some words, or up to the first of them, a state is told from the others by what has begun of a word.
So two states differ along the rest of few words, and are one state behind any other byte.  Which states are of this
kind is not read from their expressions: it shows where they go with the first byte of a token.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexer_states import CLOSURE, NO_DENSE, NOT_SPLIT, count_first_bytes, step_lexer
from constrain.engine.masks.fast.relative_masks import TEXT_BYTES
from constrain.engine.storage import links
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import CLASSES, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import far_call, far_entry
from constrain.engine.storage.statuses import FAIL, NOT_MINE
from constrain.kernels.language import int64

# So many states with masks are looked at, the newest first, among so many states.
_MOST_TRIED, _MOST_PASSED = 8, 1 << 14
# States that reach less than such a part of the trie are as quickly walked.
_LEAST_PART = 8


@njit_inner(RESULT2)
def _weigh_classes(ctx, lexer_state, base):
    """Write to WORK_STACK, from ``base`` on, how many trie nodes are below the first bytes of each class.

    Returns how many of them the state reaches, FAIL or LIMIT.
    """
    nodes, sizes, class_of = t.trie_nodes(ctx), t.subtree_sizes(ctx), t.byte_classes(ctx)
    weights = t.work_stack(ctx)
    for byte_class in range(ctx[CLASSES]):
        weights[base + byte_class] = 0
    p, reached = int64(0), int64(0)
    while p < len(nodes):
        byte_class = class_of[nodes[p] & 255]
        weights[base + byte_class] += sizes[p]
        there = step_lexer(ctx, lexer_state, byte_class)
        if there < 0:
            return there
        if there:
            reached += sizes[p]
        p += sizes[p]
    return reached


@njit_inner(RESULT3)
def _shared_weight(ctx, lexer_state, other, base):
    """How many trie nodes are below first bytes behind which two states are one; FAIL or LIMIT."""
    weights = t.work_stack(ctx)
    shared = int64(0)
    for byte_class in range(ctx[CLASSES]):
        if weights[base + byte_class]:
            here = step_lexer(ctx, lexer_state, int64(byte_class))
            there = step_lexer(ctx, other, int64(byte_class))
            if here < 0 or there < 0:
                return min(here, there)
            if here == there:
                shared += weights[base + byte_class]
    return shared


@njit_inner(RESULT2)
def neighbour_mask(ctx, lexer_state, _unused):
    """Make the mask of a state by that of a neighbour; returns 0, NOT_MINE if there is none, FAIL or LIMIT."""
    if count_first_bytes(ctx, lexer_state) < TEXT_BYTES:
        return int64(NOT_MINE)
    masks, states, members = t.lexer_masks(ctx), t.lexer_states(ctx), t.lexer_members(ctx)
    base = used(ctx, t.WORK_STACK)
    if not room(ctx, t.WORK_STACK, ctx[CLASSES]):
        return int64(FAIL)
    set_used(ctx, t.WORK_STACK, base + ctx[CLASSES])
    reached, best, most = int64(-1), int64(NOT_MINE), int64(-1 << 40)
    newest = used(ctx, t.LEXER_STATE_HASHES) - 1
    tried = int64(0)
    for other in range(newest, max(newest - _MOST_PASSED, int64(0)), -1):
        dense = masks[other].dense
        if dense == NO_DENSE or dense == NOT_SPLIT or members[states[other].offset] == CLOSURE:
            continue
        if reached < 0:
            reached = _weigh_classes(ctx, lexer_state, base)
            if _LEAST_PART * reached < len(t.trie_nodes(ctx)):
                best = reached if reached < 0 else int64(NOT_MINE)
                break
        weight = _shared_weight(ctx, lexer_state, int64(other), base)
        if weight < 0:
            best = weight
            break
        # What has to be looked at: where they differ, and the boundaries of the other.
        gain = weight - masks[other].boundary_count
        if gain > most:
            best, most = int64(other), gain
        tried += 1
        if tried == _MOST_TRIED:
            break
    set_used(ctx, t.WORK_STACK, base)
    return far_call(ctx, links.F_BESIDE, lexer_state, best) if best > 0 else best


far_entry(links.F_NEIGHBOUR, neighbour_mask)
