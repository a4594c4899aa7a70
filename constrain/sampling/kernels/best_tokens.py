"""The best allowed tokens of a row.

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
from constrain.sampling.kernels.stretches import STRETCH, WORDS, allowed_in, bit_count, highest, take_allowed

# With fewer allowed tokens in the first word of a group, looking at each is cheaper than at all logits.
_FEW = 2

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFF)
_NOTHING = np.float32(-np.inf)


@njit_inner("boolean(int32[::1])")
def none_allowed(mask: Any) -> Any:
    """Whether all words are 0."""
    allowed = np.uint32(0)
    for i in range(len(mask)):
        allowed |= np.uint32(mask[i])
    return allowed == 0


@njit_inner("boolean(int32[::1])")
def _many_allowed(mask: Any) -> Any:
    """Whether an eighth of the tokens is allowed."""
    allowed = 0
    for begin in range(0, len(mask), WORDS):
        allowed += allowed_in(mask, begin, min(begin + WORDS, len(mask)))
        if allowed >= 4 * len(mask):
            return True
    return False


@njit_inner("boolean(float32[::1], float32)")
def none_better(logits: Any, bar: Any) -> Any:
    """Whether all of ``logits`` are at most ``bar``.  A NaN is not."""
    better = np.uint32(0)
    for i in range(len(logits)):  # no early exit, which no vector instruction has
        better += np.uint32(not (logits[i] <= bar))
    return better == 0


@njit_inner("boolean(float32[::1], float32)")
def none_reaches(logits: Any, bar: Any) -> Any:
    """Whether all of ``logits`` are below ``bar``.  A NaN is not."""
    reaching = np.uint32(0)
    for i in range(len(logits)):
        reaching += np.uint32(not (logits[i] < bar))
    return reaching == 0


@njit_inner("int64(float32, int64, int64, int64, float32[::1], int32[::1], int64)")
def offer(value: Any, token: Any, k: Any, n: Any, values: Any, ids: Any, count: Any) -> Any:
    """Put a token among the ``k`` best, if it is one of them; how many there are then.

    ``values[:count]`` and ``ids[:count]`` become a heap with the worst at its root when ``count`` reaches ``k``, unless
    ``k`` is ``n``.
    """
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
    return count


@njit_inner("boolean(float32[::1], int64, float32[::1], int32[::1], int64)")
def _take_all(logits: Any, begin: Any, values: Any, ids: Any, count: Any) -> Any:
    """Write 32 tokens to the candidates; whether all have a finite logit."""
    finite = np.uint32(0)
    for i in range(32):
        finite += np.uint32(abs(logits[begin + i]) < np.inf)
    for i in range(32):
        values[count + i] = logits[begin + i]
    for i in range(32):
        ids[count + i] = begin + i
    return finite == 32


@njit_inner("int64(float32[::1], int32[::1], int64, int64, float32[::1], int32[::1])")
def _collect_stretches(logits: Any, mask: Any, stretches: Any, k: Any, values: Any, ids: Any) -> Any:
    """The ``k`` best allowed tokens of so many stretches, at least ``k``; a count, or NOT_A_NUMBER.

    A heap that begins with the first tokens takes in many times ``k`` before it has the best.  But the ``k``-th highest
    of the maxima of stretches is a bound that at least ``k`` tokens reach, so few stretches are looked at twice.
    """
    stretch = np.empty(STRETCH, dtype=np.float32)
    peaks = np.empty(stretches, dtype=np.float32)
    count = 0
    for part in range(stretches):
        word = part * WORDS
        if allowed_in(mask, word, word + WORDS) == STRETCH:
            peaks[part] = highest(logits, np.uint64(32 * word))
        else:
            take_allowed(logits, mask, word, stretch)
            peaks[part] = highest(stretch, np.uint64(0))
        if not peaks[part] < np.inf:
            return NOT_A_NUMBER
        if count < k or peaks[part] > values[0]:
            count = offer(peaks[part], part, k, stretches + 1, values, ids, count)
    bound = values[0]
    count = 0
    for part in range(stretches):
        if peaks[part] < bound or peaks[part] == _NOTHING or (count == k and peaks[part] <= values[0]):
            continue
        for w in range(part * WORDS, (part + 1) * WORDS):
            base = 32 * w
            if none_reaches(logits[base : base + 32], bound):
                continue
            # Few do: look at each before asking whether it is allowed.
            bits = np.uint64(np.uint32(mask[w]))
            for i in range(32):
                value = logits[base + i]
                if value >= bound and value > _NOTHING and (bits >> np.uint64(i)) & _ONE:
                    count = offer(value, base + i, k, len(logits), values, ids, count)
    return count


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
    stretches = min(n // STRETCH, words // WORDS)
    if k <= stretches // 2 and _many_allowed(mask):
        count = _collect_stretches(logits, mask, stretches, k, values, ids)
        if count < 0:
            return count
        seen = True
        group = stretches * WORDS
    while group < words:
        group_end = min(group + WORDS, words)
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
            if (
                k == n
                and bits == _ALL
                and base + 32 <= n
                and count + 32 <= n
                and _take_all(logits, base, values, ids, count)
            ):
                seen = True
                count += 32
                continue
            if is_dense:
                # Few are better: look at each before asking whether it is allowed.
                for i in range(32):
                    value = logits[base + i]
                    if not (value <= values[0]) and (bits >> np.uint64(i)) & _ONE:
                        if not value < np.inf:
                            return NOT_A_NUMBER
                        count = offer(value, base + i, k, n, values, ids, count)
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
                if value > _NOTHING:
                    if k == n or count < k - 1:
                        # Nothing to compare it with, and a call would take longer than all the rest.
                        values[count] = value
                        ids[count] = token
                        count += 1
                    else:
                        count = offer(value, token, k, n, values, ids, count)
        group = group_end
    for i in range(len(touched_ids)):
        seen = True
        value = touched_values[i]
        token = touched_ids[i]
        if not value < np.inf:
            return NOT_A_NUMBER
        if value > -np.inf:
            count = offer(value, token, k, n, values, ids, count)
    if count == 0:
        return ALL_MINUS_INFINITY if seen else EMPTY_MASK
    return count
