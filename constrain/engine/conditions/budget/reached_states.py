"""The states that the tokens lead to: which tokens of a mask leave the same behind."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.conditions.budget.masks import ALL, begin_listing, note_token
from constrain.engine.masks.token_walks import walk_tokens
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import RESULT1, RESULT2
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import F_REACHED_NODE, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64


@njit_inner(RESULT2)
def _visit(ctx, node, there):
    """Note the token of a trie node with the state that it leads to; goes on with the next node."""
    walk = t.cost_walk(ctx)[0]
    token = t.node_tokens(ctx)[node]
    if token >= 0:
        walk.count = note_token(ctx, token, there, walk.count)
    return int64(1)


far_entry(F_REACHED_NODE, _visit)


@njit_entry(RESULT1)
def reached_states(ctx, state):
    """Find the state after each token that is allowed, in a grammar whose rules do not depend on the text.

    Returns
    -------
    n, FAIL or LIMIT.  TOKEN_COSTS then begins with the ``n`` tokens, each with its state in place of a count.
    """
    if begin_listing(ctx, int64(ALL)) < 0:
        return int64(FAIL)
    walk = t.cost_walk(ctx)[0]
    for i in range(len(t.empty_tokens(ctx))):
        walk.count = note_token(ctx, t.empty_tokens(ctx)[i], state, walk.count)
    status = walk_tokens(ctx, int64(-1), state, int64(F_REACHED_NODE))
    return status if status < 0 else walk.count
