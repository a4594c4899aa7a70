"""The mask under a budget: only tokens after which the text can still be finished in the tokens that are left.

The cost of the state behind every token that the grammar allows is looked at, one by one.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64, types, uint64

from constrain.engine.completions import reset_costs
from constrain.engine.jit import njit_entry, njit_inner
from constrain.engine.states import STATE_ACCEPTS
from constrain.engine.tables import (
    CLASS_OF,
    CLASSES,
    CTX,
    EMPTY_TOKENS,
    EOS_TOKENS,
    F_STEP,
    F_TOKENS,
    N_WORDS,
    SAME_BYTES,
    STACK,
    STATE_TRANS,
    STATES,
    TRIE_NODE,
    TRIE_SIZE,
    TRIE_TOKEN,
    far_call,
    i32,
    u8,
)
from constrain.engine.trie import DEPTH_SHIFT

_SHIFT, _BYTE = uint64(DEPTH_SHIFT), uint64(255)


@njit_inner(types.void(types.int32[::1], int64))
def _allow(row, token):
    row[token >> 5] |= 1 << (token & 31)


@njit_entry(int64(CTX, int64, int64, types.int32[:, ::1], int64))
def fill_by_walk(ctx, state, most, out, index):
    """Write to row ``index`` of ``out`` (int32[batch, words]) the tokens that leave at most ``most`` to finish with.

    End tokens are allowed where the text is complete.  Returns 0, FAIL or LIMIT.
    """
    reset_costs(ctx)
    row = out[index]
    for i in range(ctx[N_WORDS]):
        row[i] = 0
    if i32(ctx, STATES)[3 * state + STATE_ACCEPTS]:
        for token in i32(ctx, EOS_TOKENS):
            _allow(row, int64(token))
    if most < 0:
        return int64(0)
    here_count = far_call(ctx, F_TOKENS, state, 0)
    if here_count < 0:
        return here_count
    if here_count <= most:
        for token in i32(ctx, EMPTY_TOKENS):
            _allow(row, int64(token))
    nodes = i32(ctx, TRIE_NODE)
    sizes = i32(ctx, TRIE_SIZE)
    tokens = i32(ctx, TRIE_TOKEN)
    same = i32(ctx, SAME_BYTES)
    stack = i32(ctx, STACK)
    class_of = u8(ctx, CLASS_OF)
    trans = i32(ctx, STATE_TRANS)
    classes = uint64(ctx[CLASSES])
    stack[0] = state
    p = uint64(0)
    end = uint64(len(nodes))
    while p < end:
        node = uint64(nodes[p])
        depth = node >> _SHIFT
        here = uint64(stack[depth])
        byte_class = uint64(class_of[node & _BYTE])
        there = int64(trans[here * classes + byte_class])
        if there < 0:
            there = far_call(ctx, F_STEP, int64(here), int64(byte_class))
            if there < 0:
                return there
        if there == 0:
            p += uint64(sizes[p])
            continue
        token = int64(tokens[p])
        if token >= 0:
            count = far_call(ctx, F_TOKENS, there, 0)
            if count < 0:
                return count
            if count <= most:
                while token >= 0:
                    _allow(row, token)
                    token = int64(same[token]) if len(same) else int64(-1)
        stack[depth + uint64(1)] = there
        p += uint64(1)
    return int64(0)
