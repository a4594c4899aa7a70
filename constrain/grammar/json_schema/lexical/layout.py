"""The lexemes of JSON: its tokens in every spelling, with the white space that may stand in front of each.

White space only ever belongs to the token after it, so there is one way to split a text, and it is clear where a
token ends.  The languages that nearly every grammar has are made once per layout: equal ones are the same object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.json_schema.lexical.notation import Notation, Spell, any_text
from constrain.grammar.json_schema.lexical.strings import Spelling, find_at_end, string_before
from constrain.grammar.languages import regular as r
from constrain.grammar.languages.derivatives import Automaton
from constrain.grammar.regex import regex_language

_WHITE_SPACE = r.byte_set(b" \t\n\r")

MAX_INDENT = 96
"""How far a line may be indented, by default: 24 levels of four blanks."""

USUAL_GAP = r.union(
    r.repeat(r.literal(" "), 0, 2),
    r.concat(r.optional(r.literal("\r")), r.literal("\n"), r.repeat(r.byte_set(b" \t"), 0, MAX_INDENT)),
)
"""The white space that people and programs write before a token: up to two blanks, or a new line and its indent.

A model that has nothing better to do than to go on with white space comes to an end of it.
"""

USUAL_GAP_BEFORE_MARK = r.optional(r.literal(" "))
"""The same before a comma or a colon."""
_MOST_WHITE_SPACE = 1_000_000
ANY_SPACE = r.repeat(_WHITE_SPACE)
"""Any JSON white space."""

# Steps of the search for white space in what a pattern matches.
_SEARCH_LIMIT = 100_000

MAX_INDENTED_DEPTH = 24
"""How deep values may be nested where each level has its own indentation, and so its own rules."""


class Layout:
    """Where white space may stand, and the lexemes that follow from that.

    Parameters
    ----------
    gap : Regular
        What may stand before every token.
    comma, colon : Regular
        What separates two members, and a key from its value.
    notation : Notation
        How keys and scalars are written.

    Attributes
    ----------
    open_array, close_array, open_object, close_object : Regular
        Brackets, each with the white space before it.
    first_array, first_object : Regular
        The opening brackets of a text that is a value.
    empty_array, empty_object : Regular or None
        How a value without members is written, if that is not just the two brackets.
    any_keys : (Regular, Regular)
        :meth:`keys` of every name.
    inner : Layout or None
        The layout of what stands in an array or object; None if nothing may be nested in it.
    """

    tells_values = True
    """Whether the values of a text can be read back from it."""
    is_json = True
    """Whether values are written as JSON."""
    object_brackets = ("'{'", "'}'")
    """What messages call the brackets of objects."""

    def __init__(self, gap: r.Regular, comma: r.Regular, colon: r.Regular, notation: Notation) -> None:
        self.gap = gap
        self.notation = notation
        self.comma = comma
        self.colon = colon
        # What stands around the keys in each kind of quotes: of the first one, and of a later one.
        self._around_keys = [
            (r.concat(gap, quote), r.concat(comma, gap, quote), r.concat(quote, colon), spelling)
            for quote, spelling in notation.quotes
        ]
        self.open_array = r.concat(gap, r.literal("["))
        self.close_array = r.concat(gap, r.literal("]"))
        self.open_object = r.concat(gap, r.literal("{"))
        self.close_object = r.concat(gap, r.literal("}"))
        self.first_array, self.first_object = r.literal("["), r.literal("{")
        self.empty_array: r.Regular | None = None
        self.empty_object: r.Regular | None = None
        self.inner: Layout | None = self
        # By identity: these are looked up for nearly every schema, and hashing a tree is not free.
        self.any_keys = self.keys(any_text)
        words = (notation.null, notation.boolean, notation.true, notation.false)
        common = (*words, *notation.numbers.values(), notation.string)
        self._common = {id(core): r.concat(gap, core) for core in common}

    def written_in(self, notation: Notation) -> Layout:
        """The same white space in another notation."""
        return Layout(self.gap, self.comma, self.colon, notation)

    @property
    def usual_values(self) -> tuple[r.Regular, ...]:
        """:meth:`value` of the scalars that have their own type, and no other demands."""
        return tuple(self._common.values())

    def value(self, core: r.Regular) -> r.Regular:
        """A scalar after white space."""
        return self._common.get(id(core)) or r.concat(self.gap, core)

    @property
    def key_spelling(self) -> Spelling:
        """The first spelling that :meth:`keys` asks for."""
        return self.notation.spelling

    def keys(self, spell: Spell) -> tuple[r.Regular, r.Regular]:
        """Keys with their colon: of an object's first member, and of any later one, with the comma before it."""
        ways = []
        for before, before_next, after, spelling in self._around_keys:
            body = spell(spelling)
            ways.append((r.frame(before, body, after), r.frame(before_next, body, after)))
        if len(ways) == 1:
            return ways[0]
        first, following = zip(*ways, strict=True)
        return r.union(*first), r.union(*following)

    def as_json(self, value: bytes) -> bytes:
        """The JSON of a value as it is written."""
        return value

    def last_key(self, text: Callable[[int], bytes]) -> str:
        """The key that a text ends with; ``text(n)`` are its last ``n`` bytes, or more."""
        return find_at_end(text, self._key_at_end, "a key")

    def _key_at_end(self, data: bytes) -> str | None:
        """The same in the last bytes of a text; None if the key may have begun before them."""
        # In any notation what follows is white space and a mark.
        end = max(data.rfind(b'"'), data.rfind(b"'"))
        begin = string_before(data, end) if end >= 0 else -1
        if begin < 0:
            return None
        key: str = json.loads(self.as_json(data[begin : end + 1]))
        return key

    @property
    def has_pieces_of_keys(self) -> bool:
        """Whether keys can be written in pieces: only if one beginning decides what they end with."""
        return len(self._around_keys) == 1

    def pieces_of_keys(self, text: str, ends: bool) -> r.Regular:
        """A part of a name within a key; where the name ends, with the colon."""
        ((_, _, after, spelling),) = self._around_keys
        body = spelling.text(text)
        return r.concat(body, after) if ends else body

    def pieces_of_first_keys(self, text: str, ends: bool) -> r.Regular:
        """The beginning of a name as that of an object's first key; where the name ends, with the colon."""
        return r.concat(self._around_keys[0][0], self.pieces_of_keys(text, ends))

    def pieces_of_next_keys(self, text: str, ends: bool) -> r.Regular:
        """The same for any later member, with the comma before it."""
        return r.concat(self._around_keys[0][1], self.pieces_of_keys(text, ends))


