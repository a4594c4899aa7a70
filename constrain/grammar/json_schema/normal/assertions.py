"""What the keywords of one schema object assert, and what every value of a keyword must be."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from constrain.errors import LimitError, SchemaError
from constrain.grammar.json_schema.document.document import Location, type_name
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.numbers import MAX_DIGITS, MAX_EXPONENT, is_within_limits
from constrain.grammar.json_schema.normal.nodes import Bound, Count, Divisor, KeyRule, Term, describe
from constrain.limits import spend

# Above this a float is no exact count; a Decimal with a huge exponent is not worth writing out.
_GREATEST_FLOAT_COUNT = 2**53

MAX_COUNT = 1_000_000_000
"""The greatest length or number of things that is told from others: no text has more."""

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
    terms: tuple[Term, ...] = ()
    words: tuple[str, ...] | None = None
    """What a ``pattern`` allows that is a list of words."""
    divisors: tuple[Divisor, ...] = ()
    prefix: tuple[Handle, ...] = ()
    items: Handle | None = None
    additional_items: Handle | None = None
    items_is_array: bool = False
    min_items: Count | None = None
    max_items: Count | None = None
    unique: str | None = None
    contains: Handle | None = None
    min_contains: Count | None = None
    max_contains: Count | None = None
    unevaluated_items: Handle | None = None
    properties: dict[str, Handle] | None = None
    required: dict[str, str] | None = None
    additional: Handle | None = None
    patterns: tuple[KeyRule, ...] = ()
    property_names: Handle | None = None
    min_properties: Count | None = None
    max_properties: Count | None = None
    dependencies: tuple[tuple[str, Handle | dict[str, str]], ...] = ()
    """A name, and what holds if it is there: a schema, or that others are there too."""
    unevaluated_properties: Handle | None = None
    enum: tuple[Any, ...] | None = None
    const: tuple[Any] | None = None
    any_of: tuple[Handle, ...] | None = None
    all_of: tuple[Handle, ...] | None = None
    one_of: tuple[Handle, ...] | None = None
    excluded: Handle | None = None
    """The schema of ``not``."""
    condition: Handle | None = None
    """``if``, of which ``then`` and ``otherwise`` depend."""
    then: Handle = ()
    otherwise: Handle = ()
    ref: Handle | None = None
    dynamic_ref: Handle | None = None
    nullable: bool = False
    is_loose: bool = False
    """Whether something is left out that cannot be enforced, for a lenient caller."""


# -- what the values of keywords must be ------------------------------------------------------


def to_decimal(value: Any, pointer: str) -> Decimal:
    """A JSON number of the schema, exactly; a float counts as what it is printed as."""
    if isinstance(value, int) and not isinstance(value, bool):
        number = Decimal(value)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise SchemaError(f"{value!r} is not a JSON number", pointer)
        # Subclasses, as numpy has one, may be printed in another way.
        number = Decimal(float.__repr__(value))
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


def to_count(value: Any, location: Location, keyword: str) -> Count:
    """A length or a number of things."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or not _is_count(value):
        location.fail(f"{keyword} must be a non-negative integer, not {_shown(value)}", keyword)
    count = int(value)
    if count < 0:
        location.fail(f"{keyword} must be a non-negative integer, not {_shown(value)}", keyword)
    if count > MAX_COUNT and keyword.startswith("min"):
        location.fail(f"{keyword} must be at most {MAX_COUNT}: no text has more, not {_shown(value)}", keyword)
    return Count(min(count, MAX_COUNT), f"{location.pointer}/{keyword}")


def _is_count(value: int | float | Decimal) -> bool:
    if isinstance(value, int):
        return True
    return math.isfinite(value) and -1 < value < _GREATEST_FLOAT_COUNT and value == int(value)


def _shown(value: Any) -> str:
    return (
        describe(value)
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
        else type_name(value)
    )


def to_array(value: Any, location: Location, keyword: str, of: str) -> list[Any] | tuple[Any, ...]:
    """A JSON array; ``of`` says what it holds, for the message."""
    if not isinstance(value, (list, tuple)):
        location.fail(f"{keyword} must be an array of {of}, not {type_name(value)}", keyword)
    return value


# -- what the values in enum and const must be before anything is made of them -----------------

MAX_VALUE_DEPTH = 2000
"""How deep a value may be nested."""

MAX_VALUES = 2_000_000
"""How many values an ``enum`` may hold together, those in arrays and objects counted wherever they stand."""

_OPEN = (0, 0)


def check_values(values: list[Any] | tuple[Any, ...], pointer: str) -> None:
    """Raise SchemaError or LimitError for values that are no JSON text, or too large a one.

    Python's lists and dicts may hold themselves; and they may hold one object in many places, so that a few of them
    stand for more text than there is memory.
    """
    if not any(isinstance(value, (list, tuple, dict)) for value in values):
        return
    # By identity, for each array or object: how deep it is nested, and how many values it holds.
    sizes: dict[int, tuple[int, int]] = {}
    todo: list[Any] = [values]
    while todo:
        spend()
        value = todo[-1]
        known = sizes.get(id(value))
        if known is not None and known is not _OPEN:
            todo.pop()
            continue
        inner = [
            one
            for one in (value.values() if isinstance(value, dict) else value)
            if isinstance(one, (list, tuple, dict)) and one
        ]
        if known is None:
            sizes[id(value)] = _OPEN
            for one in inner:
                found = sizes.get(id(one))
                if found is _OPEN:
                    raise SchemaError("a value holds itself: no JSON text has it", pointer)
                if found is None:
                    todo.append(one)
            continue
        depth, size = 1, len(value)
        for one in inner:
            found = sizes.get(id(one), _OPEN)
            depth, size = max(depth, found[0] + 1), size + found[1]
        if depth > MAX_VALUE_DEPTH + 1:
            raise SchemaError(f"a value is nested more than {MAX_VALUE_DEPTH} levels deep", pointer)
        if size > MAX_VALUES:
            raise LimitError(f"more than {MAX_VALUES:,} values, those in arrays and objects counted", pointer)
        sizes[id(value)] = (depth, size)
        todo.pop()
