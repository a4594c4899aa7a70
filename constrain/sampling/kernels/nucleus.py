"""What makes top-p cheap on a whole vocabulary: leave out the tail before anything is put in order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from constrain.sampling.kernels.arithmetic import exp_not_positive
from constrain.sampling.kernels.jit import njit_inner

_LANES = 8


@njit_inner("float64(float64[::1], float64)")
def mass_from(weights: Any, bound: Any) -> Any:
    """The sum of the weights that are at least ``bound``; in lanes, which do not wait for each other."""
    lanes = np.zeros(_LANES, dtype=np.float64)
    whole = len(weights) // _LANES * _LANES
    for i in range(0, whole, _LANES):
        for lane in range(_LANES):
            weight = weights[i + lane]
            lanes[lane] += weight if weight >= bound else 0.0
    for i in range(whole, len(weights)):
        lanes[0] += weights[i] if weights[i] >= bound else 0.0
    total = 0.0
    for lane in range(_LANES):
        total += lanes[lane]
    return total


@njit_inner("float64(float32[::1], float64, float64, float64[::1])")
def weigh(values: Any, best: Any, temperature: Any, weights: Any) -> Any:
    """Write ``exp((value - best) / temperature)`` into ``weights``, float64[len(values)]; returns the sum.

    Two loops, since the first one is vectorised only without a sum in it.
    """
    for i in range(len(values)):
        weights[i] = exp_not_positive((np.float64(values[i]) - best) / temperature)
    return mass_from(weights, 0.0)


@njit_inner("int64(float32[::1], int32[::1], float64[::1], float64)")
def leave_out_tail(values: Any, ids: Any, weights: Any, wanted: Any) -> Any:
    """Move the candidates to the front that have the mass ``wanted`` for sure; their number.

    All of them have at least the weight of any that is left out.
    """
    bound = math.exp(-4.0)
    while bound > 1e-200:
        # Sums in another order may differ in the last bits.
        if mass_from(weights, bound) >= wanted * (1.0 + 1e-9):
            kept = 0
            for i in range(len(values)):
                values[kept] = values[i]
                ids[kept] = ids[i]
                kept += weights[i] >= bound
            return kept
        bound *= bound
    return len(values)
