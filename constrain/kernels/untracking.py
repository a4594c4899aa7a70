"""Tuples that Python's garbage collector leaves alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from constrain.kernels import library


def _untrack_by_ctypes() -> Callable[[Any], None]:
    """What the library does, where there is none."""
    untrack_one = ctypes.pythonapi.PyObject_GC_UnTrack
    untrack_one.argtypes, untrack_one.restype = [ctypes.py_object], None

    def untrack(value: Any) -> None:
        for each in value if type(value) is list else (value,):
            untrack_one(each)

    return untrack


untrack: Callable[[Any], None] = _untrack_by_ctypes() if library.loaded is None else library.loaded.untrack
"""Have the collector leave a tuple alone that is part of no cycle, or each tuple of a list."""
