"""Boundaries: the trie nodes at which a lexeme can end, as a lexer mask lists them.

The first number of a pair in BOUNDARIES is a trie node; or it is ``~p``, and stands for all nodes in the subtree of
``p`` that end a character and have children.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.storage.header import RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_INSIDE, far_call, far_entry
from constrain.engine.storage.schemas import child_groups, node_tokens, subtree_sizes, subtrees, trie_nodes, wide_nodes
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.language import int64


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


far_entry(F_INSIDE, _next_inside)


@njit_inner(RESULT2)
def next_node(ctx, boundary, node):
    """The first trie node from ``node`` on of those that a boundary stands for; -1 if there is none."""
    if boundary >= 0:
        return boundary if node <= boundary else int64(-1)
    return far_call(ctx, F_INSIDE, ~boundary, node)


@njit_inner(RESULT2)
def goes_on(ctx, boundary, groups):
    """Whether a node that a boundary stands for may have a child whose byte is in one of the groups (not 0) or not."""
    if boundary >= 0:
        return child_groups(ctx)[boundary] & groups
    return subtrees(ctx)[wide_nodes(ctx)[~boundary], 3] & groups


@njit_inner(RESULT1)
def path_to(ctx, p):
    """The bytes that lead to a trie node, its own included: ``token << 32 | how many`` of the first of a token."""
    tokens = node_tokens(ctx)
    # The first node from here on that ends a token is below this one, or this one.
    q = p
    while tokens[q] < 0:
        q += 1
    return tokens[q] << 32 | ((trie_nodes(ctx)[p] >> DEPTH_SHIFT) + 1)
