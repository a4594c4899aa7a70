"""TokenTrie: every token's bytes in one flat array, in depth-first order.

A node is one byte on the way to some token.  Because the order is depth-first, the subtree of node
``p`` is ``p + 1 .. p + size[p]``, and skipping it is one addition; because each node knows its
depth, a walk keeps its states in a stack indexed by depth and never has to pop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from constrain.engine.storage.jit import njit_entry
from constrain.engine.vocabulary.subtree_classes import describe_subtrees
from constrain.errors import ConstrainError
from constrain.kernels.language import int32, int64, types, uint8


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
"""From this many nodes on a subtree is large: what stands in it is known (fast/self_loops.py)."""

_CHAIN_STEP = 8
"""Of nodes that follow each other without a choice, as in one long token, it is only known for the first and for those
whose depth is a multiple of this.  A long token would otherwise take twice the memory."""

Int32Array = np.ndarray[Any, np.dtype[np.int32]]


@njit_entry(
    types.UniTuple(int64, 2)(
        uint8[::1],
        int64[::1],
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
def _build(data, starts, order, node, size, token, group, children, same, path):  # type: ignore[no-untyped-def]
    """Fill the arrays of the trie.

    Parameters
    ----------
    data, starts : uint8[n_bytes], int64[n_tokens + 1]
        Token ``i`` is ``data[starts[i]:starts[i + 1]]``.
    order : int32[n]
        Tokens to insert, none of them empty, sorted by their bytes.
    node, size, token : int32[capacity]
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
        if common == length and common == previous_length:
            same[order[k - 1]] = order[k]
            duplicates += 1
        for depth in range(common, length):
            path[depth] = count
            node[count] = int64(data[start + depth]) | depth << DEPTH_SHIFT
            token[count] = -1
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
    types.UniTuple(int64, 3)(
        *(int32[::1], int32[::1], int32[::1], int32[::1], int64[::1], int32[::1], int32[::1], int32[::1]),
        *(int32[::1], int32[::1]),
    )
)
def _index(node, size, token, wide, masks, ends, first, child, by_byte, byte_starts):  # type: ignore[no-untyped-def]
    """Find the wide nodes and the other large ones, set flags, list the wide nodes' children, and sort all nodes.

    Wide node 0 is the root, which has no place of its own in the arrays.

    Parameters
    ----------
    node, size, token : int32[n_nodes]
        The trie; the flags are set in ``node``.
    wide : int32[n_nodes]
        Output, filled with -1: the index of a wide node, and behind those of other large ones.
    masks : int64[4 * capacity]
        Output, zeroed: the bytes of the children of each wide node.
    ends, first : int32[capacity]
        Output: where the subtree of each wide node ends, and where its children begin in ``child``.
    child : int32[n_nodes]
        Output: the children of the wide nodes.
    by_byte, byte_starts : int32[n_nodes], int32[257]
        Output: the nodes in the order of their bytes (``byte_starts`` filled with 0).

    Returns
    -------
    (number of wide nodes, number of their children, number of wide and large nodes)
    """
    n_nodes = len(node)
    for p in range(n_nodes):
        byte_starts[(node[p] & 255) + 1] += 1
    for byte in range(256):
        byte_starts[byte + 1] += byte_starts[byte]
    for p in range(n_nodes):
        byte = node[p] & 255
        by_byte[byte_starts[byte]] = p
        byte_starts[byte] += 1
    for byte in range(256, 0, -1):
        byte_starts[byte] = byte_starts[byte - 1]
    byte_starts[0] = 0
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
    indexed = count
    for p in range(n_nodes):
        if size[p] < LARGE_SUBTREE:
            continue
        if wide[p] < 0:
            # The only child of a node at which no token ends: the subtree is that of its parent, but for one byte.
            if p > 0 and size[p - 1] == size[p] + 1 and token[p - 1] < 0 and (node[p] >> DEPTH_SHIFT) % _CHAIN_STEP:
                continue
            wide[p] = indexed
            indexed += 1
        node[p] |= LARGE
    return count, total, indexed


_ARRAYS = (
    *("node", "size", "children", "token", "same", "subtrees", "in_order"),
    *("wide", "wide_masks", "wide_ends", "wide_first", "wide_child", "by_byte", "byte_starts", "by_length"),
)


def _sorted(data: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], members: np.ndarray[Any, Any]) -> Int32Array:
    """Some tokens (int[n], in increasing order), none of them empty, sorted by their bytes; equal ones by their ids.

    First by eight bytes, as one number; only what is equal in these is compared as bytes.
    """
    begins, ends = starts[members], starts[members + 1]
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    at_each_byte = np.ndarray(len(data), ">u8", padded, strides=(1,))
    keys = at_each_byte[begins].astype(np.uint64)
    # Of what follows a shorter token, nothing counts.
    unused = 8 * np.clip(8 - (ends - begins), 0, 7).astype(np.uint64)
    keys = keys >> unused << unused
    places = np.argsort(keys, kind="stable")
    keys = keys[places]
    is_same = keys[1:] == keys[:-1]
    tied = np.flatnonzero(np.append(is_same, False) | np.append(False, is_same))
    blob = data.tobytes()
    # Groups of equal keys stand in their order, and are the same groups afterwards.
    texts = {place: blob[begins[place] : ends[place]] for place in places[tied].tolist()}
    places[tied] = sorted(texts, key=texts.__getitem__)
    return members[places].astype(np.int32)


