"""The names and values of the options of ``from_json_schema``."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, get_args

from constrain.errors import ConstrainError

WhiteSpace = Literal["flexible", "compact"]
Numbers = Literal["any", "plain"]
Spellings = Literal["any", "canonical"]
PropertyOrder = Literal["schema", "any"]
Formats = Literal["assert", "annotate"]


class SchemaOptions(TypedDict, total=False):
    """Keyword arguments of :func:`~constrain.grammar.json_schema.from_json_schema`, which says what they mean."""

    whitespace: WhiteSpace
    max_whitespace: int | None
    indent: int | None
    separators: tuple[str, str] | None
    ensure_ascii: bool
    numbers: Numbers
    spelling: Spellings
    property_order: PropertyOrder
    formats: Formats
    lenient: bool
    registry: Any
    max_work: int


def check_choice(name: str, value: object, choices: object) -> None:
    """Raise ConstrainError if the value of an option is none of a ``Literal``."""
    values = get_args(choices)
    if not isinstance(value, str) or value not in values:
        raise ConstrainError(f"{name} must be {' or '.join(map(repr, values))}, not {value!r}")
