"""Arrays by address: a kernel call from Python takes 0.05 us more for each array, and short texts are many.

A *context* is an int64 array with the address and the length of each array a kernel needs; whoever makes it keeps the
arrays alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_intrinsic: Any = intrinsic  # called with fewer arguments than it is defined with


@_intrinsic
def as_pointer(_typing: Any, address: Any) -> Any:
    """The pointer with an address, for ``numba.carray``."""

    def generate(_context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


def context_of(arrays: Sequence[npt.NDArray[Any]], numbers: Sequence[int] = ()) -> npt.NDArray[np.int64]:
    """Address and length of each array, then the numbers."""
    out: list[int] = []
    for array in arrays:
        assert array.flags.c_contiguous
        out += [array.ctypes.data, array.shape[0]]
    return np.array([*out, *numbers], dtype=np.int64)
