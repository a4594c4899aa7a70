"""Stretches of a row: 256 logits, which vector instructions look at together.

What is not allowed counts as -inf.  Sums and maxima are trees of halves whose bounds the compiler knows: it makes no
vectors of a loop with one sum or one maximum of floats, since the order could matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.sampling.kernels.jit import njit_inner

WORDS = 8
STRETCH = 32 * WORDS

_NOTHING = -0x800000  # the bits of -inf


@njit_inner("int64(uint64)")
def bit_count(x: Any) -> Any:
    """How many bits are set; LLVM knows this sequence and makes one instruction of it."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit_inner("int64(int32[::1], int64, int64)")
def allowed_in(mask: Any, begin: Any, end: Any) -> Any:
    """How many tokens the words from ``begin`` to ``end`` allow."""
    allowed = 0
    for w in range(begin, end):
        allowed += bit_count(np.uint64(np.uint32(mask[w])))
    return allowed


@njit_inner("void(float32[::1], int32[::1], int64, float32[::1])")
def take_allowed(logits: Any, mask: Any, word: Any, stretch: Any) -> None:
    """Write the logits of the words from ``word`` on to ``stretch`` float32[STRETCH], -inf for what is not allowed."""
    for w in range(WORDS):
        bits = np.int64(mask[word + w])
        begin = 32 * (word + w)
        for i in range(32):
            # In bits and not with a condition, of which the compiler would make a branch for each logit.
            keep = -((bits >> i) & 1)
            value = np.int64(np.float32(logits[begin + i]).view(np.int32))
            stretch[32 * w + i] = np.int32((value & keep) | (_NOTHING & ~keep)).view(np.float32)


@njit_inner("float32(float32[::1], float32[::1])")
def highest(stretch: Any, room: Any) -> Any:
    """The highest of a stretch; NaN if there is a NaN or +inf.  ``room`` is scratch, float32[STRETCH]."""
    wrong = np.uint32(0)
    for i in range(128):
        first, second = stretch[i], stretch[i + 128]
        room[i] = first if first > second else second
        wrong += np.uint32(not (first < np.inf)) + np.uint32(not (second < np.inf))
    if wrong != 0:
        return np.float32(np.nan)
    for i in range(64):
        first, second = room[i], room[i + 64]
        room[i] = first if first > second else second
    for i in range(32):
        first, second = room[i], room[i + 32]
        room[i] = first if first > second else second
    for i in range(16):
        first, second = room[i], room[i + 16]
        room[i] = first if first > second else second
    for i in range(8):
        first, second = room[i], room[i + 8]
        room[i] = first if first > second else second
    best = room[0]
    for i in range(1, 8):
        best = room[i] if room[i] > best else best
    return best


@njit_inner("float64(float64[::1])")
def sum_of(weights: Any) -> Any:
    """The sum of ``weights`` float64[STRETCH // 2], which are not kept; always in the same order."""
    for i in range(64):
        weights[i] += weights[i + 64]
    for i in range(32):
        weights[i] += weights[i + 32]
    for i in range(16):
        weights[i] += weights[i + 16]
    for i in range(8):
        weights[i] += weights[i + 8]
    for i in range(4):
        weights[i] += weights[i + 4]
    return (weights[0] + weights[1]) + (weights[2] + weights[3])