def _indented(indent: int, depth: int, notation: Notation) -> Layout:
    """The layout of a value with ``depth`` others around it, on lines of its own.

    The line break belongs to the opening bracket and to the comma, so that values and keys look the same everywhere.
    """
    line, inner_line = (r.concat(r.literal("\n"), r.literal(" " * (indent * level))) for level in (depth, depth + 1))
    layout = Layout(r.EPSILON, r.concat(r.literal(","), inner_line), r.literal(": "), notation)
    layout.open_array, layout.close_array = r.concat(r.literal("["), inner_line), r.concat(line, r.literal("]"))
    layout.open_object, layout.close_object = r.concat(r.literal("{"), inner_line), r.concat(line, r.literal("}"))
    layout.first_array, layout.first_object = layout.open_array, layout.open_object
    layout.empty_array, layout.empty_object = r.literal("[]"), r.literal("{}")
    layout.inner = _indented(indent, depth + 1, notation) if depth < MAX_INDENTED_DEPTH else None
    return layout


@lru_cache(maxsize=16, typed=True)
def layout_for(
    whitespace: str,
    max_whitespace: int | None,
    indent: int | None,
    separators: tuple[str, str] | None,
    notation: Notation,
) -> Layout:
    """The layout of the options of the same names, in a notation.  Raises ConstrainError if they are not valid."""
    if max_whitespace is not None and (type(max_whitespace) is not int or not 0 <= max_whitespace <= _MOST_WHITE_SPACE):
        raise ConstrainError(f"max_whitespace must be an integer from 0 to {_MOST_WHITE_SPACE}, not {max_whitespace!r}")
    if max_whitespace is not None and (indent is not None or separators is not None or whitespace == "compact"):
        raise ConstrainError(
            "max_whitespace is for whitespace='flexible': 'compact', indent and separators leave no choice"
        )
    if indent is not None:
        if type(indent) is not int or not 0 <= indent <= 64:
            raise ConstrainError(f"indent must be an integer from 0 to 64, not {indent!r}")
        if separators is not None or whitespace == "compact":
            raise ConstrainError("indent says all about white space: it goes with no other option for it")
        return _indented(indent, 0, notation)
    if separators is not None:
        comma, colon = (_separator(text, mark) for text, mark in zip(separators, ",:", strict=True))
        return Layout(r.EPSILON, comma, colon, notation)
    gap = before_mark = r.EPSILON
    if whitespace == "flexible":
        gap, before_mark = USUAL_GAP, USUAL_GAP_BEFORE_MARK
        if max_whitespace is not None:
            gap = before_mark = r.repeat(_WHITE_SPACE, 0, max_whitespace)
    return Layout(gap, r.concat(before_mark, r.literal(",")), r.concat(before_mark, r.literal(":")), notation)


