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
from constrain.engine.subtree_bytes import bytes_below
from constrain.errors import ConstrainError


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

DEPTH_SHIFT = 11
WIDE, CHILD_OF_WIDE, LARGE = 1 << 8, 1 << 9, 1 << 10
"""Flags of a trie node between its byte and its depth."""

LONGEST_TOKEN = 1 << 20
"""In bytes: a depth has to fit into a node beside its byte and flags."""

MOST_BYTES = (1 << 31) - 1
"""Of all tokens together: places in the trie are int32."""

WIDE_CHILDREN = 16
"""From this many children on a node is wide: its children are found by a bit set instead of one after the other."""

LARGE_SUBTREE = 8
"""From this many nodes on a subtree is large: what stands in it is known (loops.py)."""

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
            node[count] = int64(data[start + depth]) | depth << DEPTH_SHIFT
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


@njit_entry(
    types.UniTuple(int64, 2)(  # type: ignore[no-untyped-call]
        int32[::1], int32[::1], int32[::1], int64[::1], int32[::1], int32[::1], int32[::1]
    )
)
def _index_wide(node, size, wide, masks, ends, first, child):  # type: ignore[no-untyped-def]
    """Find the wide nodes, set their flags and those of their children, and list the children.

    Wide node 0 is the root, which has no place of its own in the arrays.

    Parameters
    ----------
    node, size : int32[n_nodes]
        The trie; the flags are set in ``node``.
    wide : int32[n_nodes]
        Output, filled with -1: the index of a wide node.
    masks : int64[4 * capacity]
        Output, zeroed: the bytes of the children of each wide node.
    ends, first : int32[capacity]
        Output: where the subtree of each wide node ends, and where its children begin in ``child``.
    child : int32[n_nodes]
        Output: the children of the wide nodes.

    Returns
    -------
    (number of wide nodes, number of their children)
    """
    n_nodes = len(node)
    count, total = int64(1), int64(0)
    ends[0] = n_nodes
    first[0] = 0
    for parent in range(-1, n_nodes):
        end = n_nodes if parent < 0 else parent + size[parent]
        if parent >= 0:
            if end - parent <= WIDE_CHILDREN:
                continue
            children = 0
            p = parent + 1
            while p < end:
                children += 1
                p += size[p]
            if children < WIDE_CHILDREN:
                continue
            wide[parent] = count
            node[parent] |= WIDE
            ends[count] = end
            first[count] = total
            count += 1
        p = parent + 1
        while p < end:
            byte = node[p] & 255
            masks[4 * (count - 1) + (byte >> 6)] |= int64(1) << int64(byte & 63)
            node[p] |= CHILD_OF_WIDE
            child[total] = p
            total += 1
            p += size[p]
    return count, total


_ARRAYS = (
    *("node", "size", "children", "height", "token", "same", "subtrees", "in_order"),
    *("wide", "wide_masks", "wide_ends", "wide_first", "wide_child", "by_byte", "byte_starts", "by_length"),
)


