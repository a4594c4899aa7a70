"""Frames: kernels and their arguments as numbers in one array.

A call from Python takes 0.05 us more for each array that is passed on, and short texts are many.  So the entry kernel
for short texts is passed one array, its *frame*.  For each kernel that the entry kernel calls, the frame has

* the address of its machine code;
* its arguments in their order: an array is its address and the length of each dimension, an integer or a bool its
  value, a float64 its bits.  Whoever makes a frame keeps the arrays alive.

:func:`words_of` makes these words, and checks the arguments against the kernel's signature.  :func:`caller_of` makes
what calls a kernel with them, within an entry kernel.  The entry kernel writes what changes from text to text, such as
the length of the text, to the place that :func:`place_of` tells.

The calls go through addresses, so numba does not compile the kernels again as parts of the entry kernel.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from constrain.kernels.jit import address_of, call_by_address, signature_of, types_of
from constrain.kernels.language import intrinsic, module, types

_arrays: Any = module("numba.np.arrayobj")  # has no types
_builders: Any = module("numba.core.cgutils")
_ir: Any = module("llvmlite.ir")
_intrinsic: Any = intrinsic  # called with fewer arguments than it is defined with


def words_of(kernel: Any, arguments: Mapping[str, Any]) -> list[int]:
    """The words of a kernel and its arguments, which are given by name.

    An argument of another dtype or number of dimensions than the kernel takes, or one too many, is an AssertionError.
    """
    kinds = signature_of(kernel).arguments
    words = [address_of(kernel)]
    assert set(arguments) == set(kinds), f"{set(arguments) ^ set(kinds)}"
    for name, kind in kinds.items():
        value = arguments[name]
        if kind.dimensions:
            assert value.flags.c_contiguous, name
            assert value.dtype == kind.dtype, f"{name}: {value.dtype}"
            assert value.ndim == kind.dimensions, f"{name}: {value.ndim} dimensions"
            words += [value.ctypes.data, *value.shape]
        elif kind.dtype == "float64":
            words += struct.unpack("<q", struct.pack("<d", value))
        else:
            words.append(int(value))
    return words


def size_of(kernel: Any) -> int:
    """The number of words of a kernel (or of a signature) and its arguments."""
    return 1 + sum(kind.words for kind in signature_of(kernel).arguments.values())


def place_of(kernel: Any, name: str) -> int:
    """Where the words of an argument begin within those of the kernel."""
    place = 1
    for argument, kind in signature_of(kernel).arguments.items():
        if argument == name:
            return place
        place += kind.words
    raise AssertionError(f"the kernel has no argument {name}")


def caller_of(kernel: Any) -> Any:
    """A function for kernels: ``function(frame, place)`` calls the kernel whose words begin at ``frame[place]``.

    ``kernel`` has the signature of that kernel, or is the signature.
    """
    call_by_address(kernel)
    arguments, result = types_of(kernel)

    @_intrinsic
    def call(_typing: Any, frame: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            words = _arrays.make_array(signature.args[0])(context, builder, values[0]).data
            place = values[1]

            def following() -> Any:
                nonlocal place
                word = builder.load(builder.gep(words, [place], inbounds=True))
                place = builder.add(place, place.type(1))
                return word

            convention = context.call_conv
            function = builder.inttoptr(following(), convention.get_function_type(result, arguments).as_pointer())
            passed = []
            for kind in arguments:
                if isinstance(kind, types.Array):
                    passed.append(_array(context, builder, kind, following(), [following() for _ in range(kind.ndim)]))
                elif isinstance(kind, types.Float):
                    passed.append(builder.bitcast(following(), _ir.DoubleType()))
                else:
                    passed.append(context.cast(builder, following(), types.int64, kind))
            status, returned = convention.call_function(builder, function, result, arguments, passed)
            with _builders.if_unlikely(builder, status.is_error):  # such as MemoryError
                convention.return_status_propagate(builder, status)
            return returned

        return result(frame, types.int64), generate

    return call


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
