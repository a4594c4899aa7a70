"""A completion of fewer tokens than the one that budget/completions.py knows, or of any where it knows none.

Best first over recognizer states, a token at a time (branch and bound).  A state is worth going on from if
the tokens so far and a lower bound for the rest are less than the best completion found: every token takes
at most the cost of the dearest one off what finishing costs (budget/costs.py), and what budget/completions.py knows
of each state is a completion too.  If nothing is left, what was found is the shortest there is; the search may
also be given up after some work, and what was found is then the shortest known.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.conditions.budget.completions import reset_costs
from constrain.engine.conditions.budget.expression_costs import NEVER
from constrain.engine.masks.token_walks import walk_tokens
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import used
from constrain.engine.storage.best_first import KNOWN, begin_search, estimate_of, note_way, push_way, way_of
from constrain.engine.storage.header import CTX, OPEN, RESULT1, RESULT2
from constrain.engine.storage.heaps import heap_pop
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import F_PATH_NODE, F_TOKENS, far_call, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types

# In an estimate: expected tokens in all, above the tokens so far.
_SPENT_BITS = 15
MOST = (1 << _SPENT_BITS) - 1
"""The longest completion that can be searched for, in tokens."""


@njit_inner(RESULT1)
def _bound(ctx, state):
    """A number of tokens that finishing takes at least, from a state whose cost is known."""
    heaviest = t.token_weights(ctx)[0].heaviest
    return (t.state_costs(ctx)[state].least + heaviest - 1) // heaviest


@njit_inner(RESULT2)
def _visit(ctx, node, there):
    """Note the way to the state behind a token of the trie; how many nodes to go on (token_walks.walk_tokens)."""
    if there >= OPEN:
        # Where the text decides how it goes on the search ends.
        return t.subtree_sizes(ctx)[node]
    token = t.node_tokens(ctx)[node]
    if token < 0:
        return int64(1)
    count = far_call(ctx, F_TOKENS, there, 0)
    if count < 0:
        return count
    search = t.path_search(ctx)[0]
    cost = search.spent + 1
    if cost + _bound(ctx, there) < search.best:
        reached = note_way(ctx, t.PATH_HEAP, there, cost, search.way, token)
        if reached != KNOWN:
            if reached >= 0 and cost + count < search.best:
                search.best, search.best_way = cost + count, reached
            expected = min(cost + (count if count < NEVER else _bound(ctx, there)), int64(MOST))
            if reached < 0 or push_way(ctx, t.PATH_HEAP, expected << _SPENT_BITS | cost, reached) < 0:
                return int64(FAIL)
    return int64(1)


far_entry(F_PATH_NODE, _visit)


@njit_entry(int64(CTX, int64, int64, int64, types.int32[::1]))
def search_completion(ctx, state, most, effort, out):
    """Look for a completion of at most ``most`` tokens (at most :data:`MOST`).

    Parameters
    ----------
    effort : int
        How many trie nodes may be looked at.
    out : int32[2]
        Output: the tokens of the best completion found (NEVER if none was found), and the way in PATH_WAYS to the state
        from which its completion (completions.py) is the rest.  A step of such a way is a token, and its cost how many
        they are.

    Returns
    -------
    0, FAIL or LIMIT
    """
    reset_costs(ctx)
    count = far_call(ctx, F_TOKENS, state, 0)
    if count < 0:
        return count
    if begin_search(ctx, t.PATH_HEAP, state) < 0:
        return int64(FAIL)
    search = t.path_search(ctx)[0]
    search.best, search.best_way = most + 1, -1
    if count <= most:
        search.best, search.best_way = count, 0
    work = int64(0)
    while used(ctx, t.PATH_HEAP) > 0 and work <= effort:
        key = heap_pop(ctx, t.PATH_HEAP)
        way = way_of(key)
        begin, spent = t.path_ways(ctx)[way].reached, t.path_ways(ctx)[way].cost
        # Written in the key is how many tokens it took; a shorter way may have been found since.
        if spent + _bound(ctx, begin) >= search.best or spent != estimate_of(key) & MOST:
            continue
        search.way, search.spent = way, spent
        looked_at = walk_tokens(ctx, int64(-1), begin, int64(F_PATH_NODE))
        if looked_at < 0:
            return looked_at
        work += looked_at
    out[0] = search.best if search.best <= most else int64(NEVER)
    out[1] = search.best_way
    return int64(0)
