"""Working memory that each thread keeps.

Fresh memory costs more than the work that is done in it: the system hands it out page by page, fills each page with
zeros, and lets threads wait for each other meanwhile.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

_KEPT = 1 << 24
"""Bytes of one array; larger ones are not kept."""

_local = threading.local()


def scratch(name: str, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array of ``size`` items with any content, which belongs to the caller until this thread asks for the same name
    again."""
    array: npt.NDArray[Any] | None = _local.__dict__.get(name)
    if array is None or len(array) < size:
        # Some room, lest every longer text gets a new one.
        array = np.empty(size + size // 4 + 1024, dtype=dtype)
        if array.nbytes <= _KEPT:
            _local.__dict__[name] = array
    return array[:size]
