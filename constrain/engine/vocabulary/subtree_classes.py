"""Which bytes stand below a node of the trie, as a set of 128 bits: each ASCII character, and groups of longer ones.

A walk asks it of whole subtrees: does a lexer state stay what it is over all that is below this node (self_loops.py)?
Bytes that are no characters of their own only say so as characters: a set speaks of what follows the node read as
UTF-8, beginning with a new character, and has a mark for what is not that.  The last character of a token may be cut
off. The set of a node that begins a character of several bytes holds that one too: it speaks of what follows the node
above."""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Any

import numpy as np

from constrain.engine.storage.jit import njit_entry
from constrain.kernels.language import int32, int64, types, uint8

ILL_FORMED = 28
"""The bit for bytes that are not UTF-8."""

_FIRST_LEAD, _CONTROLS = 14, 29
# The lowest and the highest first byte, the range of the second byte, and how many bytes follow the first.  The groups
# are those of The Unicode Standard, table 3-7, and some are divided.
_LEADS = (
    *((0xC2, 0xCF, 0x80, 0xBF, 1), (0xD0, 0xDF, 0x80, 0xBF, 1)),
    *((0xE0, 0xE0, 0xA0, 0xBF, 2), (0xE1, 0xE1, 0x80, 0xBF, 2), (0xE2, 0xE2, 0x80, 0xBF, 2)),
    *((0xE3, 0xE3, 0x80, 0xBF, 2), (0xE4, 0xE9, 0x80, 0xBF, 2), (0xEA, 0xEC, 0x80, 0xBF, 2)),
    *((0xED, 0xED, 0x80, 0x9F, 2), (0xEE, 0xEE, 0x80, 0xBF, 2), (0xEF, 0xEF, 0x80, 0xBF, 2)),
    *((0xF0, 0xF0, 0x90, 0xBF, 3), (0xF1, 0xF3, 0x80, 0xBF, 3), (0xF4, 0xF4, 0x80, 0x8F, 3)),
)


def _characters() -> np.ndarray[Any, np.dtype[np.int64]]:
    rows = [(byte, byte, 0, 0, 0) for byte in range(128)]
    rows[_FIRST_LEAD : _FIRST_LEAD + len(_LEADS)] = _LEADS
    rows[_CONTROLS] = (_FIRST_LEAD, 0x1F, 0, 0, 0)
    return np.array(rows, np.int64).reshape(-1)


CHARACTERS = _characters()
"""int64[5 * 128]: the characters of each bit: the lowest and the highest first byte, the range of the second, and how
many bytes follow the first.  (What stands for ILL_FORMED means nothing.)"""


def _bits() -> np.ndarray[Any, np.dtype[np.uint8]]:
    bits = np.full(256, ILL_FORMED, np.uint8)
    bits[:128] = range(128)
    bits[_FIRST_LEAD:0x20] = _CONTROLS
    for group, (low, high, *_) in enumerate(_LEADS):
        bits[low : high + 1] = _FIRST_LEAD + group
    return bits


def _following() -> np.ndarray[Any, np.dtype[np.uint8]]:
    """uint8[3 * 256]: for each first byte how many follow it, and the range of the second; 0 for other bytes."""
    table = np.zeros((256, 3), np.uint8)
    for low, high, second_low, second_high, more in _LEADS:
        table[low : high + 1] = more, second_low, second_high
    return table.reshape(-1)


BIT_OF_BYTE, _FOLLOWING = _bits(), _following()


