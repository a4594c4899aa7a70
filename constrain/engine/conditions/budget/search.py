"""A completion of fewer tokens than the one that budget/completions.py knows, or of any where it knows none.

Best first over recognizer states, a token at a time (branch and bound).  A state is worth going on from if
the tokens so far and a lower bound for the rest are less than the best completion found: every token takes
at most the cost of the dearest one off what finishing costs (budget/costs.py), and what budget/completions.py knows
of each state is a completion too.  If nothing is left, what was found is the shortest there is; the search may
also be given up after some work, and what was found is then the shortest known.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64, types, uint64

from constrain.engine.conditions.budget.best_first import (
    KNOWN,
    begin_search,
    estimate_of,
    note_way,
    push_way,
    way_of,
)
from constrain.engine.conditions.budget.completions import reset_costs
from constrain.engine.conditions.budget.expression_costs import NEVER
from constrain.engine.storage.access import used
from constrain.engine.storage.header import CLASSES, CTX, OPEN, RESULT1
from constrain.engine.storage.heaps import heap_pop
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import F_STEP, F_TOKENS, far_call
from constrain.engine.storage.schemas import (
    PATH_HEAP,
    byte_classes,
    node_tokens,
    path_ways,
    state_costs,
    subtree_sizes,
    token_weights,
    transitions,
    trie_nodes,
    walk_stack,
)
from constrain.engine.storage.statuses import FAIL
from constrain.engine.vocabulary.trie import DEPTH_SHIFT

_SHIFT, _BYTE = uint64(DEPTH_SHIFT), uint64(255)

# In an estimate: expected tokens in all, above the tokens so far.
_SPENT_BITS = 15
MOST = (1 << _SPENT_BITS) - 1
"""The longest completion that can be searched for, in tokens."""


@njit_inner(RESULT1)
def _bound(ctx, state):
    """A number of tokens that finishing takes at least, from a state whose cost is known."""
    heaviest = token_weights(ctx)[0].heaviest
    return (state_costs(ctx)[state].least + heaviest - 1) // heaviest


@njit_entry(int64(CTX, int64, int64, int64, types.int32[::1]))
def search_completion(ctx, state, most, effort, out):
    """Look for a completion of at most ``most`` tokens (at most :data:`MOST`).

    Parameters
    ----------
    ctx : int64[...]
    state : int
    most : int
    effort : int
        How many trie nodes may be looked at.
    out : int32[3]
        Output: the tokens of the best completion found (NEVER if none was found); 1 if that is proven to be the
        best, or that there is none; and the way in PATH_WAYS to the state from which its completion (completions.py)
        is the rest.  A step of such a way is a token, and its cost how many they are.

    Returns
    -------
    0, FAIL or LIMIT
    """
    reset_costs(ctx)
    count = far_call(ctx, F_TOKENS, state, 0)
    if count < 0:
        return count
    if begin_search(ctx, PATH_HEAP, state) < 0:
        return int64(FAIL)
    best, best_way = most + 1, int64(-1)
    if count < best:
        best, best_way = count, int64(0)
    nodes = trie_nodes(ctx)
    sizes = subtree_sizes(ctx)
    tokens = node_tokens(ctx)
    stack = walk_stack(ctx)
    class_of = byte_classes(ctx)
    trans = transitions(ctx)
    classes = uint64(ctx[CLASSES])
    end = uint64(len(nodes))
    work = int64(0)
    while used(ctx, PATH_HEAP) > 0 and work <= effort:
        key = heap_pop(ctx, PATH_HEAP)
        way = way_of(ctx, key)
        begin = path_ways(ctx)[way].reached
        spent = path_ways(ctx)[way].cost
        # Written in the key is how many tokens it took; a shorter way may have been found since.
        if spent + _bound(ctx, begin) >= best or spent != estimate_of(ctx, key) & MOST:
            continue
        stack[0] = begin
        p = uint64(0)
        while p < end:
            work += 1
            node = uint64(nodes[p])
            depth = node >> _SHIFT
            here = uint64(stack[depth])
            byte_class = uint64(class_of[node & _BYTE])
            there = trans[here * classes + byte_class]
            if there < 0:
                there = far_call(ctx, F_STEP, int64(here), int64(byte_class))
                if there < 0:
                    return there
            if there == 0 or there >= OPEN:
                # Where the text decides how it goes on the search ends.
                p += uint64(sizes[p])
                continue
            token = tokens[p]
            if token >= 0:
                count = far_call(ctx, F_TOKENS, there, 0)
                if count < 0:
                    return count
                if spent + 1 + _bound(ctx, there) < best:
                    reached = note_way(ctx, PATH_HEAP, there, spent + 1, way, token)
                    if reached != KNOWN:
                        if reached >= 0 and spent + 1 + count < best:
                            best, best_way = spent + 1 + count, reached
                        expected = min(spent + 1 + (count if count < NEVER else _bound(ctx, there)), int64(MOST))
                        estimate = expected << _SPENT_BITS | (spent + 1)
                        if reached < 0 or push_way(ctx, PATH_HEAP, estimate, reached) < 0:
                            return int64(FAIL)
            stack[depth + uint64(1)] = there
            p += uint64(1)
    out[0] = best if best <= most else NEVER
    out[1] = used(ctx, PATH_HEAP) == 0 and work <= effort
    out[2] = best_way
    return int64(0)
