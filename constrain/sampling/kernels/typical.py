"""Locally typical sampling (Meister et al., 2023): the candidates that are about as surprising as expected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from constrain.sampling.kernels.heaps import sift_down
from constrain.sampling.kernels.jit import njit_inner
from constrain.sampling.kernels.nucleus import mass_from

_LONG = 512
"""With fewer candidates a heap of all costs less than finding out which are needed."""


@njit_inner("float64(float64[::1])")
def _sum(numbers: Any) -> Any:
    """The sum of numbers, in lanes."""
    lanes = np.zeros(8, dtype=np.float64)
    whole = len(numbers) // 8 * 8
    for i in range(0, whole, 8):
        for lane in range(8):
            lanes[lane] += numbers[i + lane]
    for i in range(whole, len(numbers)):
        lanes[0] += numbers[i]
    total = 0.0
    for lane in range(8):
        total += lanes[lane]
    return total


@njit_inner("float64(float64[::1], float64[::1], float64)")
def _mass_near(weights: Any, nearness: Any, bound: Any) -> Any:
    """The sum of the weights whose ``nearness`` is at least ``bound``; in lanes, as in :func:`mass_from`."""
    lanes = np.zeros(8, dtype=np.float64)
    whole = len(weights) // 8 * 8
    for i in range(0, whole, 8):
        for lane in range(8):
            lanes[lane] += weights[i + lane] if nearness[i + lane] >= bound else 0.0
    for i in range(whole, len(weights)):
        lanes[0] += weights[i] if nearness[i] >= bound else 0.0
    total = 0.0
    for lane in range(8):
        total += lanes[lane]
    return total


@njit_inner("int64(int64, int32[::1], float64[::1], float64[::1], float64)")
def keep_typical(count: Any, kept_ids: Any, kept_weights: Any, logarithms: Any, mass_wanted: Any) -> Any:
    """Keep the candidates whose surprise is nearest to the expected one, until they have the mass; a count.

    ``logarithms`` float64[count] are those of the weights; they are not kept.
    """
    total = mass_from(kept_weights[:count], 0.0)
    log_total = math.log(total)
    nearness = np.empty(count, dtype=np.float64)
    for i in range(count):
        # 0 times -inf is no number, and such a token adds nothing.
        nearness[i] = kept_weights[i] * (logarithms[i] if kept_weights[i] > 0.0 else 0.0)
    entropy = log_total - _sum(nearness) / total
    # How near -log p is to the entropy, as a number that is at most 0.
    for i in range(count):
        nearness[i] = -abs(log_total - logarithms[i] - entropy) if kept_weights[i] > 0.0 else -np.inf
    wanted = mass_wanted * total
    places = np.empty(count, dtype=np.int32)
    some = count
    for i in range(count):
        places[i] = i
    if count > _LONG:
        # Leave out what is far off, before anything is put in order.
        bound = -0.125
        while bound > -1e3:
            # Sums in another order may differ in the last bits.
            if _mass_near(kept_weights[:count], nearness, bound) >= wanted * (1.0 + 1e-9):
                some = 0
                for i in range(count):
                    places[some] = i
                    some += nearness[i] >= bound
                break
            bound *= 2.0
    # Nearest first: the heap's best is the highest.  The heap moves places, so that weights can be looked up.
    near = np.empty(some, dtype=np.float64)
    for i in range(some):
        near[i] = nearness[places[i]]
    for root in range(some // 2 - 1, -1, -1):
        sift_down(near, places, root, some, True)
    old_ids = kept_ids[:count].copy()
    old_weights = kept_weights[:count].copy()
    end = some
    kept = 0
    mass = 0.0
    while end > 0 and (mass < wanted or kept == 0):
        kept_ids[kept] = old_ids[places[0]]
        kept_weights[kept] = old_weights[places[0]]
        mass += kept_weights[kept]
        kept += 1
        end -= 1
        near[0] = near[end]
        places[0] = places[end]
        sift_down(near, places, 0, end, True)
    return kept
