"""How kernels ask a table for room, and reach its numbers as one array.

Room and what is in use are counted in elements of the table: numbers, sets of bits, or records (schemas.py).
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Any

import numpy as np

from constrain.engine.storage.header import CTX, HEADER, NEED_SIZE, NEED_SLOT
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.records import view_at
from constrain.engine.storage.schemas import CONTEXT_SIZE, NUMBERS_IN
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int32, int64, intrinsic, module, types, uint8

_intrinsic: Any = intrinsic  # called with fewer arguments than it is defined with
_arrays: Any = module("numba.np.arrayobj")
_ir: Any = module("llvmlite.ir")
_config: Any = module("numba").config
_cgutils: Any = module("numba.core.cgutils")

_CHECKED = bool(_config.BOUNDSCHECK)


def _make_view(context: Any, builder: Any, kind: Any, address: Any, length: Any) -> Any:
    """Generate the code for an array of type ``kind`` over memory that is there already."""
    array = _arrays.make_array(kind)(context, builder)
    width = length.type(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    _arrays.populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=[length],
        strides=[width],
        itemsize=width,
        meminfo=None,
    )
    return array._getvalue()


def _numbers_in(builder: Any, slot: Any) -> Any:
    """Generate the code for how many numbers an element of a table has."""
    constant = _ir.Constant(_ir.ArrayType(slot.type, len(NUMBERS_IN)), NUMBERS_IN)
    table = _cgutils.global_constant(builder, "numbers in elements", constant)
    return builder.load(builder.gep(table, [slot.type(0), slot]))


def _view_of(dtype: Any, *, has_records: bool) -> Any:
    """A function of ``(ctx, slot)``: the view of a table as numbers of type ``dtype``.

    ``has_records`` says that the tables are those of a compiled grammar, whose elements may be several numbers.

    It is made in place instead of with ``carray``: kernels are compiled without reference counts, and
    numba lets no function return an array then.
    """

    @_intrinsic
    def view(_typing: Any, ctx: Any, slot: Any) -> Any:
        result = types.Array(dtype, 1, "C")

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            header = _arrays.make_array(signature.args[0])(context, builder, args[0])
            place = builder.add(builder.mul(args[1], args[1].type(3)), args[1].type(HEADER))
            address = builder.load(builder.gep(header.data, [place]))
            length = builder.load(builder.gep(header.data, [builder.add(place, args[1].type(1))]))
            if _CHECKED and has_records:
                length = builder.mul(length, _numbers_in(builder, args[1]))
            return _make_view(context, builder, signature.return_type, address, length)

        return result(ctx, types.int64), codegen

    return view


i32, i64, u8 = (_view_of(dtype, has_records=True) for dtype in (int32, int64, uint8))
memory_i32, memory_u8 = (_view_of(dtype, has_records=False) for dtype in (int32, uint8))
"""The same for the memory of a companion (parser/companions.py), which has tables of its own, of numbers."""


_numbers = view_at("tables of int32", np.int32, HEADER)


@_intrinsic
def context_at(_typing: Any, address: Any) -> Any:
    """The ``ctx`` at an address, for kernels that work on several compiled grammars."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _make_view(context, builder, signature.return_type, args[0], args[0].type(CONTEXT_SIZE))

    return CTX(types.int64), codegen


@njit_inner(int64(CTX, int64))
def used(ctx, slot):
    """How many elements of a table are in use."""
    return ctx[HEADER + 3 * slot + 2]


@njit_inner(types.void(CTX, int64, int64))
def set_used(ctx, slot, n):
    """Set how many elements of a table are in use."""
    ctx[HEADER + 3 * slot + 2] = n


@njit_inner(types.boolean(CTX, int64, int64))
def room(ctx, slot, n):
    """Whether ``n`` more elements fit into a table; if not, note that it has to grow."""
    wanted = ctx[HEADER + 3 * slot + 2] + n
    if wanted <= ctx[HEADER + 3 * slot + 1]:
        return True
    ctx[NEED_SLOT] = slot
    ctx[NEED_SIZE] = wanted
    return False


@njit_inner(int64(CTX, int64, int64))
def take(ctx, slot, n):
    """Have ``n`` more elements of a table in use, for the caller to write; which is the first, or FAIL."""
    if not room(ctx, slot, n):
        return int64(FAIL)
    first = used(ctx, slot)
    set_used(ctx, slot, first + n)
    return first


@njit_inner(types.boolean(CTX, int64, int64))
def push(ctx, slot, number):
    """Append a number to a table of int32; False if it has to grow first."""
    end = take(ctx, slot, int64(1))
    if end < 0:
        return False
    _numbers(ctx, slot)[end] = number
    return True


@njit_inner(types.boolean(CTX, int64, int64, int64))
def push_pair(ctx, slot, first, second):
    """Append two numbers to a table of int32; False if it has to grow first."""
    end = take(ctx, slot, int64(2))
    if end < 0:
        return False
    _numbers(ctx, slot)[end] = first
    _numbers(ctx, slot)[end + 1] = second
    return True


@njit_inner(types.boolean(CTX, int64, int64))
def bucket_room(ctx, slot, count):
    """Whether a bucket table of ``count`` entries stays at most half full with one more."""
    if 2 * (count + 1) <= ctx[HEADER + 3 * slot + 1]:
        return True
    ctx[NEED_SLOT] = slot
    ctx[NEED_SIZE] = 4 * (count + 1)
    return False
