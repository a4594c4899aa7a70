"""``enum`` and ``const``: JSON values as nodes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from constrain.grammar.json_schema.document.document import Constant, Location, escape, type_name
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.assertions import check_names, to_decimal


def value_nodes(values: tuple[Any, ...], location: Location, *path: str) -> n.Normal:
    """Exactly these values, which stand at ``path``: one alone there, or several in an array.

    Numbers are equal if their values are; true is not 1.  The parts of arrays and objects become schemas of their own,
    so that whatever else is asserted of them applies.
    """
    pointer = location.pointer_to(*path)
    unwritable = frozenset(location.resource.document.options.unwritable)
    strings: dict[str, None] = {}
    numbers: dict[Decimal, None] = {}
    booleans: dict[bool, None] = {}
    nodes: list[n.Node] = []
    for index, value in enumerate(values):
        if isinstance(value, str):
            if is_text(value) and unwritable.isdisjoint(value):
                strings[value] = None
        elif value is None:
            nodes.append(n.NullNode(pointer))
        elif isinstance(value, bool):
            booleans[value] = None
        else:
            own_path = (*path, str(index)) if path == ("enum",) else path
            if isinstance(value, (int, float, Decimal)):
                numbers[number_as_written(value, location.pointer_to(*own_path))] = None
            elif isinstance(value, (list, tuple)):
                nodes.append(_array(value, location, own_path))
            elif isinstance(value, dict):
                nodes.append(_object(value, location, own_path))
            else:
                location.fail(f"a value must be JSON, not {type_name(value)}", *own_path)
    if strings:
        nodes.append(n.StringNode(pointer, values=tuple(strings)))
    if numbers:
        nodes.append(n.NumberNode(pointer, NumberForm.ANY, values=tuple(numbers)))
    if booleans:
        nodes.append(n.BooleanNode(pointer, tuple(booleans)))
    if nodes:
        return n.Normal(tuple(nodes), typed_by=pointer)
    reason = "the value holds a lone surrogate, which no UTF-8 text can" if values else "enum is empty"
    if values and unwritable:
        reason = "the value holds a character for which there is no escape"
    return n.Normal((), n.Conflict(reason, pointer))


def number_as_written(value: int | float | Decimal, pointer: str) -> Decimal:
    """A number of the schema as it stands there: only what has a fraction or an exponent has an exponent other than 0.

    So ``0.0`` and ``1e0`` can be told from 0 and 1, with which they are equal.
    """
    number = to_decimal(value, pointer)
    if isinstance(value, int):
        return number
    if not number:
        return Decimal("0.0").copy_sign(Decimal(value))
    sign, digits, exponent = number.as_tuple()
    return Decimal((sign, (*digits, 0), -1)) if exponent == 0 else number


def _array(value: list[Any] | tuple[Any, ...], location: Location, path: tuple[str, ...]) -> n.Node:
    pointer = location.pointer_to(*path)
    size = n.Count(len(value), pointer)
    prefix = tuple(location.at(Constant(item), f"{pointer}/{index}") for index, item in enumerate(value))
    return n.ArrayNode(pointer, prefix, (), size, size, constant=value)


def _object(value: dict[str, Any], location: Location, path: tuple[str, ...]) -> n.Node:
    pointer = location.pointer_to(*path)
    check_names(value, pointer)
    properties = {name: location.at(Constant(item), f"{pointer}/{escape(name)}") for name, item in value.items()}
    required = dict.fromkeys(value, pointer)
    return n.ObjectNode(pointer, properties, required, location.at(False, pointer), constant=value)
