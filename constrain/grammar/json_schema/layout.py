"""The lexemes of JSON: its tokens in every spelling, with the white space that may stand in front of each.

White space only ever belongs to the token after it, so there is one way to split a text, and it is clear where a
token ends.  The languages that nearly every grammar has are made once per layout: equal ones are the same object.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from constrain.errors import ConstrainError
from constrain.grammar.json_schema.numbers import ANY_NUMBER, NumberForm, number_language
from constrain.grammar.json_schema.strings import ANY_BODY, spell
from constrain.grammar.regular import (
    EPSILON,
    Regular,
    byte_set,
    complement,
    concat,
    intersect,
    literal,
    repeat,
    union,
)

_QUOTE = literal('"')
_WHITE_SPACE = byte_set(b" \t\n\r")

NULL = literal("null")
TRUE = literal("true")
FALSE = literal("false")
BOOLEAN = union(TRUE, FALSE)
INTEGER = number_language(NumberForm.INTEGRAL)
PLAIN_INTEGER = number_language(NumberForm.NO_FRACTION)


def quoted(body: Regular) -> Regular:
    """A JSON string with this between its quotes."""
    return concat(_QUOTE, body, _QUOTE)


STRING = quoted(ANY_BODY)

_COMMON = (NULL, BOOLEAN, TRUE, FALSE, ANY_NUMBER, INTEGER, PLAIN_INTEGER, STRING)


class Layout:
    """Where white space may stand, and the lexemes that follow from that.

    Attributes
    ----------
    comma, open_array, close_array, open_object, close_object : Regular
        Punctuation, each with the white space before it.
    """

    def __init__(self, gap: Regular) -> None:
        self.gap = gap
        self.comma = concat(gap, literal(","))
        self.open_array = concat(gap, literal("["))
        self.close_array = concat(gap, literal("]"))
        self.open_object = concat(gap, literal("{"))
        self.close_object = concat(gap, literal("}"))
        self._colon = concat(gap, literal(":"))
        # By identity: these are looked up for nearly every schema, and hashing a tree is not free.
        self._common = {id(core): concat(gap, core) for core in _COMMON}

    def value(self, core: Regular) -> Regular:
        """A scalar after white space."""
        return self._common.get(id(core)) or concat(self.gap, core)

    def key(self, body: Regular) -> Regular:
        """The key of an object's first member, with its colon."""
        return concat(self.gap, _QUOTE, body, _QUOTE, self._colon)

    def next_key(self, body: Regular) -> Regular:
        """The key of any later member, with the comma before it and its colon."""
        return concat(self.comma, self.gap, _QUOTE, body, _QUOTE, self._colon)


@lru_cache(maxsize=16)
def layout_for(whitespace: str, max_whitespace: int) -> Layout:
    """The layout of the options of the same names.  Raises ConstrainError if they are not valid."""
    if type(max_whitespace) is not int or max_whitespace < 0:
        raise ConstrainError(f"max_whitespace must be an integer from 0 up, not {max_whitespace!r}")
    if whitespace == "flexible":
        return Layout(repeat(_WHITE_SPACE, 0, max_whitespace))
    if whitespace == "compact":
        return Layout(EPSILON)
    raise ConstrainError(f"whitespace must be 'flexible' or 'compact', not {whitespace!r}")


@lru_cache(maxsize=4096)
def named_keys(layout: Layout, name: str) -> tuple[Regular, Regular]:
    """:meth:`Layout.key` and :meth:`Layout.next_key` of a name."""
    body = spell(name)
    return layout.key(body), layout.next_key(body)


def other_keys(layout: Layout, names: Iterable[str]) -> tuple[Regular, Regular]:
    """:meth:`Layout.key` and :meth:`Layout.next_key` of every name that is not in ``names``, however it is spelled."""
    body = ANY_BODY
    excluded = union(*map(spell, names))
    if excluded != union():
        body = intersect(ANY_BODY, complement(excluded))
    return layout.key(body), layout.next_key(body)
