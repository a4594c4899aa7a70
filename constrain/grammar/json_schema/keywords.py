"""Reading the keywords of one schema object: checks what they hold, and collects what they assert.

:data:`KEYWORDS` is the table of all that is enforced: to support a keyword is to write its reader here and to give
what it asserts a meaning in :mod:`constrain.grammar.json_schema.normalize`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from constrain.errors import SchemaError
from constrain.grammar.json_schema.document import Handle, Location, escape, type_name
from constrain.grammar.json_schema.nodes import Bound, Count, describe
from constrain.grammar.json_schema.numbers import MAX_DIGITS, MAX_EXPONENT, is_within_limits
from constrain.grammar.json_schema.vocabulary import ALL_WORDS, ANNOTATIONS, CONTENT, Dialect

# Above this a float is no exact count; a Decimal with a huge exponent is not worth writing out.
_GREATEST_FLOAT_COUNT = 2**53

TYPES = frozenset(("null", "boolean", "number", "integer", "string", "array", "object"))


class Assertions:
    """What the keywords of one schema object assert; an attribute that is not set asserts nothing."""

    types: frozenset[str] | None = None
    low: Bound | None = None
    high: Bound | None = None
    low_is_open: bool = False
    """Draft 4's boolean ``exclusiveMinimum``."""
    high_is_open: bool = False
    min_length: Count | None = None
    max_length: Count | None = None
    pattern: str | None = None
    prefix: tuple[Handle, ...] = ()
    items: Handle = ()
    additional_items: Handle = ()
    items_is_array: bool = False
    min_items: Count | None = None
    max_items: Count | None = None
    properties: dict[str, Handle] | None = None
    required: dict[str, str] | None = None
    additional: Handle = ()
    enum: tuple[Any, ...] | None = None
    const: tuple[Any] | None = None
    any_of: tuple[Handle, ...] | None = None
    ref: Handle | None = None


Reader = Callable[[Assertions, Any, Location, str], None]


def read(location: Location) -> Assertions:
    """What the schema object at ``location`` asserts.

    Raises SchemaError for a keyword that is not enforced, or that does not hold what it must.
    """
    schema = location.schema
    assert isinstance(schema, dict)
    assertions = Assertions()
    readers = _readers(location.resource.dialect)
    for keyword, value in schema.items():
        reader = readers.get(keyword, _unknown)
        if reader is not None:
            reader(assertions, value, location, keyword)
    return assertions


# -- what the values of keywords must be ------------------------------------------------------


def to_decimal(value: Any, pointer: str) -> Decimal:
    """A JSON number of the schema, exactly; a float counts as what it is printed as."""
    if isinstance(value, int) and not isinstance(value, bool):
        number = Decimal(value)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise SchemaError(f"{value!r} is not a JSON number", pointer)
        number = Decimal(repr(value))
    elif isinstance(value, Decimal) and value.is_finite():
        number = value
    else:
        raise SchemaError(f"{pointer.rpartition('/')[2]} must be a number, not {type_name(value)}", pointer)
    if not number:
        return Decimal(0)
    if not is_within_limits(number):
        raise SchemaError(
            f"the number {describe(str(number))} is beyond the limits for exact arithmetic: an exponent within "
            f"{MAX_EXPONENT} and {MAX_DIGITS} significant digits",
            pointer,
        )
    return number


def check_names(value: dict[Any, Any], pointer: str) -> None:
    """Raise SchemaError if a key is not a string, which no JSON text can hold but a dict can."""
    for name in value:
        if not isinstance(name, str):
            raise SchemaError(f"an object's keys must be strings, not {type_name(name)}", pointer)


def _count(value: Any, location: Location, keyword: str) -> Count:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or not _is_count(value):
        location.fail(f"{keyword} must be a non-negative integer, not {_shown(value)}", keyword)
    count = int(value)
    if count < 0:
        location.fail(f"{keyword} must be a non-negative integer, not {count}", keyword)
    return Count(count, f"{location.pointer}/{keyword}")


def _is_count(value: int | float | Decimal) -> bool:
    if isinstance(value, int):
        return True
    return math.isfinite(value) and -1 < value < _GREATEST_FLOAT_COUNT and value == int(value)


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) else type_name(value)


