"""Views of tables by the names of their fields, for kernels: ``lexer_states(ctx)[state].accept``.

A table holds numbers (int32, int64 or uint8), or records of a few such numbers.  :func:`view_of` makes the function
through which kernels read it:

* Reading gives an int64, whatever the number is kept as (uint8 without a sign).  Writing cuts an int64 to that size.
  So kernels hold neither strides nor widths, and hardly a conversion.
* An element may be an array of numbers, as a set of 256 bits is: ``byte_sets(ctx)[number, word]``.
* A record is written as a whole by a tuple with a number for each field in their order, or by another record with
  these fields: ``boundaries(ctx)[i] = node, accept``.
* An index is not looked at: it is not counted from the end if it is negative, as numpy does.  That is why loops over a
  view are as fast as loops over an array with an unsigned index.
* A view is an address and a length.  It is taken anew behind a call that may have let the table grow.
* ``len`` of a view is its capacity in elements.

With ``NUMBA_BOUNDSCHECK=1`` an index beyond the table is an IndexError.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from constrain.kernels.language import int64, intrinsic, module, types

_extending: Any = module("numba.extending")
_config: Any = module("numba").config
_arrays: Any = module("numba.np.arrayobj")
_ir: Any = module("llvmlite.ir")
_templates: Any = module("numba.core.typing.templates")
_intrinsic: Any = intrinsic  # called with fewer arguments than it is defined with

_CHECKED = bool(_config.BOUNDSCHECK)
_BYTE_ADDRESS = _ir.IntType(8).as_pointer()
_I64 = _ir.IntType(64)


class _View(types.Type):  # type: ignore[misc, unused-ignore]
    """A table in a kernel.

    Parameters
    ----------
    name : str
        Of the table.
    dtype : numpy.dtype
        Of one element: a number, an array of numbers, or numbers with names.

    Attributes
    ----------
    columns : int
        How many numbers an array of numbers has; 0 for other elements.
    """

    mutable = True

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(name=f"view of {name}: {dtype}")
        self.size = dtype.itemsize
        self.columns = dtype.shape[0] if dtype.shape else 0
        self.number = _number(dtype.base) if dtype.names is None else None
        self.element: Any = int64 if dtype.names is None else _Record(name, dtype)

    def takes(self, index: Any) -> bool:
        """Whether an index of this type names a number or a record."""
        if self.columns:
            return isinstance(index, types.BaseTuple) and len(index) == 2
        return isinstance(index, types.Integer)

    @property
    def index(self) -> Any:
        """The type that an index is brought into."""
        return types.UniTuple(int64, 2) if self.columns else int64


class _Record(types.Type):  # type: ignore[misc, unused-ignore]
    """One record of a table in a kernel: its address."""

    mutable = True

    def __init__(self, name: str, dtype: Any) -> None:
        super().__init__(name=f"record of {name}: {dtype}")
        self.places = {field: (dtype.fields[field][1], *_number(dtype.fields[field][0])) for field in dtype.names}


def _number(dtype: Any) -> tuple[int, bool]:
    """The bits of a number, and whether it has a sign."""
    return 8 * dtype.itemsize, dtype.kind == "i"


@_extending.register_model(_View)
class _ViewModel(_extending.models.StructModel):  # type: ignore[misc, unused-ignore]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("address", types.voidptr), ("length", int64)])


@_extending.register_model(_Record)
class _RecordModel(_extending.models.OpaqueModel):  # type: ignore[misc, unused-ignore]
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
    column = None
    if kind.columns:
        index, column = (builder.extract_value(index, i) for i in range(2))
    if _CHECKED:
        beyond = builder.icmp_unsigned(">=", index, builder.extract_value(view, 1))
        if column is not None:
            beyond = builder.or_(beyond, builder.icmp_unsigned(">=", column, _I64(kind.columns)))
        with builder.if_then(beyond, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, (f"beyond the table: {kind.name}",))
    place = builder.mul(index, _I64(kind.size))
    if column is not None:
        place = builder.add(place, builder.mul(column, _I64(kind.size // kind.columns)))
    return builder.gep(builder.extract_value(view, 0), [place])


@_templates.infer_global(operator.getitem)
class _GetItem(_templates.AbstractTemplate):  # type: ignore[misc, unused-ignore]
    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) == 2 and isinstance(args[0], _View) and args[0].takes(args[1]):
            return args[0].element(args[0], args[0].index)
        return None


@_templates.infer_global(operator.setitem)
class _SetItem(_templates.AbstractTemplate):  # type: ignore[misc, unused-ignore]
    def generic(self, args: Any, kws: Any) -> Any:
        if not isinstance(args[0], _View) or not args[0].takes(args[1]):
            return None
        if args[0].number is not None:
            return types.none(args[0], args[0].index, int64)
        value, places = args[2], args[0].element.places
        is_record = isinstance(value, _Record) and value.places == places
        if is_record or (isinstance(value, types.BaseTuple) and len(value) == len(places)):
            return types.none(args[0], args[0].index, value)
        return None


@_templates.infer_global(len)
class _Len(_templates.AbstractTemplate):  # type: ignore[misc, unused-ignore]
    def generic(self, args: Any, kws: Any) -> Any:
        return int64(args[0]) if len(args) == 1 and isinstance(args[0], _View) else None


@_extending.lower_builtin(len, _View)
def _len(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.extract_value(args[0], 1)


@_extending.lower_builtin(operator.getitem, _View, types.UniTuple(int64, 2))
@_extending.lower_builtin(operator.getitem, _View, int64)
def _get_item(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    address = _element_address(context, builder, kind, *args)
    return address if kind.number is None else _load(builder, address, *kind.number)


@_extending.lower_builtin(operator.setitem, _View, types.UniTuple(int64, 2), int64)
@_extending.lower_builtin(operator.setitem, _View, int64, int64)
def _set_item(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = signature.args[0]
    address = _element_address(context, builder, kind, args[0], args[1])
    _store(builder, address, kind.number[0], args[2])
    return context.get_dummy_value()


@_extending.lower_builtin(operator.setitem, _View, int64, types.BaseTuple)
@_extending.lower_builtin(operator.setitem, _View, int64, _Record)
def _set_record(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind, _, given = signature.args
    record = _element_address(context, builder, kind, args[0], args[1])
    places = kind.element.places
    if isinstance(given, _Record):
        values = [_get_field(context, builder, given, args[2], field) for field in places]
    else:
        values = [builder.extract_value(args[2], i) for i in range(len(places))]
        values = [context.cast(builder, *each, int64) for each in zip(values, given.types, strict=True)]
    for (place, bits, _), value in zip(places.values(), values, strict=True):
        _store(builder, builder.gep(record, [_I64(place)]), bits, value)
    return context.get_dummy_value()


@_extending.infer_getattr
class _Fields(_templates.AttributeTemplate):  # type: ignore[misc, unused-ignore]
    key = _Record

    def generic_resolve(self, kind: Any, field: str) -> Any:
        return int64 if field in kind.places else None


@_extending.lower_getattr_generic(_Record)
def _get_field(context: Any, builder: Any, kind: Any, record: Any, field: str) -> Any:
    place, bits, signed = kind.places[field]
    return _load(builder, builder.gep(record, [_I64(place)]), bits, signed)


@_extending.lower_setattr_generic(_Record)
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
            return _make_view(context, builder, signature, args[0], _I64(place))

        return kind(ctx), codegen

    return view  # type: ignore[no-any-return]


def view_at(name: str, dtype: Any, header: int) -> Callable[..., Any]:
    """A function of ``ctx`` and a slot, for kernels that work on one of several tables; as :func:`view_of`."""
    kind = _View(name, np.dtype(dtype))

    @_intrinsic
    def view(_typing: Any, ctx: Any, slot: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = builder.add(builder.mul(args[1], _I64(3)), _I64(header))
            return _make_view(context, builder, signature, args[0], place)

        return kind(ctx, int64), codegen

    return view  # type: ignore[no-any-return]


def _make_view(context: Any, builder: Any, signature: Any, ctx: Any, place: Any) -> Any:
    """Generate the code for the view of the table whose address is word ``place`` of ``ctx``."""
    words = _arrays.make_array(signature.args[0])(context, builder, ctx).data
    made = context.make_helper(builder, signature.return_type)
    made.address = builder.inttoptr(builder.load(builder.gep(words, [place])), _BYTE_ADDRESS)
    made.length = builder.load(builder.gep(words, [builder.add(place, _I64(1))]))
    return made._getvalue()
