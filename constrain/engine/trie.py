"""TokenTrie: every token's bytes in one flat array, in depth-first order.

A node is one byte on the way to some token.  Because the order is depth-first, the subtree of node
``p`` is ``p + 1 .. p + size[p]``, and skipping it is one addition; because each node knows its
depth, a walk keeps its states in a stack indexed by depth and never has to pop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32, int64, njit, uint8
from numba.core import types

Int32Array = np.ndarray[Any, np.dtype[np.int32]]


@njit(
    types.UniTuple(int64, 2)(
        uint8[::1], int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1]
    ),
    cache=True,
    nogil=True,
)
def _build(data, starts, order, node, size, token, duplicates, path):  # type: ignore[no-untyped-def]
    """Fill the arrays of the trie.

    Parameters
    ----------
    data, starts : uint8[n_bytes], int64[n_tokens + 1]
        Token ``i`` is ``data[starts[i]:starts[i + 1]]``.
    order : int32[n]
        Tokens to insert, none of them empty, sorted by their bytes.
    node, size, token : int32[capacity]
        Output; capacity is at least the number of bytes in all tokens.
    duplicates : int32[2 * n]
        Output: pairs (token that is in the trie, other token with the same bytes).
    path : int32[longest + 1]
        Scratch: the nodes from the root to the last token.

    Returns
    -------
    (number of nodes, number of int32 in duplicates)
    """
    count = 0
    pairs = 0
    previous_start = int64(0)
    previous_length = int64(0)
    for k in range(len(order)):
        start = starts[order[k]]
        length = starts[order[k] + 1] - start
        common = int64(0)
        shorter = min(length, previous_length)
        while common < shorter and data[start + common] == data[previous_start + common]:
            common += 1
        for depth in range(common, previous_length):
            size[path[depth]] = count - path[depth]
        if common == length and common == previous_length:
            duplicates[pairs] = token[path[length - 1]]
            duplicates[pairs + 1] = order[k]
            pairs += 2
        for depth in range(common, length):
            path[depth] = count
            node[count] = int64(data[start + depth]) | depth << 8
            token[count] = -1
            count += 1
        if common < length:
            token[count - 1] = order[k]
        previous_start = start
        previous_length = length
    for depth in range(previous_length):
        size[path[depth]] = count - path[depth]
    return count, pairs


class TokenTrie:
    """The flat trie.

    Attributes
    ----------
    node : int32[n_nodes]
        ``byte | depth << 8``; the first byte of a token has depth 0.
    size : int32[n_nodes]
        Nodes in the subtree, the node itself included.
    token : int32[n_nodes]
        The token that ends here, or -1.  Of several tokens with the same bytes the first one.
    duplicates : int32[2 * n]
        Pairs (token in the trie, further token with the same bytes).
    depth : int
        Length in bytes of the longest token.
    """

    def __init__(
        self,
        data: np.ndarray[Any, np.dtype[np.uint8]],
        starts: np.ndarray[Any, np.dtype[np.int64]],
        tokens: list[bytes],
        members: list[int],
    ) -> None:
        members = [token for token in members if tokens[token]]
        order = np.array(sorted(members, key=tokens.__getitem__), np.int32)
        lengths = starts[1:] - starts[:-1]
        used = lengths[order] if len(order) else np.zeros(1, np.int64)
        capacity = int(used.sum()) + 1
        node, size, token = (np.empty(capacity, np.int32) for _ in range(3))
        duplicates = np.empty(2 * len(order) + 2, np.int32)
        self.depth = int(used.max())
        path = np.empty(self.depth + 1, np.int32)
        count, pairs = _build(data, starts, order, node, size, token, duplicates, path)
        self.node: Int32Array = node[:count].copy()
        self.size: Int32Array = size[:count].copy()
        self.token: Int32Array = token[:count].copy()
        self.duplicates: Int32Array = duplicates[:pairs].copy()