@lru_cache(maxsize=16)
def layout_of_patterns(
    gap: r.Regular, separators: tuple[r.Regular, r.Regular], notation: Notation, inside: r.Regular = r.EPSILON
) -> Layout:
    """The layout with a gap before each token, and with separators as :func:`separator_matching` gives them.

    ``inside`` is what stands behind an opening bracket and before a closing one beside that.
    """
    comma, colon = separators
    layout = Layout(gap, r.concat(gap, comma), r.concat(gap, colon), notation)
    if inside is not r.EPSILON:
        layout.first_array, layout.first_object = r.concat(r.literal("["), inside), r.concat(r.literal("{"), inside)
        layout.open_array, layout.open_object = r.concat(gap, layout.first_array), r.concat(gap, layout.first_object)
        layout.close_array = r.concat(inside, layout.close_array)
        layout.close_object = r.concat(inside, layout.close_object)
    return layout


MARKS = (r.literal(","), r.literal(":"))
"""Separators without white space of their own."""


@lru_cache(maxsize=64)
def space_matching(pattern: str) -> r.Regular:
    """The JSON white space that a pattern matches.

    Raises GrammarError if it is no pattern, or matches none, not even that of no characters.
    """
    space = r.intersect(regex_language(pattern), ANY_SPACE)
    if Automaton(space).is_empty(_SEARCH_LIMIT):
        raise GrammarError("it matches no white space of JSON")
    return space


@lru_cache(maxsize=64)
def separator_matching(pattern: str, mark: str) -> r.Regular:
    """What a pattern matches that is a comma or a colon (``mark``) with JSON white space around it.

    Raises GrammarError if it is no pattern, or matches nothing of the kind.
    """
    found = r.intersect(regex_language(pattern), r.concat(ANY_SPACE, r.literal(mark), ANY_SPACE))
    if Automaton(found).is_empty(_SEARCH_LIMIT):
        name = "comma" if mark == "," else "colon"
        raise GrammarError(f"it matches no {name} with white space around it; other separators are not supported")
    return found


@lru_cache(maxsize=8)
def any_space_layout(notation: Notation) -> Layout:
    """The layout with any JSON white space, as much as one likes."""
    return layout_of_patterns(ANY_SPACE, MARKS, notation)


def _separator(text: str, mark: str) -> r.Regular:
    if not isinstance(text, str) or text.strip(" \t\n\r") != mark:
        raise ConstrainError(f"separators must be a comma and a colon, with white space around them, not {text!r}")
    return r.literal(text)


@lru_cache(maxsize=4096)
def named_keys(layout: Layout, name: str) -> tuple[r.Regular, r.Regular]:
    """:meth:`Layout.keys` of a name."""
    return layout.keys(lambda spelling: spelling.text(name))


def other_keys(layout: Layout, names: Iterable[str]) -> tuple[r.Regular, r.Regular]:
    """:meth:`Layout.keys` of every name that is not in ``names``, however it is spelled.

    Of a few names, the same objects each time.
    """
    excluded = tuple(names)
    if not excluded:
        return layout.any_keys
    make = _keys_without if len(excluded) <= _MOST_KNOWN_NAMES else _keys_without.__wrapped__
    return make(layout, excluded)


# What is kept for other schemas has no more names than that.
_MOST_KNOWN_NAMES = 64


@lru_cache(maxsize=256)
def _keys_without(layout: Layout, names: tuple[str, ...]) -> tuple[r.Regular, r.Regular]:
    def spell(spelling: Spelling) -> r.Regular:
        # Different names have no spelling in common, and nothing here is to be compared with anything.
        excluded = r.union_of_distinct([spelling.text(name) for name in names])
        return spelling.body if excluded is r.EMPTY else r.without(spelling.body, excluded)

    return layout.keys(spell)
