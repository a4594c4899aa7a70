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

from constrain.engine.conditions.budget.completions import HEAVIEST, reset_costs
from constrain.engine.conditions.budget.expression_costs import NEVER, NEWEST, heap_pop, heap_push, search_record
from constrain.engine.storage.access import set_used, used
from constrain.engine.storage.header import CLASSES, CTX, OPEN, RESULT1
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import F_STEP, F_TOKENS, far_call
from constrain.engine.storage.schemas import (
    PATH_HEAP,
    PATH_PLACES,
    PATH_RECORDS,
    byte_classes,
    byte_costs,
    node_tokens,
    path_records,
    state_costs,
    subtree_sizes,
    transitions,
    trie_nodes,
    walk_stack,
)
from constrain.engine.storage.statuses import FAIL
from constrain.engine.vocabulary.trie import DEPTH_SHIFT

_SHIFT, _BYTE = uint64(DEPTH_SHIFT), uint64(255)

# In a key of the heap: expected tokens in all, tokens so far, and the record.
_SPENT_BITS = 15
MOST = (1 << _SPENT_BITS) - 1
"""The longest completion that can be searched for, in tokens."""


@njit_inner(RESULT1)
def _bound(ctx, state):
    """A number of tokens that finishing takes at least, from a state whose cost is known."""
    heaviest = byte_costs(ctx)[HEAVIEST]
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
        best, or that there is none; and the record of the state from which its completion (completions.py) is the rest.
        A record in PATH_RECORDS is the state, the tokens to it, the record before, and the last token.

    Returns
    -------
    0, FAIL or LIMIT
    """
    reset_costs(ctx)
    set_used(ctx, PATH_HEAP, 0)
    set_used(ctx, PATH_RECORDS, 0)
    count = far_call(ctx, F_TOKENS, state, 0)
    if count < 0:
        return count
    start = search_record(ctx, PATH_PLACES, state, int64(0), int64(-1), int64(-1))
    if start < 0 or heap_push(ctx, PATH_HEAP, int64(NEWEST)) < 0:
        return int64(FAIL)
    best, best_record = most + 1, int64(-1)
    if count < best:
        best, best_record = count, start
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
        record = NEWEST - (key & NEWEST)
        begin = path_records(ctx)[4 * record]
        spent = path_records(ctx)[4 * record + 1]
        # Written in the key is how many tokens it took; a shorter way may have been found since.
        if spent + _bound(ctx, begin) >= best or spent != (key >> 32) & MOST:
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
                    reached = search_record(ctx, PATH_PLACES, there, spent + 1, record, token)
                    if reached == FAIL:
                        return int64(FAIL)
                    if reached >= 0:
                        if spent + 1 + count < best:
                            best, best_record = spent + 1 + count, reached
                        estimate = min(spent + 1 + (count if count < NEVER else _bound(ctx, there)), int64(MOST))
                        key = (estimate << _SPENT_BITS | (spent + 1)) << 32 | (NEWEST - reached)
                        if heap_push(ctx, PATH_HEAP, key) < 0:
                            return int64(FAIL)
            stack[depth + uint64(1)] = there
            p += uint64(1)
    out[0] = best if best <= most else NEVER
    out[1] = used(ctx, PATH_HEAP) == 0 and work <= effort
    out[2] = best_record
    return int64(0)
