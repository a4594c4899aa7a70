"""Bits of an int64."""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Any

from constrain.kernels.language import intrinsic, module, types

_true_bit: Any = module("numba.core.cgutils").true_bit
_intrinsic: Any = intrinsic  # called with fewer arguments than it is defined with


@_intrinsic
def lowest_bit(_typing: Any, word: Any) -> Any:
    """The position of the lowest bit that is set in an int64 other than 0."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], _true_bit)

    return types.int64(types.int64), codegen


@_intrinsic
def count_bits(_typing: Any, word: Any) -> Any:
    """How many bits are set in an int64."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), codegen
