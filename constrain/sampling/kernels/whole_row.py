"""A token drawn from all that are allowed, where nothing is cut off: two passes, and no list of candidates."""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.sampling.kernels.arithmetic import exp_not_positive, uniform
from constrain.sampling.kernels.jit import njit_inner
from constrain.sampling.kernels.layout import ALL_MINUS_INFINITY, EMPTY_MASK, MASK_TOO_WIDE, NOT_A_NUMBER
from constrain.sampling.kernels.stretches import (
    STRETCH,
    WORDS,
    allowed_in,
    bit_count,
    highest,
    sum_of,
    take_allowed,
)

_FEW = 24
"""With so few allowed tokens in a stretch, each is looked at by itself."""

_NOTHING = np.float32(-np.inf)
_ONE = np.uint64(1)


@njit_inner("float64(float32, float64, float64)")
def _weight(value: Any, best: Any, temperature: Any) -> Any:
    return exp_not_positive((np.float64(value) - best) / temperature)


@njit_inner("int64(float32[::1], int32[::1], int64, float64, float64, float64)")
def _pick(logits: Any, mask: Any, part: Any, best: Any, temperature: Any, target: Any) -> Any:
    """The token of a stretch, which has one with a weight, at which the sum of the weights exceeds ``target``; else the
    last one with a weight."""
    mass = 0.0
    chosen = np.int64(-1)
    for w in range(part * WORDS, min((part + 1) * WORDS, len(mask))):
        rest = np.uint64(np.uint32(mask[w]))
        while rest != 0:
            token = 32 * w + bit_count((rest & (~rest + _ONE)) - _ONE)
            rest &= rest - _ONE
            weight = _weight(logits[token], best, temperature)
            if weight > 0.0:
                chosen = token
                mass += weight
                if target < mass:
                    return chosen
    return chosen


@njit_inner("int64(float32[::1], int32[::1], float64, int32[::1], float32[::1], uint64[::1])")
def draw_of_all(logits: Any, mask: Any, temperature: Any, touched_ids: Any, touched_values: Any, state: Any) -> Any:
    """One of the allowed tokens, in proportion to ``exp(logit / temperature)``; or a negative status.

    The arguments are those of :func:`~.rows.candidates`.  No random number is taken where there is one candidate.
    """
    n = len(logits)
    words = len(mask)
    stretch = np.empty(STRETCH, dtype=np.float32)
    weights = np.empty(STRETCH, dtype=np.float64)
    masses = np.zeros(-(-words // WORDS), dtype=np.float64)
    count = 0
    seen = False
    only = np.int64(-1)  # the last candidate that was looked at by itself
    best = _NOTHING
    for part in range(len(masses)):
        word = part * WORDS
        last = min(word + WORDS, words)
        allowed = allowed_in(mask, word, last)
        if allowed == 0:
            continue
        seen = True
        if allowed > _FEW and word + WORDS <= words and 32 * last <= n:
            take_allowed(logits, mask, word, stretch)
            peak = highest(stretch, np.uint64(0))
            if not peak < np.inf:
                return NOT_A_NUMBER
            best = max(best, peak)
            finite = 0
            for i in range(STRETCH):
                finite += stretch[i] > _NOTHING
            if finite == 1:
                for i in range(STRETCH):
                    if stretch[i] > _NOTHING:
                        only = 32 * word + i
            count += finite
            continue
        for w in range(word, last):
            rest = np.uint64(np.uint32(mask[w]))
            while rest != 0:
                token = 32 * w + bit_count((rest & (~rest + _ONE)) - _ONE)
                rest &= rest - _ONE
                if token >= n:
                    return MASK_TOO_WIDE
                if not logits[token] < np.inf:
                    return NOT_A_NUMBER
                if logits[token] > _NOTHING:
                    best = max(best, logits[token])
                    only = token
                    count += 1
    for i in range(len(touched_ids)):
        seen = True
        if not touched_values[i] < np.inf:
            return NOT_A_NUMBER
        if touched_values[i] > _NOTHING:
            best = max(best, touched_values[i])
            only = touched_ids[i]
            count += 1
    if count == 0:
        return ALL_MINUS_INFINITY if seen else EMPTY_MASK
    if count == 1:
        return only
    highest_logit = np.float64(best)

    total = 0.0
    for part in range(len(masses)):
        word = part * WORDS
        last = min(word + WORDS, words)
        allowed = allowed_in(mask, word, last)
        if allowed > _FEW and word + WORDS <= words and 32 * last <= n:
            take_allowed(logits, mask, word, stretch)
            for i in range(STRETCH):
                weights[i] = _weight(stretch[i], highest_logit, temperature)
            for i in range(STRETCH // 2):
                weights[i] += weights[i + STRETCH // 2]
            masses[part] = sum_of(weights)
        elif allowed > 0:
            for w in range(word, last):
                rest = np.uint64(np.uint32(mask[w]))
                while rest != 0:
                    token = 32 * w + bit_count((rest & (~rest + _ONE)) - _ONE)
                    rest &= rest - _ONE
                    masses[part] += _weight(logits[token], highest_logit, temperature)
        total += masses[part]
    for i in range(len(touched_ids)):
        total += _weight(touched_values[i], highest_logit, temperature)

    target = uniform(state) * total
    mass = 0.0
    part_with_mass = 0
    for part in range(len(masses)):
        if masses[part] > 0.0:
            if target < mass + masses[part]:
                return _pick(logits, mask, part, highest_logit, temperature, target - mass)
            mass += masses[part]
            part_with_mass = part
    chosen = np.int64(-1)
    for i in range(len(touched_ids)):
        weight = _weight(touched_values[i], highest_logit, temperature)
        if weight > 0.0:
            chosen = touched_ids[i]
            mass += weight
            if target < mass:
                break
    # Rounding may leave nothing behind the last one.
    return chosen if chosen >= 0 else _pick(logits, mask, part_with_mass, highest_logit, temperature, np.inf)
