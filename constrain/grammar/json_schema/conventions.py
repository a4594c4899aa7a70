"""``x-guidance`` at the root of a schema: llguidance's options for how its JSON is written and read.

What it says takes the place of what the caller's options say of the same thing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from constrain.errors import GrammarError, SchemaError
from constrain.grammar.json_schema.document.document import escape, type_name
from constrain.grammar.json_schema.lexical.layout import (
    ANY_SPACE,
    MARKS,
    Layout,
    layout_of_patterns,
    separator_matching,
    space_matching,
)
from constrain.grammar.json_schema.lexical.notation import Notation
from constrain.grammar.json_schema.lexical.strings import ALL_ESCAPES
from constrain.grammar.languages.regular import EPSILON, Regular, optional
from constrain.grammar.schema_options import UnicodeEscapes

_WORD = "x-guidance"
_TYPES: dict[str, type] = {
    "item_separator": str,
    "key_separator": str,
    "whitespace_flexible": bool,
    "whitespace_pattern": str,
    "container_whitespace": str,
    "coerce_one_of": bool,
    "lenient": bool,
    "json_allowed_escapes": str,
    "json_allow_general_unicode_escapes": bool,
}

_OF_LAYOUT = ("item_separator", "key_separator", "whitespace_flexible", "whitespace_pattern", "container_whitespace")


class Conventions(NamedTuple):
    """What ``x-guidance`` says.

    Attributes
    ----------
    gap : Regular or None
        What may stand before each token; None if nothing is said about that, nor about separators.
    separators : (Regular, Regular)
        What separates members, and a key from its value.
    inside : Regular
        What stands behind an opening bracket and before a closing one beside the gap.
    unicode_escapes : {"any", "controls", "never"} or None
    escapes : str
        The characters that may stand behind a backslash, but for ``u``.
    is_lenient, coerces_one_of : bool
    """

    gap: Regular | None = None
    separators: tuple[Regular, Regular] = MARKS
    inside: Regular = EPSILON
    unicode_escapes: UnicodeEscapes | None = None
    escapes: str = ALL_ESCAPES
    is_lenient: bool = False
    coerces_one_of: bool = False

    def layout(self, notation: Notation) -> Layout | None:
        """The layout that is asked for; None if nothing is said about it."""
        return None if self.gap is None else layout_of_patterns(self.gap, self.separators, notation, self.inside)


NO_CONVENTIONS = Conventions()
"""Those of a schema that says nothing about them."""


def take_conventions(schema: Any) -> tuple[Any, Conventions]:
    """A schema without ``x-guidance``, and what that says.

    Raises
    ------
    SchemaError
        For what is unknown in it, or has a value that it cannot have.
    """
    if not isinstance(schema, dict) or _WORD not in schema:
        return schema, NO_CONVENTIONS
    values = schema[_WORD]
    if not isinstance(values, dict):
        raise SchemaError(f"{_WORD} must be an object, not {type_name(values)}", f"#/{_WORD}")
    for name, value in values.items():
        if name not in _TYPES:
            raise SchemaError(f"{_WORD} has no option {name!r}; it has {', '.join(_TYPES)}", _pointer(name))
        if value is not None and type(value) is not _TYPES[name]:
            wanted = "a boolean" if _TYPES[name] is bool else "a string"
            raise SchemaError(f"{name} must be {wanted}, not {type_name(value)}", _pointer(name))
    given = {name: value for name, value in values.items() if value is not None}
    is_lenient = given.get("lenient", False)
    conventions = Conventions(
        gap=_gap(given),
        separators=(_separator(given, "item_separator", ","), _separator(given, "key_separator", ":")),
        inside=_space(given, "container_whitespace") or EPSILON,
        unicode_escapes=_unicode_escapes(given),
        escapes="".join(each for each in ALL_ESCAPES if each in given.get("json_allowed_escapes", ALL_ESCAPES)),
        is_lenient=is_lenient,
        coerces_one_of=is_lenient or given.get("coerce_one_of", False),
    )
    rest = {name: value for name, value in schema.items() if name != _WORD}
    return rest, NO_CONVENTIONS if conventions == NO_CONVENTIONS else conventions


def _gap(given: dict[str, Any]) -> Regular | None:
    if given.keys().isdisjoint(_OF_LAYOUT):
        return None
    space = _space(given, "whitespace_pattern")
    if space is None:
        return ANY_SPACE if given.get("whitespace_flexible", True) else EPSILON
    # Where it may stand there may be none as well.
    return optional(space)


def _space(given: dict[str, Any], name: str) -> Regular | None:
    """The white space that an option asks for, if it is there."""
    if name not in given:
        return None
    try:
        return space_matching(given[name])
    except GrammarError as error:
        raise SchemaError(f"{name}: {error}", _pointer(name)) from None


def _separator(given: dict[str, Any], name: str, mark: str) -> Regular:
    try:
        return separator_matching(given.get(name, mark), mark)
    except GrammarError as error:
        raise SchemaError(f"{name}: {error}", _pointer(name)) from None


def _unicode_escapes(given: dict[str, Any]) -> UnicodeEscapes | None:
    is_general = given.get("json_allow_general_unicode_escapes")
    if "u" not in given.get("json_allowed_escapes", "u"):
        return "never"
    if is_general is None and "json_allowed_escapes" not in given:
        return None
    return "any" if is_general else "controls"


def _pointer(name: str) -> str:
    return f"#/{_WORD}/{escape(name)}"
