"""numba's names that kernels are written with, or stand-ins for them where the machine code is there already.

Importing numba takes longer than all else that a start needs, and more memory.  With a library of machine code
(library.py) nothing of it is used: signatures, types and generators of code are looked at by the compiler only.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from constrain.kernels import library


class StandIn:
    """Anything that a module with kernels does with numba while it is imported, without effect."""

    def __init__(self, *_args: Any, **_options: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_args: Any, **_options: Any) -> Any:
        return self

    def __getitem__(self, _index: Any) -> Any:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False


def module(name: str) -> Any:
    """A module of numba or llvmlite, without types, or a stand-in."""
    return importlib.import_module(name) if library.loaded is None else StandIn()


_numba = module("numba")

boolean: Any = _numba.boolean
float32: Any = _numba.float32
float64: Any = _numba.float64
int32: Any = _numba.int32
int64: Any = _numba.int64
uint8: Any = _numba.uint8
uint64: Any = _numba.uint64
void: Any = _numba.void
types: Any = _numba.types
intrinsic: Any = module("numba.extending").intrinsic
