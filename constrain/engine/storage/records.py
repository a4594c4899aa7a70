"""Views of tables by the names of their fields, for kernels: ``lexer_states(ctx)[state].accept``.

A table holds numbers (int32, int64 or uint8), or records of a few such numbers.  :func:`view_of` makes
the functions through which kernels read it:

* Reading gives an int64, whatever the number is kept as (uint8 without a sign).  Writing cuts an int64 to that size.
  So kernels hold neither strides nor widths, and hardly a conversion.
* An index is not looked at: it is not counted from the end if it is negative, as numpy does.  That is why loops over a
  view are as fast as loops over an array with an unsigned index.
* A view is an address.  It has to be taken anew behind a call that may have let the table grow.

With ``NUMBA_BOUNDSCHECK=1`` a view knows the size of its table too, and an index beyond it is an IndexError.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import int64, types
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)

_config: Any = importlib.import_module("numba").config
_arrays: Any = importlib.import_module("numba.np.arrayobj")
_ir: Any = importlib.import_module("llvmlite.ir")
_templates: Any = importlib.import_module("numba.core.typing.templates")
_intrinsic: Any = intrinsic  # called with fewer arguments than it is defined with

_CHECKED = bool(_config.BOUNDSCHECK)
_BYTE_ADDRESS = _ir.IntType(8).as_pointer()
_I64 = _ir.IntType(64)


class _View(types.Type):  # type: ignore[misc, unused-ignore]
    """A table in a kernel.

    Parameters
    ----------
    name : str
        Names the type: equal names are equal types.
    dtype : numpy.dtype
        Of one element: a number, or numbers with names.
    """

    mutable = True

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(name=f"view of {name}: {dtype.descr}")
        self.size = dtype.itemsize
        if dtype.names is None:
            self.number = _number(dtype)
        else:
            self.record = _Record(name, dtype)

    @property
    def element(self) -> Any:
        return int64 if hasattr(self, "number") else self.record


class _Record(types.Type):  # type: ignore[misc, unused-ignore]
    """One record of a table in a kernel: its address."""

    mutable = True

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(name=f"record of {name}: {dtype.descr}")
        self.places = {field: (dtype.fields[field][1], *_number(dtype.fields[field][0])) for field in dtype.names}


def _number(dtype: Any) -> tuple[int, bool]:
    """The bits of a number, and whether it has a sign."""
    return 8 * dtype.itemsize, dtype.kind == "i"


@register_model(_View)
class _ViewModel(models.StructModel):  # type: ignore[misc, unused-ignore]
    def __init__(self, manager: Any, kind: Any) -> None:
        members = [("address", types.voidptr), *([("length", int64)] if _CHECKED else [])]
        super().__init__(manager, kind, members)


@register_model(_Record)
class _RecordModel(models.OpaqueModel):  # type: ignore[misc, unused-ignore]
    pass


def _load(builder: Any, address: Any, bits: int, signed: bool) -> Any:
    value = builder.load(builder.bitcast(address, _ir.IntType(bits).as_pointer()), align=bits // 8)
    if bits == 64:
        return value
    return builder.sext(value, _I64) if signed else builder.zext(value, _I64)


def _store(builder: Any, address: Any, bits: int, value: Any) -> None:
    kind = _ir.IntType(bits)
    value = value if bits == 64 else builder.trunc(value, kind)
    builder.store(value, builder.bitcast(address, kind.as_pointer()), align=bits // 8)


def _element_address(context: Any, builder: Any, kind: _View, view: Any, index: Any) -> Any:
    if _CHECKED:
        beyond = builder.icmp_unsigned(">=", index, builder.extract_value(view, 1))
        with builder.if_then(beyond, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, (f"beyond the table: {kind.name}",))
    return builder.gep(builder.extract_value(view, 0), [builder.mul(index, _I64(kind.size))])


def _as_int64(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    return context.cast(builder, value, kind, int64)


@_templates.infer_global(operator.getitem)
class _GetItem(_templates.AbstractTemplate):  # type: ignore[misc, unused-ignore]
    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) == 2 and isinstance(args[0], _View) and isinstance(args[1], types.Integer):
            return args[0].element(args[0], int64)
        return None


@_templates.infer_global(operator.setitem)
class _SetItem(_templates.AbstractTemplate):  # type: ignore[misc, unused-ignore]
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], _View) and isinstance(args[1], types.Integer) and args[0].element is int64:
            return types.none(args[0], int64, int64)
        return None


@lower_builtin(operator.getitem, _View, int64)
def _get_item(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    address = _element_address(context, builder, kind, *args)
    return _load(builder, address, *kind.number) if kind.element is int64 else address


@lower_builtin(operator.setitem, _View, int64, int64)
def _set_item(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    address = _element_address(context, builder, kind, args[0], args[1])
    _store(builder, address, kind.number[0], args[2])
    return context.get_dummy_value()


@infer_getattr
class _Fields(_templates.AttributeTemplate):  # type: ignore[misc, unused-ignore]
    key = _Record

    def generic_resolve(self, kind: Any, field: str) -> Any:
        return int64 if field in kind.places else None


@lower_getattr_generic(_Record)
def _get_field(context: Any, builder: Any, kind: Any, record: Any, field: str) -> Any:
    place, bits, signed = kind.places[field]
    return _load(builder, builder.gep(record, [_I64(place)]), bits, signed)


@lower_setattr_generic(_Record)
def _set_field(context: Any, builder: Any, signature: Any, args: Any, field: str) -> None:
    place, bits, _ = signature.args[0].places[field]
    value = context.cast(builder, args[1], signature.args[1], int64)
    _store(builder, builder.gep(args[0], [_I64(place)]), bits, value)


def view_of(name: str, slot: int, dtype: Any, header: int) -> Callable[..., Any]:
    """A function of ``ctx``, for kernels: the view of the table at ``slot``.

    Parameters
    ----------
    name : str
        Of the table.
    slot : int
    dtype : numpy dtype
        Of one element of the view; of int32, int64 and uint8, without padding.
    header : int
        Where in ``ctx`` the address of the first table is; each takes three words: address, capacity, and what is used.
    """
    kind = _View(name, np.dtype(dtype))
    place = header + 3 * slot

    @_intrinsic
    def view(_typing: Any, ctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            words = _arrays.make_array(signature.args[0])(context, builder, args[0]).data
            made = context.make_helper(builder, kind)
            made.address = builder.inttoptr(builder.load(builder.gep(words, [_I64(place)])), _BYTE_ADDRESS)
            if _CHECKED:
                made.length = builder.load(builder.gep(words, [_I64(place + 1)]))
            return made._getvalue()

        return kind(ctx), codegen

    return view  # type: ignore[no-any-return]
