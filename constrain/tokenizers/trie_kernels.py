"""A double-array trie over the bytes of tokens.

``units`` is int32[n, 4] with n a multiple of 256; row s describes a node: the parent (``CHECK``; -1: free), the base
of its children (``BASE``), the token that ends there (``TOKEN``; -1: none).  The child of a node over byte b is the
row ``base ^ b`` if the parent of that row is the node.  The root is row 0.

The idea is J.-I. Aoe's ("An efficient digital search algorithm by using a double-array structure", IEEE
Transactions on Software Engineering 15(9), 1989), with the bases combined by exclusive or.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from constrain.kernels.jit import ENTRY, INNER, njit

CHECK, BASE, TOKEN = range(3)

_TRIES = 64
"""Free rows that are tried for a node with several children before a new block is taken."""


@njit("int32[:, ::1](int32[:, ::1])", **INNER)
def _grow(units):  # type: ignore[no-untyped-def]
    """A larger copy whose new rows are free."""
    size = units.shape[0]
    wider = np.empty((max(512, 2 * units.shape[0]), 4), dtype=np.int32)
    # Loops: assignments of slices take seconds to compile.
    for i in range(wider.shape[0]):
        if i < size:
            for j in range(4):
                wider[i, j] = units[i, j]
        else:
            wider[i, CHECK] = -1
            wider[i, BASE] = 0
            wider[i, TOKEN] = -1
            wider[i, 3] = 0
    return wider


@njit("boolean(int32[:, ::1], int32[::1], int64, int64)", **INNER)
def _fits(units, labels, count, base):  # type: ignore[no-untyped-def]
    """Whether the rows of the children with these labels are free for a base; that of the first one is."""
    i = 1
    while i < count and units[base ^ labels[i], CHECK] == -1:
        i += 1
    return i >= count


@njit("int32[:, ::1](uint8[::1], int64[::1], int32[::1])", **ENTRY)
def build_trie(blob, starts, tokens):  # type: ignore[no-untyped-def]
    """The trie of keys in increasing order, without the empty one.

    blob, starts : uint8[], int64[k + 1], the bytes of the keys;  tokens : int32[k]
    """
    units = np.empty((0, 4), dtype=np.int32)
    units = _grow(units)
    # Free rows are a doubly linked list in increasing order; row 0, the root, is its anchor.
    after = np.empty(units.shape[0], dtype=np.int32)
    before = np.empty(units.shape[0], dtype=np.int32)
    for i in range(units.shape[0]):
        after[i] = i + 1 if i + 1 < units.shape[0] else 0
        before[i] = i - 1 if i > 0 else units.shape[0] - 1
    units[0, CHECK] = -2
    room = blob.size + 2
    queue = np.empty((room, 3), dtype=np.int32)  # node, first and last key; the depth goes by levels
    queue[0, 0] = 0
    queue[0, 1] = 0
    queue[0, 2] = tokens.size
    head, tail, level_end, depth = 0, 1, 1, 0
    labels = np.empty(256, dtype=np.int32)
    firsts = np.empty(257, dtype=np.int32)
    top = 0
    recent = 0
    while head < tail:
        if head == level_end:
            depth += 1
            level_end = tail
        node, low, high = queue[head, 0], queue[head, 1], queue[head, 2]
        head += 1
        while low < high and starts[low + 1] - starts[low] == depth:
            if units[node, TOKEN] < 0:
                units[node, TOKEN] = tokens[low]
            low += 1
        count = 0
        for key in range(low, high):
            label = blob[starts[key] + depth]
            if count == 0 or labels[count - 1] != label:
                labels[count] = label
                firsts[count] = key
                count += 1
        if count == 0:
            continue
        firsts[count] = high
        base = -1
        slot = after[0]
        tries = 0
        while slot != 0 and tries < _TRIES:
            if _fits(units, labels, count, slot ^ labels[0]):
                base = slot ^ labels[0]
                break
            slot = after[slot]
            tries += 1
        if base < 0:
            # Then the block that was begun last, where most rows are free.
            for slot in range(recent, recent + 256):
                if units[slot, CHECK] == -1 and _fits(units, labels, count, slot ^ labels[0]):
                    base = slot ^ labels[0]
                    break
        if base < 0:
            base = (top | 255) + 1
            recent = base
        if base >= units.shape[0]:
            size = units.shape[0]
            units = _grow(units)
            longer_after = np.empty(units.shape[0], dtype=np.int32)
            longer_before = np.empty(units.shape[0], dtype=np.int32)
            for i in range(size):
                longer_after[i] = after[i]
                longer_before[i] = before[i]
            after = longer_after
            before = longer_before
            last = before[0]
            for i in range(size, units.shape[0]):
                before[i] = last
                after[last] = i
                last = i
            after[last] = 0
            before[0] = last
        units[node, BASE] = base
        for i in range(count):
            child = base ^ labels[i]
            top = max(top, child)
            units[child, CHECK] = node
            after[before[child]] = after[child]
            before[after[child]] = before[child]
            queue[tail, 0] = child
            queue[tail, 1] = firsts[i]
            queue[tail, 2] = firsts[i + 1]
            tail += 1
    return units


def trie_of(tokens: Iterable[tuple[bytes, int]]) -> npt.NDArray[np.int32]:
    """The trie of some keys with their ids; of equal keys the first counts, empty ones are left out."""
    ordered = sorted((item for item in tokens if item[0]), key=lambda item: item[0])
    starts = np.zeros(len(ordered) + 1, dtype=np.int64)
    np.cumsum([len(key) for key, _ in ordered], out=starts[1:])
    blob = np.frombuffer(bytearray(b"".join([key for key, _ in ordered])), dtype=np.uint8)
    units: npt.NDArray[np.int32] = build_trie(blob, starts, np.array([i for _, i in ordered], dtype=np.int32))
    return units


def walk(units: npt.NDArray[np.int32], key: bytes) -> int:
    """The node that a key leads to, or -1."""
    node = 0
    for byte in key:
        child = int(units[node, BASE]) ^ byte
        if units[child, CHECK] != node:
            return -1
        node = child
    return node
