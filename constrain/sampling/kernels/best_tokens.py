"""The best allowed tokens of a row, in one pass.

Words of the mask that allow nothing are passed over, so where few tokens are allowed a call costs a
scan of the words (a 32nd of the vocabulary) and then work per allowed token.  Where many are, most
are not good enough once the heap is full, and stretches in which none is are passed over by vector
instructions, allowed or not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.sampling.kernels.heaps import heapify, sift_down
from constrain.sampling.kernels.jit import njit_inner
from constrain.sampling.kernels.layout import ALL_MINUS_INFINITY, EMPTY_MASK, MASK_TOO_WIDE, NOT_A_NUMBER

_WORDS = 8
# With fewer allowed tokens in the first word of a group, looking at each is cheaper than at all logits.
_FEW = 2

_ONE = np.uint64(1)
_TWO = np.uint64(2)
_FOUR = np.uint64(4)
_PAIRS = np.uint64(0x5555555555555555)
_QUADS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_SUM = np.uint64(0x0101010101010101)
_TOP_BYTE = np.uint64(56)


@njit_inner("int64(uint64)")
def bit_count(x: Any) -> Any:
    """How many bits are set; LLVM knows this sequence and makes one instruction of it."""
    x = x - ((x >> _ONE) & _PAIRS)
    x = (x & _QUADS) + ((x >> _TWO) & _QUADS)
    x = (x + (x >> _FOUR)) & _BYTES
    return np.int64((x * _SUM) >> _TOP_BYTE)


@njit_inner("boolean(int32[::1])")
def none_allowed(mask: Any) -> Any:
    """Whether all words are 0."""
    allowed = np.uint32(0)
    for i in range(len(mask)):
        allowed |= np.uint32(mask[i])
    return allowed == 0


@njit_inner("boolean(float32[::1], float32)")
def none_better(logits: Any, bar: Any) -> Any:
    """Whether all of ``logits`` are at most ``bar``.  A NaN is not."""
    better = np.uint32(0)
    for i in range(len(logits)):  # no early exit, which no vector instruction has
        better += np.uint32(not (logits[i] <= bar))
    return better == 0


@njit_inner("int64(float32[::1], int32[::1], int64, float32[::1], int32[::1], int32[::1], float32[::1])")
def collect(logits: Any, mask: Any, k: Any, values: Any, ids: Any, touched_ids: Any, touched_values: Any) -> Any:
    """The ``k`` best allowed tokens; a count, or a negative status.

    ``values`` float32[m] and ``ids`` int32[m] are the result, 1 <= k <= m; in no order if ``k`` is less than
    ``len(logits)``, by id otherwise.  The touched tokens are allowed, with their own values instead of the row's
    (``mask`` does not have them), and come last.
    """
    n = len(logits)
    words = len(mask)
    count = 0
    seen = False
    group = 0
    while group < words:
        group_end = min(group + _WORDS, words)
        if none_allowed(mask[group:group_end]):
            group = group_end
            continue
        is_full = count == k and 32 * group_end <= n
        is_dense = False
        if is_full and bit_count(np.uint64(np.uint32(mask[group]))) > _FEW:
            is_dense = True
            if none_better(logits[32 * group : 32 * group_end], values[0]):
                group = group_end
                continue
        for w in range(group, group_end):
            bits = np.uint64(np.uint32(mask[w]))
            base = 32 * w
            if bits == 0 or (is_dense and none_better(logits[base : base + 32], values[0])):
                continue
            while bits != 0:
                # The lowest set bit, and the number of zeros below it.
                token = base + bit_count((bits & (~bits + _ONE)) - _ONE)
                bits &= bits - _ONE
                if is_full and logits[token] <= values[0]:
                    continue
                if token >= n:
                    return MASK_TOO_WIDE
                seen = True
                value = logits[token]
                if not value < np.inf:
                    return NOT_A_NUMBER
                if value > -np.inf:
                    if count < k:
                        values[count] = value
                        ids[count] = token
                        count += 1
                        if count == k and k < n:
                            heapify(values, ids, count, False)
                    elif value > values[0]:
                        # Ids only grow in this scan: on equal values the one already kept is better.
                        values[0] = value
                        ids[0] = token
                        sift_down(values, ids, 0, count, False)
        group = group_end
    for i in range(len(touched_ids)):
        seen = True
        value = touched_values[i]
        token = touched_ids[i]
        if not value < np.inf:
            return NOT_A_NUMBER
        if value > -np.inf:
            if count < k:
                values[count] = value
                ids[count] = token
                count += 1
                if count == k and k < n:
                    heapify(values, ids, count, False)
            elif value > values[0] or (value == values[0] and token < ids[0]):
                values[0] = value
                ids[0] = token
                sift_down(values, ids, 0, count, False)
    if count == 0:
        return ALL_MINUS_INFINITY if seen else EMPTY_MASK
    return count