def _array(value: Any, location: Location, keyword: str, of: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        location.fail(f"{keyword} must be an array of {of}, not {type_name(value)}", keyword)
    return value


def _schemas(value: Any, location: Location, keyword: str) -> tuple[Handle, ...]:
    array = _array(value, location, keyword, "schemas")
    return tuple(location.child(schema, keyword, str(index)) for index, schema in enumerate(array))


# -- any type ------------------------------------------------------------------------------------


_TYPE_SETS = {name: frozenset((name,)) for name in TYPES}


def _read_type(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    known = _TYPE_SETS.get(value) if isinstance(value, str) else None
    if known is not None:
        assertions.types = known
        return
    names = value if isinstance(value, (list, tuple)) else (value,)
    if not names:
        location.fail("type is an empty array: no value has none of the types", keyword)
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            location.fail(f"{describe(name)} is not a type: it must be one of {', '.join(sorted(TYPES))}", keyword)
    assertions.types = frozenset(names)


def _read_enum(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.enum = tuple(_array(value, location, keyword, "values"))


def _read_const(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.const = (value,)


def _read_any_of(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.any_of = _schemas(value, location, keyword)
    if not assertions.any_of:
        location.fail("anyOf must hold at least one schema", keyword)


def _read_ref(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.ref = location.target()


# -- numbers -------------------------------------------------------------------------------------


def _read_minimum(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    pointer = f"{location.pointer}/{keyword}"
    assertions.low = higher(assertions.low, Bound(to_decimal(value, pointer), keyword == "exclusiveMinimum", pointer))


def _read_maximum(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    pointer = f"{location.pointer}/{keyword}"
    assertions.high = lower(assertions.high, Bound(to_decimal(value, pointer), keyword == "exclusiveMaximum", pointer))


def _read_boolean_exclusive(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if type(value) is not bool:
        location.fail(f"{keyword} must be a boolean in draft 4, not {type_name(value)}", keyword)
    if keyword == "exclusiveMinimum":
        assertions.low_is_open = value
    else:
        assertions.high_is_open = value


def higher(left: Bound | None, right: Bound | None) -> Bound | None:
    """The stricter of two lower bounds."""
    if left is None or right is None:
        return left or right
    return right if (right.value, right.is_open) > (left.value, left.is_open) else left


def lower(left: Bound | None, right: Bound | None) -> Bound | None:
    """The stricter of two upper bounds."""
    if left is None or right is None:
        return left or right
    return right if (right.value, not right.is_open) < (left.value, not left.is_open) else left


# -- strings -------------------------------------------------------------------------------------


def _read_min_length(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.min_length = _count(value, location, keyword)


def _read_max_length(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.max_length = _count(value, location, keyword)


def _read_pattern(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if not isinstance(value, str):
        location.fail(f"pattern must be a string, not {type_name(value)}", keyword)
    assertions.pattern = value


# -- arrays --------------------------------------------------------------------------------------


def _read_items(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if isinstance(value, (list, tuple)):
        if not location.resource.dialect.array_items or "prefixItems" in (location.schema or ()):  # type: ignore[operator]
            location.fail("items must be a schema, not an array (prefixItems takes one)", keyword)
        assertions.items_is_array = True
        assertions.prefix = _schemas(value, location, keyword)
    else:
        assertions.items = location.child(value, keyword)


def _read_additional_items(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.additional_items = location.child(value, keyword)


def _read_prefix_items(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.prefix = _schemas(value, location, keyword)


def _read_min_items(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.min_items = _count(value, location, keyword)


def _read_max_items(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.max_items = _count(value, location, keyword)


# -- objects -------------------------------------------------------------------------------------


def _read_properties(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if not isinstance(value, dict):
        location.fail(f"properties must be an object of schemas, not {type_name(value)}", keyword)
    check_names(value, f"{location.pointer}/{keyword}")
    child = location.child
    assertions.properties = {name: child(schema, keyword, name) for name, schema in value.items()}


def _read_required(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    pointer = f"{location.pointer}/{keyword}"
    required = {}
    for name in _array(value, location, keyword, "strings"):
        if not isinstance(name, str):
            location.fail(f"required must be an array of strings, but holds {type_name(name)}", keyword)
        required[name] = pointer
    assertions.required = required


def _read_additional_properties(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    assertions.additional = location.child(value, keyword)


# -- the table -----------------------------------------------------------------------------------


def _unsupported(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    location.fail(f"the keyword {keyword!r} is not supported", keyword)


def _unknown(assertions: Assertions, value: Any, location: Location, keyword: str) -> None:
    if not isinstance(keyword, str):
        location.fail(f"a schema's keys must be strings, not {type_name(keyword)}")
    document = location.resource.document
    if keyword in CONTENT:
        reason = f"{keyword!r} is an annotation and is not enforced"
    elif keyword in ALL_WORDS:
        reason = f"{location.resource.dialect.name} has no keyword {keyword!r}: it has no effect"
    else:
        reason = f"unknown keyword {keyword!r} has no effect"
    document.warnings.append(f"at {location.pointer}/{escape(keyword)}: {reason}")


KEYWORDS: dict[str, Reader] = {
    "$ref": _read_ref,
    "type": _read_type,
    "enum": _read_enum,
    "const": _read_const,
    "anyOf": _read_any_of,
    "minimum": _read_minimum,
    "maximum": _read_maximum,
    "exclusiveMinimum": _read_minimum,
    "exclusiveMaximum": _read_maximum,
    "minLength": _read_min_length,
    "maxLength": _read_max_length,
    "pattern": _read_pattern,
    "items": _read_items,
    "additionalItems": _read_additional_items,
    "prefixItems": _read_prefix_items,
    "minItems": _read_min_items,
    "maxItems": _read_max_items,
    "properties": _read_properties,
    "required": _read_required,
    "additionalProperties": _read_additional_properties,
}
"""Keyword to reader."""

_READERS: dict[Dialect, dict[str, Reader | None]] = {}


def _readers(dialect: Dialect) -> dict[str, Reader | None]:
    """The table for one draft; None is an annotation."""
    table = _READERS.get(dialect)
    if table is None:
        table = {word: KEYWORDS.get(word, _unsupported) for word in dialect.words - CONTENT}
        table |= dict.fromkeys(ANNOTATIONS)
        if dialect.boolean_exclusive:
            table["exclusiveMinimum"] = table["exclusiveMaximum"] = _read_boolean_exclusive
        _READERS[dialect] = table
    return table
