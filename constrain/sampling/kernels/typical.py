"""Locally typical sampling (Meister et al., 2023): the candidates that are about as surprising as expected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from constrain.sampling.kernels.heaps import sift_down
from constrain.sampling.kernels.jit import njit_inner


@njit_inner("int64(int64, int32[::1], float64[::1], float64)")
def keep_typical(count: Any, kept_ids: Any, kept_weights: Any, mass_wanted: Any) -> Any:
    """Keep the candidates whose surprise is nearest to the expected one, until they have the mass; a count."""
    total = 0.0
    for i in range(count):
        total += kept_weights[i]
    entropy = 0.0
    for i in range(count):
        if kept_weights[i] > 0.0:
            p = kept_weights[i] / total
            entropy -= p * math.log(p)
    # Nearest first: the heap's best is the highest.  The heap moves places, so that weights can be looked up.
    nearness = np.empty(count, dtype=np.float64)
    places = np.empty(count, dtype=np.int32)
    for i in range(count):
        p = kept_weights[i] / total
        nearness[i] = -abs(-math.log(p) - entropy) if p > 0.0 else -np.inf
        places[i] = i
    for root in range(count // 2 - 1, -1, -1):
        sift_down(nearness, places, root, count, True)
    old_ids = kept_ids[:count].copy()
    old_weights = kept_weights[:count].copy()
    end = count
    kept = 0
    mass = 0.0
    while end > 0 and (mass < mass_wanted * total or kept == 0):
        kept_ids[kept] = old_ids[places[0]]
        kept_weights[kept] = old_weights[places[0]]
        mass += kept_weights[kept]
        kept += 1
        end -= 1
        nearness[0] = nearness[end]
        places[0] = places[end]
        sift_down(nearness, places, 0, end, True)
    return kept
