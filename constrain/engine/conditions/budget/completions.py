"""The shortest completion of a text, in tokens.

A state's completion is a byte string: its next byte is the one noted with its cost (budget/costs.py), then
that of the state after it, and so on.  It depends on the state alone, so the completion of the state
after its first bytes is the rest of it.  It is cut into the fewest tokens, which needs nothing but the
same of the states on the way:

    tokens(state) = 1 + the least of tokens(state after t)

over the tokens t that the completion begins with.  So following the first of these tokens always makes it one
token less: a text that can be finished in n tokens by this count can be finished in n - 1 after it.
It is an upper bound; other texts may need fewer tokens (search.py looks for those).
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from constrain.engine.conditions.budget.costs import raise_state_cost
from constrain.engine.conditions.budget.expression_costs import FAR, MISSING, NEVER, UNKNOWN
from constrain.engine.parser.configurations import reset_work
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push, set_used, used
from constrain.engine.storage.bits import count_bits
from constrain.engine.storage.header import CLASSES, CTX, OPEN, OPEN_AT, RESULT2
from constrain.engine.storage.jit import njit_allocating, njit_entry, njit_inner
from constrain.engine.storage.links import F_STATE_COST, F_STEP, F_TOKENS, far_call, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.engine.vocabulary.trie import WIDE
from constrain.kernels.language import int64, types

CHAIN_LIMIT = 1 << 14
"""A completion that costs more than this is not cut into tokens: each of its bytes is one, if all bytes are tokens."""


@njit_inner(RESULT2)
def trie_child(ctx, node, byte):
    """The child of a trie node (-1 is the root) with this byte, or -1."""
    nodes = t.trie_nodes(ctx)
    if node < 0 or nodes[node] & WIDE:
        wide = int64(0) if node < 0 else t.wide_nodes(ctx)[node]
        masks = t.wide_masks(ctx)
        word = masks[wide, byte >> 6]
        if not (word >> (byte & 63)) & 1:
            return int64(-1)
        rank = t.wide_first(ctx)[wide]
        for i in range(byte >> 6):
            rank += count_bits(masks[wide, i])
        rank += count_bits(word & ((int64(1) << (byte & 63)) - 1))
        return t.wide_child(ctx)[rank]
    sizes = t.subtree_sizes(ctx)
    child = node + 1
    end = node + sizes[node]
    while child < end:
        if nodes[child] & 255 == byte:
            return child
        child += sizes[child]
    return int64(-1)


@njit_inner(types.void(CTX, int64))
def _cut(ctx, state):
    """Write into a state's record the fewest tokens for its completion; those of the states after it are known."""
    table = t.state_costs(ctx)
    tokens = t.node_tokens(ctx)
    trans = t.transitions(ctx)
    class_of = t.byte_classes(ctx)
    classes = ctx[CLASSES]
    best, first = int64(NEVER), int64(-1)
    here = state
    node = int64(-1)
    while table[here].least > 0 and table[here].byte >= 0:
        byte = table[here].byte
        node = trie_child(ctx, node, byte)
        if node < 0:
            break
        here = trans[here * classes + class_of[byte]]
        # Behind what depends on the text the completion is not known.
        is_open = here < -1
        if is_open:
            here = -here - 2
        # Beyond what was cut into single bytes nothing is known, and nothing needed.
        if here <= 0 or here >= used(ctx, t.STATE_COSTS):
            break
        count = table[here].tokens
        if count == UNKNOWN:
            break
        # Of two ways the one with the longer first token.
        if tokens[node] >= 0 and count + 1 <= best:
            best = count + 1
            first = tokens[node]
        if is_open:
            break
    table[state].tokens = min(best, int64(NEVER))
    table[state].token = first


@njit_inner(RESULT2)
def _leave_circle(ctx, bottom, state):
    """If a state is among those above ``bottom`` in COST_STACK, take another way from it; returns 0, FAIL or LIMIT."""
    for place in range(bottom, used(ctx, t.COST_STACK)):
        if t.cost_stack(ctx)[place] == state:
            set_used(ctx, t.COST_STACK, place)
            return raise_state_cost(ctx, state)
    return int64(0)


