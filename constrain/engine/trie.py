"""TokenTrie: every token's bytes in one flat array, in depth-first order.

A node is one byte on the way to some token.  Because the order is depth-first, the subtree of node
``p`` is ``p + 1 .. p + size[p]``, and skipping it is one addition; because each node knows its
depth, a walk keeps its states in a stack indexed by depth and never has to pop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import int32, int64, uint8
from numba.core import types

from constrain.engine.jit import njit_entry


def _byte_groups() -> np.ndarray[Any, np.dtype[np.uint8]]:
    """64 groups for the 256 bytes: each punctuation mark is its own, the two cases of a letter are one."""
    groups = np.full(256, 29, np.uint8)  # control characters
    for byte in range(256):
        character = chr(byte)
        if byte >= 0x80:
            groups[byte] = 30 if byte >= 0xC0 else 31
        elif character.isalpha():
            groups[byte] = ord(character.lower()) - ord("a")
        elif character.isdigit():
            groups[byte] = 26
        elif character in " \n":
            groups[byte] = 27 if character == " " else 28
    punctuation = [byte for byte in range(0x21, 0x7F) if not chr(byte).isalnum()]
    groups[punctuation] = range(32, 32 + len(punctuation))
    return groups


BYTE_GROUP = _byte_groups()

Int32Array = np.ndarray[Any, np.dtype[np.int32]]


@njit_entry(
    types.UniTuple(int64, 2)(  # type: ignore[no-untyped-call]
        uint8[::1],
        int64[::1],
        int32[::1],
        int32[::1],
        int32[::1],
        int32[::1],
        int32[::1],
        uint8[::1],
        int64[::1],
        int32[::1],
        int32[::1],
    )
)
def _build(data, starts, order, node, size, height, token, group, children, same, path):  # type: ignore[no-untyped-def]
    """Fill the arrays of the trie.

    Parameters
    ----------
    data, starts : uint8[n_bytes], int64[n_tokens + 1]
        Token ``i`` is ``data[starts[i]:starts[i + 1]]``.
    order : int32[n]
        Tokens to insert, none of them empty, sorted by their bytes.
    node, size, height, token : int32[capacity]
        Output; capacity is at least the number of bytes in all tokens.
    group : uint8[256]
        :data:`BYTE_GROUP`.
    children : int64[capacity]
        Output, zeroed: the groups of the bytes of each node's children.
    same : int32[n_tokens]
        Output, filled with -1: the next token with the same bytes, after the one in the trie.
    path : int32[longest + 1]
        Scratch: the nodes from the root to the last token.

    Returns
    -------
    (number of nodes, number of tokens that are not in the trie because another has their bytes)
    """
    count = 0
    duplicates = 0
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
        for depth in range(common):
            height[path[depth]] = max(height[path[depth]], length - 1 - depth)
        if common == length and common == previous_length:
            same[order[k - 1]] = order[k]
            duplicates += 1
        for depth in range(common, length):
            path[depth] = count
            node[count] = int64(data[start + depth]) | depth << 8
            token[count] = -1
            height[count] = length - 1 - depth
            if depth > 0:
                children[path[depth - 1]] |= int64(1) << int64(group[data[start + depth]])
            count += 1
        if common < length:
            token[count - 1] = order[k]
        previous_start = start
        previous_length = length
    for depth in range(previous_length):
        size[path[depth]] = count - path[depth]
    return count, duplicates


_ARRAYS = ("node", "size", "children", "height", "token", "same")


class TokenTrie:
    """The flat trie.

    Attributes
    ----------
    node : int32[n_nodes]
        ``byte | depth << 8``; the first byte of a token has depth 0.
    children : int64[n_nodes]
        Which groups of bytes the node's children are in: bit ``g`` for group ``g`` (:data:`BYTE_GROUP`).
    height : int32[n_nodes]
        How many bytes the longest token below the node goes on for.
    size : int32[n_nodes]
        Nodes in the subtree, the node itself included.
    token : int32[n_nodes]
        The token that ends here, or -1.  Of several tokens with the same bytes the first one.
    same : int32[n_tokens], or int32[0] if no two tokens have the same bytes
        The next token with the same bytes, or -1.
    depth : int
        Length in bytes of the longest token.
    """

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray[Any, Any]]) -> TokenTrie:
        """The trie that :meth:`arrays` was called on."""
        trie = cls.__new__(cls)
        for name in _ARRAYS:
            setattr(trie, name, arrays[name])
        trie.depth = int(trie.height.max(initial=-1)) + 1
        return trie

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """All there is to it, by name."""
        return {name: getattr(self, name) for name in _ARRAYS}

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
        children = np.zeros(capacity, np.int64)
        node, size, height, token = (np.empty(capacity, np.int32) for _ in range(4))
        same = np.full(len(tokens), -1, np.int32)
        self.depth = int(used.max())
        path = np.empty(self.depth + 1, np.int32)
        count, duplicates = _build(data, starts, order, node, size, height, token, BYTE_GROUP, children, same, path)
        self.node: Int32Array = node[:count].copy()
        self.size: Int32Array = size[:count].copy()
        self.children: np.ndarray[Any, np.dtype[np.int64]] = children[:count].copy()
        self.height: Int32Array = height[:count].copy()
        self.token: Int32Array = token[:count].copy()
        self.same: Int32Array = same if duplicates else same[:0].copy()
