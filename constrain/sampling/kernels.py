"""The jitted half of the sampler: from a row of logits and a mask to candidates, and to one token.

Words of the mask that allow nothing are passed over, so where few tokens are allowed a call costs a
scan of the words (a 32nd of the vocabulary) and then work per allowed token.  Nothing is sorted as
a whole: top-k keeps a heap of ``k`` candidates, top-p takes candidates off a heap until it has enough.

Arithmetic is restricted to operations that IEEE 754 defines to the last bit, and the random numbers
are made here, so a seed gives the same tokens on every platform.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

EMPTY_MASK = -1
"""Status: the mask allows no token."""
NOT_A_NUMBER = -2
"""Status: the logit of an allowed token is NaN or +inf."""
ALL_MINUS_INFINITY = -3
"""Status: every allowed token has the logit -inf."""
MASK_TOO_WIDE = -4
"""Status: the mask allows a token for which there is no logit."""

_LOG2_E = 1.4426950408889634
# ln 2 in two parts; the upper has trailing zeros, so that a product with a small integer is exact.
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
_INVERSE_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(14))

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_30 = np.uint64(30)
_SHIFT_27 = np.uint64(27)
_SHIFT_31 = np.uint64(31)
_SHIFT_11 = np.uint64(11)


@njit("float64(uint64[::1])", cache=True, nogil=True)
def uniform(state: Any) -> Any:
    """The next number of a SplitMix64 stream, as a float64 in [0, 1) with 53 random bits.

    ``state`` is uint64[1]; it is advanced in place.  Any value is a valid seed.
    """
    state[0] += _GAMMA
    z = state[0]
    z = (z ^ (z >> _SHIFT_30)) * _MIX_1
    z = (z ^ (z >> _SHIFT_27)) * _MIX_2
    z = z ^ (z >> _SHIFT_31)
    return np.float64(z >> _SHIFT_11) * (1.0 / 9007199254740992.0)


@njit("float64(float64)", cache=True, nogil=True)
def exp_not_positive(x: Any) -> Any:
    """``exp(x)`` for ``x <= 0``, to about one unit in the last place; 0 below -708.

    The C library's exp differs between platforms in its last bit, and with it could a drawn token.
    """
    if x < -708.0:
        return 0.0
    n = math.floor(x * _LOG2_E + 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    # The Taylor series; |r| <= ln(2)/2, so the first term left out is below 1e-17.
    p = _INVERSE_FACTORIALS[13]
    for k in range(12, -1, -1):
        p = _INVERSE_FACTORIALS[k] + p * r
    return math.ldexp(p, int(n))


@njit("void(float32[::1], int32[::1], int64, int64, boolean)", cache=True, nogil=True)
def _sift_down(values: Any, ids: Any, root: Any, end: Any, best_first: Any) -> None:
    """Restore the heap below ``root`` in ``values[:end]``/``ids[:end]``.

    The better of two candidates is the one with the higher value, then with the lower id.
    ``best_first`` says whether the root of the heap is the best candidate or the worst.
    """
    value = values[root]
    token = ids[root]
    while True:
        child = 2 * root + 1
        if child >= end:
            break
        other = child + 1
        if other < end:
            better = values[other] > values[child] or (values[other] == values[child] and ids[other] < ids[child])
            if better == best_first:
                child = other
        better = values[child] > value or (values[child] == value and ids[child] < token)
        if better != best_first:
            break
        values[root] = values[child]
        ids[root] = ids[child]
        root = child
    values[root] = value
    ids[root] = token


@njit("int64(float32[::1], int32[::1], int64, float32[::1], int32[::1])", cache=True, nogil=True)
def _collect(logits: Any, mask: Any, k: Any, values: Any, ids: Any) -> Any:
    """The ``k`` best allowed tokens, in no order; a count, or a negative status.

    Same arguments as :func:`candidates`; ``k`` is at least 1 and at most ``len(values)``.
    """
    n = len(logits)
    count = 0
    seen = False
    for w in range(len(mask)):
        word = mask[w]
        if word == 0:
            continue
        base = 32 * w
        if count == k and base + 32 <= n:
            # A whole word at once, in vector instructions: mostly nothing in it is good enough, allowed or not.
            # "not <=" rather than ">" so that a NaN is looked at below.
            bar = values[0]
            worth_it = 0
            for j in range(base, base + 32):
                worth_it |= not (logits[j] <= bar)
            if worth_it == 0:
                continue
        bits = np.int64(word) & 0xFFFFFFFF
        token = base
        while bits != 0:
            if bits & 1:
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
                            for root in range(count // 2 - 1, -1, -1):
                                _sift_down(values, ids, root, count, False)
                    elif value > values[0]:
                        # Ids only grow in this scan: on equal values the one already kept is better.
                        values[0] = value
                        ids[0] = token
                        _sift_down(values, ids, 0, count, False)
            bits >>= 1
            token += 1
    if count == 0:
        return ALL_MINUS_INFINITY if seen else EMPTY_MASK
    return count


@njit(
    "int64(float32[::1], int32[::1], float64, int64, float64, float32[::1], int32[::1], int32[::1], float64[::1])",
    cache=True,
    nogil=True,
)
def candidates(
    logits: Any,
    mask: Any,
    temperature: Any,
    top_k: Any,
    top_p: Any,
    values: Any,
    ids: Any,
    kept_ids: Any,
    kept_weights: Any,
) -> Any:
    """The tokens that may be drawn and how likely each is, relative to the others.

    Parameters
    ----------
    logits : float32[n]
        Read only.
    mask : int32[words]
        Bit ``i % 32`` of word ``i // 32`` allows token ``i``.  Tokens past its end are not allowed.
    temperature, top_k, top_p : float64, int64, float64
        As :class:`~constrain.sampling.sampler.Sampler` has them, checked.
    values, ids : float32[m], int32[m]
        Scratch.  ``m`` is ``top_k`` if that is set, 1 at temperature 0, else at least ``n``.
    kept_ids, kept_weights : int32[m], float64[m]
        Result: token ids and their weights (positive or 0, not normalised).  Best first, equal logits by id, if
        top-k or top-p is set; by id otherwise.

    Returns
    -------
    int64
        Number of candidates, or one of the negative statuses above.
    """
    if temperature == 0.0:
        count = _collect(logits, mask, 1, values, ids)
        if count > 0:
            kept_ids[0] = ids[0]
            kept_weights[0] = 1.0
        return count
    ordered = top_k > 0 or top_p < 1.0
    count = _collect(logits, mask, top_k if 0 < top_k < len(logits) else len(logits), values, ids)
    if count <= 0:
        return count

    highest = values[0]
    for i in range(1, count):
        if values[i] > highest:
            highest = values[i]
    best = np.float64(highest)
    total = 0.0
    for i in range(count):
        weight = exp_not_positive((np.float64(values[i]) - best) / temperature)
        total += weight
        if not ordered:
            kept_ids[i] = ids[i]
            kept_weights[i] = weight
    if not ordered:
        return count

    for root in range(count // 2 - 1, -1, -1):
        _sift_down(values, ids, root, count, True)
    end = count
    kept = 0
    mass = 0.0
    while end > 0 and (mass < top_p * total or kept == 0):
        kept_ids[kept] = ids[0]
        kept_weights[kept] = exp_not_positive((np.float64(values[0]) - best) / temperature)
        mass += kept_weights[kept]
        kept += 1
        end -= 1
        values[0] = values[end]
        ids[0] = ids[end]
        _sift_down(values, ids, 0, end, True)
    return kept


@njit("int64(int64, int32[::1], float64[::1], uint64[::1])", cache=True, nogil=True)
def draw(count: Any, kept_ids: Any, kept_weights: Any, state: Any) -> Any:
    """One of the first ``count`` ids, each as likely as its weight (the result of :func:`candidates`)."""
    if count == 1:
        return kept_ids[0]
    total = 0.0
    for i in range(count):
        total += kept_weights[i]
    target = uniform(state) * total
    mass = 0.0
    chosen = 0
    for i in range(count):
        if kept_weights[i] > 0.0:
            chosen = i
            mass += kept_weights[i]
            if target < mass:
                break
    return kept_ids[chosen]
