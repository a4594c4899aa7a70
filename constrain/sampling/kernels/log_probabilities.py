"""Log-probabilities of the best tokens; apart from the rest, since it is compiled only where they are wanted.

One pass: while a stretch is in the processor's nearest memory, its best tokens are taken and its exponentials added to
the sum, which is relative to the highest logit so far (Milakov and Gimelshein, "Online normalizer calculation for
softmax", 2018).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from constrain.sampling.kernels.arithmetic import exp_not_positive, exp_single
from constrain.sampling.kernels.best_tokens import none_better, offer
from constrain.sampling.kernels.heaps import heapify, sift_down
from constrain.sampling.kernels.jit import njit_entry, njit_inner
from constrain.sampling.kernels.layout import ALL_MINUS_INFINITY, EMPTY_MASK, MASK_TOO_WIDE, NOT_A_NUMBER
from constrain.sampling.kernels.stretches import STRETCH, WORDS, allowed_in, bit_count, sum_of, take_allowed

_FEW = 24
"""With so few allowed tokens in a stretch, each is looked at by itself."""


@njit_inner("float64(float32[::1], float32, float32[::1], float64[::1])")
def _mass_of_best(stretch: Any, best: Any, weights: Any, sums: Any) -> Any:
    """The sum of ``exp(x - best)`` over a stretch; ``weights`` float32[STRETCH] and ``sums`` float64[128] are scratch.

    The exponentials are single precision, the sum is double: beside a token that is nearly certain, the small rest
    decides about its logarithm.
    """
    for i in range(STRETCH):
        weights[i] = exp_single(np.float32(stretch[i] - best))
    for i in range(STRETCH // 2):
        sums[i] = np.float64(weights[i]) + np.float64(weights[i + STRETCH // 2])
    return sum_of(sums)


@njit_inner("float32(float32[::1], float32)", fastmath={"contract", "reassoc"})
def _mass_of_rest(stretch: Any, best: Any) -> Any:
    """The same for a stretch without any of the best tokens, whose sum may have an error of 1e-6 of it: so its order is
    left to the compiler, which keeps a sum for each place of its vectors."""
    total = np.float32(0.0)
    for i in range(STRETCH):
        total = np.float32(total + exp_single(np.float32(stretch[i] - best)))
    return total


@njit_inner("float64(int64, int32[::1])")
def _failed(status: Any, top_ids: Any) -> Any:
    top_ids[0] = status
    return np.nan


@njit_entry("float64(float32[::1], int32[::1], int64, float32[::1], int32[::1], int32[::1], float64[::1])")
def log_probabilities(logits: Any, mask: Any, top: Any, values: Any, ids: Any, top_ids: Any, top_logprobs: Any) -> Any:
    """``log(sum(exp(x)))`` over the allowed tokens, and the ``top`` most likely of them.

    Parameters
    ----------
    logits, mask :
        As for :func:`~.rows.candidates`.
    top : int64
        From 1 to ``len(logits)``.
    values, ids : float32[top], int32[top]
        Scratch.
    top_ids, top_logprobs : int32[top], float64[top]
        Result, most likely first; -1 where there are fewer.  If there is none, ``top_ids[0]`` is the status.
    """
    n = len(logits)
    words = len(mask)
    stretch = np.empty(STRETCH, dtype=np.float32)
    weights = np.empty(STRETCH, dtype=np.float32)
    sums = np.empty(STRETCH // 2, dtype=np.float64)
    best = np.float32(-np.inf)
    total = 0.0
    count = 0
    seen = False
    for word in range(0, words, WORDS):
        last = min(word + WORDS, words)
        allowed = allowed_in(mask, word, last)
        if allowed == 0:
            continue
        together = 32 * (word + WORDS) <= n and word + WORDS <= words and allowed > _FEW
        looked_at = stretch[:]
        if allowed == STRETCH and together:
            looked_at = logits[32 * word : 32 * word + STRETCH]
        elif together:
            take_allowed(logits, mask, word, stretch)
        # What is better than the best so far is better than the worst that is kept, so it is seen below.
        if together and count == top and none_better(looked_at, values[0]):
            total += np.float64(_mass_of_rest(looked_at, best))
        else:
            for w in range(word, last):
                base = 32 * w
                if (
                    together
                    and count == top
                    and none_better(looked_at[base - 32 * word : base - 32 * word + 32], values[0])
                ):
                    continue
                bits = np.uint64(np.uint32(mask[w]))
                while bits != 0:
                    token = base + bit_count((bits & (~bits + np.uint64(1))) - np.uint64(1))
                    bits &= bits - np.uint64(1)
                    if token >= n:
                        return _failed(MASK_TOO_WIDE, top_ids)
                    value = logits[token]
                    if not value < np.inf:
                        return _failed(NOT_A_NUMBER, top_ids)
                    seen = True
                    if value == -np.inf or (together and count == top and value <= values[0]):
                        continue
                    count = offer(value, token, top, n, values, ids, count)
                    if value > best:
                        total *= exp_not_positive(np.float64(best) - np.float64(value))
                        best = value
                    if not together:
                        total += exp_not_positive(np.float64(value) - np.float64(best))
            if together and best > -np.inf:
                total += _mass_of_best(looked_at, best, weights, sums)
    if count == 0:
        return _failed(ALL_MINUS_INFINITY if seen else EMPTY_MASK, top_ids)
    normaliser = np.float64(best) + math.log(total)
    heapify(values, ids, count, True)
    top_ids[:] = -1
    top_logprobs[:] = -np.inf
    for i in range(count):
        top_ids[i] = ids[0]
        top_logprobs[i] = np.float64(values[0]) - normaliser
        end = count - 1 - i
        values[0] = values[end]
        ids[0] = ids[end]
        sift_down(values, ids, 0, end, True)
    return normaliser
