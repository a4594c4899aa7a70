"""Frames: the arguments of kernels as numbers in one array.

A call from Python takes 0.05 us more for each array that is passed on, and short texts are many.  So the entry kernel
for short texts is passed one array, its *frame*, in which the arguments of the kernels that it calls stand one after
the other:

* an array is its address and the length of each dimension; whoever makes a frame keeps the arrays alive;
* a number is one word: an integer or a bool by its value, a float64 by its bits.

:func:`words_of` writes arguments that way, and checks them against the kernel's signature.  :func:`call` reads them
back, in a kernel, and calls the kernel with them.  What changes from call to call, the entry kernel writes to the
place that :func:`place_of` tells.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import importlib
import struct
from collections.abc import Mapping
from typing import Any

from numba import types
from numba.extending import intrinsic

_arrays: Any = importlib.import_module("numba.np.arrayobj")  # has no types
_ir: Any = importlib.import_module("llvmlite.ir")
_numpy: Any = importlib.import_module("numba.np.numpy_support")
_intrinsic: Any = intrinsic  # called with fewer arguments than it is defined with


def words_of(kernel: Any, arguments: Mapping[str, Any]) -> list[int]:
    """The words of a kernel's arguments, given by name.

    An argument of another dtype or number of dimensions than the kernel takes, or one too many, is an AssertionError.
    """
    words: list[int] = []
    signature = _signature(kernel)
    assert set(arguments) == set(signature), f"{set(arguments) ^ set(signature)}"
    for name, kind in signature.items():
        value = arguments[name]
        if isinstance(kind, types.Array):
            assert value.flags.c_contiguous, name
            assert value.dtype == _numpy.as_dtype(kind.dtype), f"{name}: {value.dtype}"
            assert value.ndim == kind.ndim, f"{name}: {value.ndim} dimensions"
            words += [value.ctypes.data, *value.shape]
        elif isinstance(kind, types.Float):
            words += struct.unpack("<q", struct.pack("<d", value))
        else:
            words.append(int(value))
    return words


def size_of(kernel: Any) -> int:
    """The number of words of a kernel's arguments."""
    return sum(map(_width, _signature(kernel).values()))


def place_of(kernel: Any, name: str) -> int:
    """Where the words of an argument begin within those of the kernel."""
    place = 0
    for argument, kind in _signature(kernel).items():
        if argument == name:
            return place
        place += _width(kind)
    raise AssertionError(f"the kernel has no argument {name}")


@_intrinsic
def call(typing: Any, kernel: Any, frame: Any, place: Any) -> Any:
    """The result of ``kernel`` with the arguments whose words begin at ``frame[place]``; for kernels only.

    kernel : with one signature;  frame : int64[];  place : int64
    """
    function = kernel.dispatcher
    (arguments,) = function.overloads
    kernel.get_call_type(typing, arguments, {})  # makes the compiled kernel known to the one that is being compiled
    result = function.overloads[arguments].signature.return_type

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        words = _arrays.make_array(signature.args[1])(context, builder, values[1]).data
        place = values[2]
        passed = []

        def following() -> Any:
            nonlocal place
            word = builder.load(builder.gep(words, [place], inbounds=True))
            place = builder.add(place, place.type(1))
            return word

        for kind in arguments:
            if isinstance(kind, types.Array):
                passed.append(_array(context, builder, kind, following(), [following() for _ in range(kind.ndim)]))
            elif isinstance(kind, types.Float):
                passed.append(builder.bitcast(following(), _ir.DoubleType()))
            else:
                passed.append(context.cast(builder, following(), types.int64, kind))
        implementation = context.get_function(kernel, result(*arguments))
        context.add_linking_libs(getattr(implementation, "libs", ()))
        return implementation(builder, passed)

    return result(kernel, frame, types.int64), generate


def _array(context: Any, builder: Any, kind: Any, address: Any, shape: list[Any]) -> Any:
    """An array over memory that is there already."""
    array = _arrays.make_array(kind)(context, builder)
    width = address.type(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [width]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    _arrays.populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=shape,
        strides=strides,
        itemsize=width,
        meminfo=None,
    )
    return array._getvalue()


def _signature(kernel: Any) -> dict[str, Any]:
    """The types of a kernel's arguments by name."""
    (arguments,) = kernel.overloads
    names = kernel.py_func.__code__.co_varnames
    return dict(zip(names[: len(arguments)], arguments, strict=True))


def _width(kind: Any) -> int:
    return 1 + kind.ndim if isinstance(kind, types.Array) else 1
