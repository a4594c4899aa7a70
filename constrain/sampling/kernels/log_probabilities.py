"""Log-probabilities of the best tokens; apart from the rest, since it is compiled only where they are wanted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from constrain.sampling.kernels.best_tokens import collect
from constrain.sampling.kernels.heaps import heapify, sift_down
from constrain.sampling.kernels.jit import njit_entry


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
    for w in range(len(mask)):
        bits = np.int64(mask[w]) & 0xFFFFFFFF
        token = 32 * w
        while bits != 0:
            if bits & 1:
                total += math.exp(np.float64(logits[token]) - best)
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
