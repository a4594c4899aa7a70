"""numba's names that kernels are written with, or stand-ins for them where the machine code is there already.

Importing numba takes longer than all else that a start needs, and more memory.  With a library of machine code
(library.py) nothing of it is used: signatures, types and generators of code are looked at by the compiler only.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

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


class Number(StandIn):
    """A type of numbers, which makes such numbers also where the Python source of a kernel runs."""

    def __init__(self, name: str) -> None:
        self._type = getattr(np, name)

    def __call__(self, *arguments: Any) -> Any:
        is_value = len(arguments) == 1 and not isinstance(arguments[0], StandIn)
        return self._type(arguments[0]) if is_value else self


def module(name: str) -> Any:
    """A module of numba or llvmlite, without types, or a stand-in."""
    return importlib.import_module(name) if library.loaded is None else StandIn()


def _number(name: str) -> Any:
    return getattr(_numba, name) if library.loaded is None else Number(name)


_numba = module("numba")

float32, float64 = _number("float32"), _number("float64")
int32, int64, uint8, uint64 = _number("int32"), _number("int64"), _number("uint8"), _number("uint64")
boolean: Any = _numba.boolean
void: Any = _numba.void
types: Any = _numba.types
intrinsic: Any = module("numba.extending").intrinsic
