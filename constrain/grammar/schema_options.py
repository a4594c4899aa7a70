"""The names, values and meaning of the options of ``from_json_schema``.

Several functions take them, each with all of their names in its signature.  What they mean stands here alone:
:func:`explains_options` writes it into the docstrings.
"""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import Any, Literal, Protocol, TypedDict, TypeVar

from constrain.errors import ConstrainError

WhiteSpace = Literal["flexible", "compact"]
Numbers = Literal["any", "plain"]
Spellings = Literal["any", "canonical"]
PropertyOrder = Literal["schema", "any"]
Formats = Literal["assert", "annotate"]
Patterns = Literal["search", "full"]
UnicodeEscapes = Literal["any", "controls", "never"]


_Function = TypeVar("_Function", bound=Callable[..., Any])


class Registry(Protocol):
    """Where documents are looked up: a ``referencing.Registry``, or anything with this method of it."""

    def get_or_retrieve(self, uri: str, /) -> Any:
        """An object whose ``value.contents`` are the document of a URI."""


class SchemaOptions(TypedDict, total=False):
    """Keyword arguments of :func:`~constrain.grammar.json_schema.from_json_schema`, as one value."""

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
    registry: Registry | None
    max_work: int
    whitespace_pattern: str | None
    separator_patterns: tuple[str, str] | None
    surrounding_whitespace: bool
    unicode_escapes: UnicodeEscapes
    additional_properties: bool
    patterns: Patterns
    coerce_one_of: bool
    max_array_length: int | None


def check_choice(name: str, values: tuple[str, ...], value: object) -> None:
    """Raise ConstrainError if the value of an option is none of those that it may have."""
    if not isinstance(value, str) or value not in values:
        raise ConstrainError(f"{name} must be {' or '.join(map(repr, values))}, not {value!r}")


_MEANING = """\
whitespace : {"flexible", "compact"}
    Between tokens: what people and programs write, or none (as ``json.dumps(separators=(",", ":"))`` writes).
    Flexible is nothing, one or two blanks, or a line end and an indent of up to 96 blanks or tabs; before commas
    and colons nothing or one blank.  There is none before the first token and after the last.
max_whitespace : int, optional
    With it, flexible is any JSON white space instead, and no more than so many characters of it in one place.
indent : int, optional
    Exactly the white space that ``json.dumps(indent=...)`` writes, to 24 levels of nesting.
separators : (str, str), optional
    Exactly these between members and after keys, as ``json.dumps(separators=...)`` writes; no other white space.
ensure_ascii : bool
    Whether characters beyond ASCII must be written as ``\\uXXXX``, as ``json.dumps(ensure_ascii=True)`` does; they
    may be written so in any case.
numbers : {"any", "plain"}
    Plain numbers have no exponent, and integers no fraction: ``12``, never ``1.2e1`` or ``12.0``.
spelling : {"any", "canonical"}
    Canonical text is exactly what ``json.dumps`` writes (with this ``ensure_ascii``): keys, strings, and also the
    numbers of ``enum`` and ``const``.
property_order : {"schema", "any"}
    The members of an object come in the order of the schema, or in every order.
formats : {"assert", "annotate"}
    Whether ``format`` is enforced.
lenient : bool
    Take a schema of which a part cannot be enforced, or has too many alternatives, and name that part in the warnings.
registry : referencing.Registry or anything with its ``get_or_retrieve``
    Where references to other documents are looked up; nothing is ever fetched but by it.
max_work : int
    How many pairs of alternatives may be combined, which bounds the time that a schema takes.
whitespace_pattern : str, optional
    A regular expression for what stands before each token but the first (``r"[ ]?"``, ``r"\\s*"``); of what it
    matches, what is JSON's white space.
separator_patterns : (str, str), optional
    Regular expressions for what stands between members and behind keys (``r"\\s*,\\s*"``, ``r": ?"``); of what they
    match, one comma or colon with white space around it.  There is no other white space but that of
    ``whitespace_pattern``.
surrounding_whitespace : bool
    Whether white space may stand before and behind the whole text too: what may stand between tokens, or, if there is
    none there, what is flexible.
unicode_escapes : {"any", "controls", "never"}
    What may be written as ``\\uXXXX``: any character; only controls without a short escape, for which there is no other
    way; or nothing, so that no text holds those.
additional_properties : bool
    False: an object whose schema names members has no others, unless the schema says so.  XGrammar's strict mode.
patterns : {"search", "full"}
    Whether ``pattern`` and the names of ``patternProperties`` match somewhere in a string, as JSON Schema says, or
    all of it.
coerce_one_of : bool
    Whether ``oneOf`` is read as ``anyOf``.
max_array_length : int, optional
    The most items of an array whose schema speaks of arrays and not of ``maxItems``, as in lm-format-enforcer.
"""


def explains_options(function: _Function) -> _Function:
    """Write what the options mean in place of the line ``{options}`` in the docstring of a function that takes them."""
    # python -OO removes docstrings.
    if function.__doc__ is not None:
        lines = function.__doc__.splitlines(keepends=True)
        (place,) = (index for index, line in enumerate(lines) if line.strip() == "{options}")
        margin = lines[place][: lines[place].index("{")]
        lines[place] = indent(_MEANING, margin)
        function.__doc__ = "".join(lines)
    return function
