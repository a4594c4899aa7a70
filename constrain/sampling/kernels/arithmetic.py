"""Random numbers and the exponential function, the same to the last bit on every platform.

Only operations that IEEE 754 defines are used, so a seed gives the same tokens everywhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from constrain.sampling.kernels.jit import njit_entry

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
    # Times 2**n, which is a float64 with nothing but an exponent.
    return p * np.int64((np.int64(n) + 1023) << 52).view(np.float64)