@njit_entry(
    types.void(
        *(int32[::1], int64, uint8[::1], uint8[::1], int32[::1], int64[::1], int32[::1], int32[::1], int64[::1]),
        *(int64[::1],),
    )
)
def _describe(node, depth_shift, bits, following, parent, above_all, index, token, children, subtrees):
    """Fill ``subtrees`` as :func:`describe_subtrees` returns it; zeroed, as is ``above_all``.

    ``parent`` (int32[n_nodes + longest + 1]) is scratch, and so is ``above_all`` (int64[4 * (longest + 1)]): of the
    node at each depth on the way to the one under way, what is known by now to stand below it.  Nodes are gone through
    backwards, so all below a node is known when the node is come to.
    """
    n_nodes = len(node)
    path = parent[n_nodes:]
    ended = int64(0)
    for p in range(n_nodes):
        depth = node[p] >> depth_shift
        parent[p] = path[depth - 1] if depth else -1
        path[depth] = p
        ended += int64(token[p] >= 0)
        if index[p] >= 0:
            subtrees[4 * index[p] + 2] = ended
    for p in range(n_nodes - 1, -1, -1):
        depth = int64(node[p] >> depth_shift)
        own = 4 * depth
        byte = node[p] & 255
        bit = int64(bits[byte])
        mark = int64(1) << (bit & 63)
        if byte >= 0xC0:
            above_all[own] |= mark
        w0, w1 = above_all[own], above_all[own + 1]
        tokens, groups = above_all[own + 2], above_all[own + 3] | children[p]
        for i in range(4):
            above_all[own + i] = 0
        if index[p] >= 0:
            record = 4 * index[p]
            subtrees[record] = w0
            subtrees[record + 1] = w1
            subtrees[record + 2] |= tokens << 32
            subtrees[record + 3] = groups
        above = parent[p]
        if above < 0:
            continue
        over = own - 4
        above_all[over + 2] += tokens + int64(token[p] >= 0)
        above_all[over + 3] |= groups
        if node[above] & 255 < 0xC0:
            above_all[over + (bit >> 6)] |= mark
            if byte < 0x80:
                above_all[over] |= w0
                above_all[over + 1] |= w1
        # The character that is under way, if one is, began with the last byte that does not go on with one.
        first = above
        count = 1
        while count < 3 and 0x80 <= node[first] & 255 < 0xC0 and parent[first] >= 0:
            first = parent[first]
            count += 1
        more = 3 * (node[first] & 255)
        if count > following[more]:
            continue
        low, high = (following[more + 1], following[more + 2]) if count == 1 else (uint8(0x80), uint8(0xBF))
        if byte < low or byte > high:
            w0, w1 = int64(1) << ILL_FORMED, int64(0)
        elif count != following[more]:
            w0, w1 = int64(0), int64(0)
        at = own - 4 * count
        above_all[at] |= w0
        above_all[at + 1] |= w1
        before = parent[first]
        if before >= 0 and node[before] & 255 < 0xC0:
            above_all[at - 4] |= w0
            above_all[at - 3] |= w1


def describe_subtrees(
    node: np.ndarray[Any, np.dtype[np.int32]],
    depth_shift: int,
    longest: int,
    index: np.ndarray[Any, np.dtype[np.int32]],
    count: int,
    token: np.ndarray[Any, np.dtype[np.int32]],
    children: np.ndarray[Any, np.dtype[np.int64]],
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """What stands below some nodes.

    Parameters
    ----------
    node : int32[n_nodes]
        The trie's, in depth-first order: the byte in the lowest eight bits, the depth from ``depth_shift`` on.
    longest : int
        How many bytes the longest token has.
    index : int32[n_nodes]
        Which nodes: those with a number, different and below ``count``; -1 for others.
    count : int
    token : int32[n_nodes]
        The token that ends at each node, or -1.
    children : int64[n_nodes]
        The groups of the bytes of each node's children, as sets.

    Returns
    -------
    int64[4 * count]
        For each of these nodes: two words with the bits of :data:`CHARACTERS` (that of an ASCII character is its
        number, and in place of most control characters there are others); how many tokens end at it or at nodes before
        it, and in the upper half how many strictly below it; ``children`` of it and of all nodes below it.
    """
    subtrees = np.zeros(4 * count, np.int64)
    parent = np.empty(len(node) + longest + 1, np.int32)
    above_all = np.zeros(4 * (longest + 1), np.int64)
    _describe(node, depth_shift, BIT_OF_BYTE, _FOLLOWING, parent, above_all, index, token, children, subtrees)
    return subtrees
