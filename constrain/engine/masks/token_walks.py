"""The walk over the trie with recognizer states: tokens with the same first bytes are followed together.

What is done with the tokens that are allowed is the visitor's business.  A mask lists them; others, which look at the
states (budgets, the search for completions), are called at each node that a state is left at.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexer_states import leads_on
from constrain.engine.parser.companions import STATE_BITS
from constrain.engine.parser.configurations import IS_HARD, IS_UNSURE, state_kinds
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push, used
from constrain.engine.storage.header import (
    CLASSES,
    CTX,
    LIST_END,
    LIST_LIMIT,
    NEVER_OPEN,
    OPEN,
    RESULT1,
    RESULT2,
    RESULT3,
)
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_STEP, far_call
from constrain.engine.storage.statuses import FAIL
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.language import int64, types, uint64

_SHIFT, _BYTE = uint64(DEPTH_SHIFT), uint64(255)

LIST, MARK = -1, -2
"""Visitors of masks: list all tokens; or mark them in SCRATCH_MASK, and list those that were not there."""


@njit_inner(types.void(CTX, int64, int64))
def allow(ctx, token, visitor):
    """List a token, and those with the same bytes, as LIST and MARK say."""
    scratch = t.scratch_mask(ctx)
    same = t.same_bytes(ctx)
    while token >= 0:
        if visitor == LIST or not (scratch[token >> 5] >> (token & 31)) & 1:
            if visitor == MARK:
                scratch[token >> 5] |= 1 << (token & 31)
            n = ctx[LIST_END]
            if n < ctx[LIST_LIMIT]:
                t.token_lists(ctx)[n] = token
            ctx[LIST_END] = n + 1
        token = same[token] if len(same) else int64(-1)


@njit_inner(RESULT1)
def note_open(ctx, node):
    """Note that what follows a trie node depends on the text; 0 or FAIL."""
    return int64(0 if push(ctx, t.OPEN_NODES, node) else FAIL)


@njit_inner(RESULT2)
def note_open_below(ctx, node, kinds):
    """Note a trie node whose tokens are allowed, and what follows of these kinds depends on the text; 0 or FAIL."""
    if kinds & IS_UNSURE == 0 and t.subtree_sizes(ctx)[node] == 1:
        return int64(0)
    return note_open(ctx, node)


@njit_inner(RESULT2)
def _leads_on(ctx, state, byte_class):
    """As lexer_states.leads_on for a recognizer's state, in a grammar whose rules do not depend on the text."""
    offset = t.states(ctx)[state].offset
    for i in range(offset, offset + t.states(ctx)[state].count):
        if leads_on(ctx, t.configurations(ctx)[i].lexer_state, byte_class):
            return int64(1)
    return int64(0)


@njit_inner(RESULT3)
def walk_tokens(ctx, root, state, visitor):
    """Follow the tokens strictly below trie node ``root`` (-1: all tokens) from ``state`` on.

    ``visitor`` is LIST or MARK, for masks; or a kernel in links.py.  It is called as ``visitor(ctx, node, there)`` at
    each node that leads to a state, to which OPEN is added if it depends on the text what the state is.  It returns
    how many nodes to go on: 1, or as many as are to be left out; or a status, which ends the walk.

    For masks the walk goes on where that depends on the text, as if it did not, and the trie node is noted.

    Returns how many nodes were looked at; or FAIL, LIMIT, UNMADE, or the visitor's status.
    """
    nodes = t.trie_nodes(ctx)
    sizes = t.subtree_sizes(ctx)
    tokens = t.node_tokens(ctx)
    stack = t.walk_stack(ctx)
    class_of = t.byte_classes(ctx)
    trans = t.transitions(ctx)
    classes = uint64(ctx[CLASSES])
    # Where rules depend on the text, or somebody wants to know, it matters to which state a token leads.
    is_last = visitor < 0 and (used(ctx, t.BRANCHES) == 0 or ctx[NEVER_OPEN] != 0)
    stack[(nodes[root] >> DEPTH_SHIFT) + 1 if root >= 0 else 0] = state
    p = uint64(root + 1)
    end = uint64(root + sizes[root] if root >= 0 else len(nodes))
    looked_at = int64(0)
    while p < end:
        looked_at += 1
        node = uint64(nodes[p])
        depth = node >> _SHIFT
        here = uint64(stack[depth])
        byte_class = uint64(class_of[node & _BYTE])
        there = trans[here * classes + byte_class]
        if there < 0:
            if is_last and sizes[p] == 1 and _leads_on(ctx, int64(here), int64(byte_class)):
                allow(ctx, tokens[p], visitor)
                p += uint64(1)
                continue
            there = far_call(ctx, F_STEP, int64(here), int64(byte_class))
            if there < 0:
                return there
            if visitor < 0 and there >= OPEN:
                there -= OPEN
                kinds = state_kinds(ctx, there)
                if kinds & IS_HARD and note_open_below(ctx, int64(p), kinds) < 0:
                    return int64(FAIL)
                if kinds & IS_UNSURE:
                    stack[depth + uint64(1)] = there
                    p += uint64(1)
                    continue
        if there == 0:
            p += uint64(sizes[p])
            continue
        stack[depth + uint64(1)] = there & STATE_BITS
        if visitor >= 0:
            step = far_call(ctx, visitor, int64(p), there)
            if step < 0:
                return step
            p += uint64(step)
            continue
        if tokens[p] >= 0:
            allow(ctx, tokens[p], visitor)
        p += uint64(1)
    return looked_at