@njit_inner(RESULT2)
def tokens_to_finish(ctx, state, _unused):
    """How many tokens the completion of a state takes; NEVER if it cannot be cut into tokens; FAIL or LIMIT."""
    bottom = used(ctx, t.COST_STACK)
    here, before = state, int64(NEVER + 1)
    while True:
        status = far_call(ctx, F_STATE_COST, here, 0)
        if status < 0:
            return status
        costs = t.state_costs(ctx)[here]
        if costs.tokens != UNKNOWN:
            break
        least, byte = costs.least, costs.byte
        if least >= before:
            # Rules that the text decided on cost more than those that stood in for them.  Then bytes that may be
            # repeated may seem to be the cheapest for ever.
            status = _leave_circle(ctx, bottom, here)
            if status < 0:
                return status
            before = int64(NEVER + 1)
            continue
        before = least
        # Up to a place behind which it is not known: from there on it will be asked again.
        known = least % FAR if least < NEVER else least
        if least == 0 or known > CHAIN_LIMIT or byte < 0:
            is_spelled = known < MISSING or t.token_weights(ctx)[0].has_all_bytes
            # Where the text decides (there is no next byte), it may decide for other bytes than those that are missing.
            unspelled = int64(FAR) if byte < 0 and least < NEVER else int64(NEVER)
            costs.tokens = least if is_spelled else unspelled
            costs.token = t.byte_costs(ctx)[byte].token if byte >= 0 else int64(-1)
            break
        if not push(ctx, t.COST_STACK, here):
            return int64(FAIL)
        byte_class = t.byte_classes(ctx)[byte]
        known = t.transitions(ctx)[here * ctx[CLASSES] + byte_class]
        here = known if known >= 0 else far_call(ctx, F_STEP, here, byte_class)
        if here < 0:
            return here
        if here >= OPEN:
            here -= OPEN
    while used(ctx, t.COST_STACK) > bottom:
        top = used(ctx, t.COST_STACK) - 1
        _cut(ctx, t.cost_stack(ctx)[top])
        set_used(ctx, t.COST_STACK, top)
    return t.state_costs(ctx)[state].tokens


far_entry(F_TOKENS, tokens_to_finish)


@njit_inner(types.void(CTX))
def reset_costs(ctx):
    """Empty the work stacks."""
    reset_work(ctx)
    set_used(ctx, t.COST_STACK, 0)


@njit_entry(int64(CTX, int64))
def tokens_from(ctx, state):
    """How many tokens the completion of a state takes; NEVER, FAIL or LIMIT."""
    reset_costs(ctx)
    return far_call(ctx, F_TOKENS, state, 0)


@njit_entry(int64(CTX, int64, types.int32[::1]))
def completion(ctx, state, out):
    """Write the tokens of a state's completion to ``out`` (int32[n]); returns how many, at most n; FAIL or LIMIT.

    The completion can be cut into tokens.  Behind a place where the text decides how it goes on it is not known:
    ``ctx[OPEN_AT]`` is 1 if it was written as far as that, and 0 if it is all there.
    """
    reset_costs(ctx)
    ctx[OPEN_AT] = 0
    starts = t.token_starts(ctx)
    data = t.token_bytes(ctx)
    class_of = t.byte_classes(ctx)
    for n in range(len(out)):
        count = far_call(ctx, F_TOKENS, state, 0)
        if count <= 0:
            return count if count < 0 else n
        token = t.state_costs(ctx)[state].token
        out[n] = token
        for i in range(starts[token], starts[token + 1]):
            state = far_call(ctx, F_STEP, state, class_of[data[i]])
            if state < 0:
                return state
        if state >= OPEN:
            ctx[OPEN_AT] = 1
            return n + 1
    return len(out)


@njit_allocating(int64(CTX, types.Array(types.uint8, 1, "C", readonly=True), types.int32[::1]))
def fewest_tokens(ctx, data, out):
    """The fewest tokens whose bytes are ``data`` (uint8[n]), written to ``out`` (int32[n]); NEVER if there are none."""
    tokens = t.node_tokens(ctx)
    # Behind each byte: the fewest so far.
    fewest = np.full(len(data) + 1, NEVER, np.int64)
    fewest[0] = 0
    # The last token of those.
    last = np.empty(len(data) + 1, np.int32)
    for begin in range(len(data)):
        if fewest[begin] == NEVER:
            continue
        node = int64(-1)
        for i in range(begin, len(data)):
            node = trie_child(ctx, node, int64(data[i]))
            if node < 0:
                break
            if tokens[node] >= 0 and fewest[begin] + 1 < fewest[i + 1]:
                fewest[i + 1] = fewest[begin] + 1
                last[i + 1] = tokens[node]
    count = fewest[len(data)]
    if count == NEVER:
        return count
    starts = t.token_starts(ctx)
    end = len(data)
    for i in range(count - 1, -1, -1):
        out[i] = last[end]
        end -= starts[last[end] + 1] - starts[last[end]]
    return count


@njit_entry(int64(CTX, types.Array(types.uint8, 1, "C", readonly=True), types.int32[::1]))
def beginning_tokens(ctx, data, out):
    """Write to ``out`` (int32[n]) the tokens that ``data`` (uint8[n]) begins with, one for each text; how many."""
    tokens = t.node_tokens(ctx)
    node, count = int64(-1), int64(0)
    for i in range(len(data)):
        node = trie_child(ctx, node, int64(data[i]))
        if node < 0:
            break
        if tokens[node] >= 0:
            out[count] = tokens[node]
            count += 1
    return count
