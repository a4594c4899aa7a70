"""Stretches of a row: 256 logits, which vector instructions look at together.

What is not allowed counts as -inf.  The compiler makes no vectors of a loop with one sum or one maximum of floats,
since the order could matter.  So sums are trees of halves whose bounds it knows, and maxima are those of integers in
the same order.  Nor does it of a loop over places that could be negative, as far as it knows, which numba counts from
the end: so places are unsigned, or count from the beginning of a slice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.sampling.kernels.jit import njit_inner

WORDS = 8
STRETCH = 32 * WORDS

_NOTHING = -0x800000  # the bits of -inf
_MAGNITUDE = np.int32(0x7FFFFFFF)
_INFINITY = np.int32(0x7F800000)
_MINUS_INFINITY = np.int32(-0x7F800001)  # in the order of integers, where what is below is no number


@njit_inner("int64(uint64)")
def bit_count(x: Any) -> Any:
    """How many bits are set; LLVM knows this sequence and makes one instruction of it."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit_inner("boolean(int32[::1], uint64)")
def _all_allowed(mask: Any, word: Any) -> Any:
    """Whether the words from ``word`` on allow a whole stretch."""
    common = np.int32(-1)
    for i in range(WORDS):
        common &= mask[word + np.uint64(i)]
    return common == -1


@njit_inner("int64(int32[::1], int64, int64)")
def allowed_in(mask: Any, begin: Any, end: Any) -> Any:
    """How many tokens the words from ``begin`` to ``end`` allow."""
    if end - begin == WORDS and _all_allowed(mask, np.uint64(begin)):
        return STRETCH
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


@njit_inner("int32(int32)")
def _in_order(bits: Any) -> Any:
    """An integer for the bits of a float: of two floats the higher one has the higher integer; and the way back."""
    return np.int32(bits ^ np.int32(np.int32(bits >> np.int32(31)) & _MAGNITUDE))


@njit_inner("float32(float32[::1], uint64)")
def highest(logits: Any, begin: Any) -> Any:
    """The highest of the stretch that begins there; NaN if there is a NaN or +inf."""
    top, low = _MINUS_INFINITY, _INFINITY
    for i in range(STRETCH):
        value = _in_order(np.float32(logits[begin + np.uint64(i)]).view(np.int32))
        top = value if value > top else top
        low = value if value < low else low
    if top >= _INFINITY or low < _MINUS_INFINITY:
        return np.float32(np.nan)
    return np.int32(_in_order(top)).view(np.float32)


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