class TokenTrie:
    """The flat trie.

    Attributes
    ----------
    node : int32[n_nodes]
        ``byte | flags | depth << DEPTH_SHIFT``; the first byte of a token has depth 0.  The flags say
        whether the node is wide (:data:`WIDE_CHILDREN`), whether its parent is (the root is), and whether the node
        is large and has an index in ``wide`` (:data:`LARGE_SUBTREE`).
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
    size : int32[n_nodes]
        Nodes in the subtree, the node itself included.
    token : int32[n_nodes]
        The token that ends here, or -1.  Of several tokens with the same bytes the first one.
    same : int32[n_tokens], or int32[0] if no two tokens have the same bytes
        The next token with the same bytes, or -1.
    subtrees : int64[4 * n]
        For each node that has an index in ``wide``: which bytes stand below it, in two words (subtree_classes.py);
        where in ``in_order`` the tokens strictly below it begin, and in the upper half how many these are; and
        ``children`` of it and all nodes below it.
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
    def from_arrays(cls, arrays: Mapping[str, np.ndarray[Any, Any]]) -> TokenTrie | None:
        """The trie that :meth:`arrays` was called on; None if these are the arrays of something else."""
        if arrays.keys() != set(_ARRAYS):
            return None
        trie = cls.__new__(cls)
        for name in _ARRAYS:
            setattr(trie, name, arrays[name])
        trie.depth = int(trie.node.max(initial=-1) >> DEPTH_SHIFT) + 1
        return trie

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """All there is to it, by name."""
        return {name: getattr(self, name) for name in _ARRAYS}

    def same_as(self, token: int) -> list[int]:
        """A token of the trie, and all others with the same bytes; none for -1."""
        found = []
        while token >= 0:
            found.append(token)
            token = int(self.same[token]) if len(self.same) else -1
        return found

    def __init__(
        self,
        data: np.ndarray[Any, np.dtype[np.uint8]],
        starts: np.ndarray[Any, np.dtype[np.int64]],
        members: np.ndarray[Any, Any],
    ) -> None:
        lengths = starts[1:] - starts[:-1]
        members = members[lengths[members] > 0]
        order = _sorted(data, starts, members)
        used = lengths[order] if len(order) else np.zeros(1, np.int64)
        self.depth = int(used.max())
        if self.depth > LONGEST_TOKEN:
            longest = int(members[lengths[members].argmax()])
            raise ConstrainError(f"token {longest} has {self.depth:,} bytes; at most {LONGEST_TOKEN:,} are supported")
        # Addresses for a node of each byte.  Memory is taken by those that are written, so nothing is copied after.
        capacity = int(used.sum()) + 1
        if capacity > MOST_BYTES:
            raise ConstrainError(
                f"the tokens have {capacity - 1:,} bytes together; fewer than {MOST_BYTES:,} are supported"
            )
        children = np.zeros(capacity, np.int64)
        node, size, token = (np.empty(capacity, np.int32) for _ in range(3))
        same = np.full(len(lengths), -1, np.int32)
        path = np.empty(self.depth + 1, np.int32)
        count, duplicates = _build(data, starts, order, node, size, token, BYTE_GROUP, children, same, path)
        self.node: Int32Array = node[:count]
        self.size: Int32Array = size[:count]
        self.children: np.ndarray[Any, np.dtype[np.int64]] = children[:count]
        self.token: Int32Array = token[:count]
        self.same: Int32Array = same if duplicates else same[:0].copy()
        self.in_order: Int32Array = self.token[self.token >= 0]
        # A wide node has WIDE_CHILDREN subtrees of its own, so there cannot be more than this.
        capacity = count // WIDE_CHILDREN + 1
        self.wide: Int32Array = np.full(count, -1, np.int32)
        masks = np.zeros(4 * capacity, np.int64)
        ends, first = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        child = np.empty(count, np.int32)
        self.by_byte: Int32Array = np.empty(count, np.int32)
        self.byte_starts: Int32Array = np.zeros(257, np.int32)
        n_wide, n_children, n_indexed = _index(
            *(self.node, self.size, self.token, self.wide, masks, ends, first, child, self.by_byte, self.byte_starts)
        )
        self.wide_masks: np.ndarray[Any, np.dtype[np.int64]] = masks[: 4 * n_wide].copy()
        self.wide_ends: Int32Array = ends[:n_wide].copy()
        self.wide_first: Int32Array = first[:n_wide].copy()
        self.wide_child: Int32Array = child[:n_children].copy()
        self.by_length: Int32Array = order[np.argsort(-lengths[order], kind="stable")]
        self.subtrees = describe_subtrees(
            self.node, DEPTH_SHIFT, self.depth, self.wide, n_indexed, self.token, self.children
        )