class TokenTrie:
    """The flat trie.

    Attributes
    ----------
    node : int32[n_nodes]
        ``byte | flags | depth << DEPTH_SHIFT``; the first byte of a token has depth 0.  The flags say
        whether the node is wide (:data:`WIDE_CHILDREN`), whether its parent is (the root is), and whether the node
        is large (:data:`LARGE_SUBTREE`).
    wide : int32[n_nodes]
        The index of a wide node, or of another large one (:data:`LARGE_SUBTREE`), which come behind; or -1.
    wide_masks : int64[4 * n_wide]
        The bytes of the children of each wide node as a set; index 0 is the root.
    wide_ends, wide_first : int32[n_wide]
        Where the subtree of a wide node ends, and where its children begin in ``wide_child``.
    wide_child : int32[...]
        The children of the wide nodes, in the order of their bytes.
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
    subtrees : int64[4 * n]
        For each node that has an index in ``wide``: which bytes stand below it, in two words (subtree_bytes.py); where
        in ``in_order`` the tokens strictly below it begin, and in the upper half how many these are; and ``children``
        of it and all nodes below it.
    in_order : int32[n]
        The tokens in the trie, in the order of their nodes.
    by_byte : int32[n_nodes]
        The nodes, sorted by their bytes.
    byte_starts : int32[257]
        The nodes of byte ``b`` are ``by_byte[byte_starts[b]:byte_starts[b + 1]]``.
    by_length : int32[n]
        The tokens in the trie, longest first.
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
        self.depth = int(used.max())
        if self.depth > LONGEST_TOKEN:
            longest = members[int(lengths[members].argmax())]
            raise ConstrainError(f"token {longest} has {self.depth:,} bytes; at most {LONGEST_TOKEN:,} are supported")
        capacity = int(used.sum()) + 1
        if capacity > MOST_BYTES:
            raise ConstrainError(
                f"the tokens have {capacity - 1:,} bytes together; fewer than {MOST_BYTES:,} are supported"
            )
        children = np.zeros(capacity, np.int64)
        node, size, height, token = (np.empty(capacity, np.int32) for _ in range(4))
        same = np.full(len(tokens), -1, np.int32)
        path = np.empty(self.depth + 1, np.int32)
        count, duplicates = _build(data, starts, order, node, size, height, token, BYTE_GROUP, children, same, path)
        self.node: Int32Array = node[:count].copy()
        self.size: Int32Array = size[:count].copy()
        # A wide node has WIDE_CHILDREN subtrees of its own, so there cannot be more than this.
        capacity = count // WIDE_CHILDREN + 1
        self.wide: Int32Array = np.full(count, -1, np.int32)
        masks = np.zeros(4 * capacity, np.int64)
        ends, first = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        child = np.empty(count, np.int32)
        n_wide, n_children = _index_wide(self.node, self.size, self.wide, masks, ends, first, child)
        self.wide_masks: np.ndarray[Any, np.dtype[np.int64]] = masks[: 4 * n_wide].copy()
        self.wide_ends: Int32Array = ends[:n_wide].copy()
        self.wide_first: Int32Array = first[:n_wide].copy()
        self.wide_child: Int32Array = child[:n_children].copy()
        byte = self.node & 255
        self.by_byte: Int32Array = np.argsort(byte, kind="stable").astype(np.int32)
        self.byte_starts: Int32Array = np.searchsorted(byte[self.by_byte], np.arange(257)).astype(np.int32)
        self.by_length: Int32Array = order[np.argsort(-lengths[order], kind="stable")]
        self.children: np.ndarray[Any, np.dtype[np.int64]] = children[:count].copy()
        self.height: Int32Array = height[:count].copy()
        self.token: Int32Array = token[:count].copy()
        self.same: Int32Array = same if duplicates else same[:0].copy()
        self.in_order: Int32Array = self.token[self.token >= 0]
        self.subtrees = self._index_large(n_wide)

    def _index_large(self, n_wide: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Give large nodes an index and their flag; returns ``subtrees``."""
        is_large = self.size >= LARGE_SUBTREE
        self.node[is_large] |= LARGE
        is_large[self.wide >= 0] = False
        n_large = int(np.count_nonzero(is_large))
        self.wide[is_large] = np.arange(n_wide, n_wide + n_large, dtype=np.int32)
        indexed = np.flatnonzero(self.wide >= 0)
        index = self.wide[indexed]
        # How many tokens end at nodes before this one.
        rank = np.zeros(len(self.node) + 1, np.int32)
        np.cumsum(self.token >= 0, out=rank[1:])
        first = rank[indexed + 1].astype(np.int64)
        subtrees = np.zeros((n_wide + n_large, 4), np.int64)
        subtrees[index, :2] = bytes_below(self.node, DEPTH_SHIFT, self.depth).reshape(-1, 2)[indexed]
        ends = indexed + self.size[indexed]
        subtrees[index, 2] = first | (rank[ends] - first) << 32
        if len(indexed):
            # One more, since ``reduceat`` takes no end behind the last element.
            children = np.append(self.children, 0)
            subtrees[index, 3] = np.bitwise_or.reduceat(children, np.column_stack((indexed, ends)).reshape(-1))[::2]
        return subtrees.reshape(-1)
