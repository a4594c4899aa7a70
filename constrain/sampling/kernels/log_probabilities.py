"""Log-probabilities of the best tokens; apart from the rest, since it is compiled only where they are wanted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from constrain.sampling.kernels.best_tokens import collect
from constrain.sampling.kernels.heaps import heapify, sift_down
from constrain.sampling.kernels.jit import njit_entry, njit_inner

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_SMALLEST = -700.0
_ROUNDER = 6755399441055744.0  # 1.5 * 2**52: to add it rounds, and leaves the integer in the lowest bits
_TERMS = tuple(1.0 / math.factorial(k) for k in range(11))


@njit_inner("float64(float64)")
def _exp_not_positive(x: Any) -> Any:
    """``exp(x)`` for ``x <= 0``, to twelve digits and without branches; below -700 it is that of -700."""
    x = max(x, _SMALLEST)
    rounded = x * _LOG2_E + _ROUNDER
    n = rounded - _ROUNDER
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = _TERMS[10]
    p = _TERMS[9] + p * r
    p = _TERMS[8] + p * r
    p = _TERMS[7] + p * r
    p = _TERMS[6] + p * r
    p = _TERMS[5] + p * r
    p = _TERMS[4] + p * r
    p = _TERMS[3] + p * r
    p = _TERMS[2] + p * r
    p = 1.0 + p * r
    p = 1.0 + p * r
    # Times 2**n: what is added to the exponent of p.
    bits = np.float64(p).view(np.int64) + (np.float64(rounded).view(np.int64) << 52)
    return np.int64(bits).view(np.float64)


@njit_entry("float64(float32[::1], int32[::1], int64, float32[::1], int32[::1], int32[::1], float64[::1])")
def log_probabilities(logits: Any, mask: Any, top: Any, values: Any, ids: Any, top_ids: Any, top_logprobs: Any) -> Any:
    """``log(sum(exp(x)))`` over the allowed tokens, and the ``top`` most likely of them.

    Parameters
    ----------
    logits, mask :
        As for :func:`~.rows.candidates`; at least one allowed token has a finite logit.
    top : int64
        At least 1.
    values, ids : float32[top], int32[top]
        Scratch.
    top_ids, top_logprobs : int32[top], float64[top]
        Result, most likely first; -1 where there are fewer.
    """
    nothing = ids[:0]
    count = collect(logits, mask, min(top, len(logits)), values, ids, nothing, values[:0])
    heapify(values, ids, count, True)
    best = np.float64(values[0])
    total = 0.0
    weights = np.empty(32, dtype=np.float64)
    for w in range(len(mask)):
        bits = np.int64(mask[w]) & 0xFFFFFFFF
        token = 32 * w
        if bits == 0xFFFFFFFF:
            # No branches: the compiler makes vectors of this loop.
            for i in range(32):
                weights[i] = _exp_not_positive(np.float64(logits[token + i]) - best)
            for i in range(16):
                weights[i] += weights[i + 16]
            for i in range(16):
                total += weights[i]
            continue
        while bits != 0:
            if bits & 1:
                total += _exp_not_positive(np.float64(logits[token]) - best)
            bits >>= 1
            token += 1
    normaliser = best + math.log(total)
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
