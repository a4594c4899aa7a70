"""Random numbers and the exponential function, the same to the last bit on every platform.

Only operations that IEEE 754 defines are used, so a seed gives the same tokens everywhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from constrain.sampling.kernels.jit import njit_entry, njit_inner

_LOG2_E = 1.4426950408889634
# ln 2 in two parts; the upper has trailing zeros, so that a product with a small integer is exact.
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
_INVERSE_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(14))
_SMALLEST = -708.0
_ROUNDER = 6755399441055744.0  # 1.5 * 2**52: to add it rounds, and leaves the integer in the lowest bits

_SMALLEST_SINGLE = np.float32(-80.0)  # its exponential is still a normal number: others take long to add
_LOG2_E_SINGLE = np.float32(_LOG2_E)
_LN2_HIGH_SINGLE = np.float32(0.693359375)
_LN2_LOW_SINGLE = np.float32(-2.12194440e-4)
_ROUNDER_SINGLE = np.float32(12582912.0)  # 1.5 * 2**23
# 1, 1, and what makes the largest error of the polynomial, 1.05e-7, least for |r| <= ln(2)/2.
_TERMS_SINGLE = tuple(map(np.float32, (1.0, 1.0, 0.4999923029, 0.1666711538, 0.04189033324, 0.008312502233)))

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_30 = np.uint64(30)
_SHIFT_27 = np.uint64(27)
_SHIFT_31 = np.uint64(31)
_SHIFT_11 = np.uint64(11)


@njit_entry("float64(uint64[::1])")
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


@njit_entry("float64(float64)")
def exp_not_positive(x: Any) -> Any:
    """``exp(x)`` for ``x <= 0``, to about one unit in the last place; 0 below -708.

    The C library's exp differs between platforms in its last bit, and with it could a drawn token.  There are neither
    branches nor conversions to integers, so that loops over it become vector instructions.
    """
    rounded = max(x, _SMALLEST) * _LOG2_E + _ROUNDER
    n = rounded - _ROUNDER
    r = (max(x, _SMALLEST) - n * _LN2_HIGH) - n * _LN2_LOW
    # The Taylor series; |r| <= ln(2)/2, so the first term left out is below 1e-17.
    p = _INVERSE_FACTORIALS[13]
    for k in range(12, -1, -1):
        p = _INVERSE_FACTORIALS[k] + p * r
    # Times 2**n: what is added to the exponent of p.
    bits = np.float64(p).view(np.int64) + (np.float64(rounded).view(np.int64) << 52)
    return np.int64(bits).view(np.float64) if x >= _SMALLEST else 0.0


@njit_inner("float32(float32)", fastmath={"contract"})
def exp_single(x: Any) -> Any:
    """``exp(x)`` for ``x <= 0``, with an error of at most 3e-7 of it, and 1 for 0; below -80 it is that of -80.

    Not the same to the last bit everywhere: a product and a sum may be rounded as one.
    """
    clipped = max(x, _SMALLEST_SINGLE)
    rounded = np.float32(clipped * _LOG2_E_SINGLE + _ROUNDER_SINGLE)
    n = np.float32(rounded - _ROUNDER_SINGLE)
    r = np.float32(np.float32(clipped - n * _LN2_HIGH_SINGLE) - n * _LN2_LOW_SINGLE)
    p = _TERMS_SINGLE[5]
    for k in range(4, -1, -1):
        p = np.float32(_TERMS_SINGLE[k] + p * r)
    bits = np.int32(np.float32(p).view(np.int32) + np.int32(np.float32(rounded).view(np.int32) << np.int32(23)))
    return bits.view(np.float32)
