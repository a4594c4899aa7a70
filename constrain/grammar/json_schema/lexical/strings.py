"""How JSON spells text: the byte sequences that stand for characters between two quotes.

Every character may be written raw (but for controls, ``"`` and ``\\``), by its short escape where it has one, and as
``\\uXXXX`` with hexadecimal digits in either case, a pair of them above U+FFFF.  A pair is one character.
Half a pair stands for nothing: a lone surrogate is not text.

A :class:`Spelling` is all of these ways or some of them, but never none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from constrain.grammar.languages.prefix_tree import prefix_tree
from constrain.grammar.languages.regular import (
    FIRST_LETTER,
    Concat,
    Regular,
    Word,
    byte_set,
    concat,
    literal,
    repeat,
    union,
)
from constrain.grammar.languages.utf8 import (
    ALL,
    CodePoints,
    by_first_digit,
    common,
    encode,
    holds,
    in_digits,
    negate,
    normalize,
    ranges_of,
)
from constrain.grammar.schema_options import UnicodeEscapes

_Found = TypeVar("_Found")

ALL_ESCAPES = '"\\/bfnrt'
"""What may stand behind a backslash in JSON, but for ``u``."""

_SHORT_ESCAPES = {0x22: '"', 0x5C: "\\", 0x2F: "/", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}
_RAW: CodePoints = negate(((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C)))
_ASCII: CodePoints = ((0x00, 0x7F),)
# json.dumps(ensure_ascii=True) escapes what is not printable ASCII, so U+007F too.
_PRINTABLE: CodePoints = ((0x20, 0x7E),)
_BASIC: CodePoints = ((0x0000, 0xD7FF), (0xE000, 0xFFFF))
_ASTRAL: CodePoints = ((0x10000, 0x10FFFF),)

_SURROGATES = 0xD800


class Spelling:
    """The ways in which the characters of a text may be written.

    Parameters
    ----------
    canonical : bool
        Each character in one way only, that of ``json.dumps``.
    ensure_ascii : bool
        Characters beyond ASCII as ``\\uXXXX`` only.
    numbered : {"any", "controls", "never"}
        What may be written as ``\\uXXXX``: every character, only controls that have no short escape, or nothing.  What
        cannot be written at all, then, is in no text.
    escapes : str
        Which short escapes there are: the characters that may stand behind a backslash.

    Attributes
    ----------
    character, body : Regular
        One character; and everything that can stand between the quotes.
    unwritable : str
        The ASCII characters for which there is no way.
    excludes : tuple of str
        What no text holds as it is written.
    """

    unwritable = ""
    is_body_all = True
    """Whether ``body`` is all texts, and no narrower choice for those of which a schema says nothing."""
    excludes: tuple[str, ...] = ()
    alphabet: tuple[Regular, ...] = ()
    """Each printable ASCII character, where words are made of these."""

    def __init__(
        self, *, canonical: bool, ensure_ascii: bool, numbered: UnicodeEscapes = "any", escapes: str = ALL_ESCAPES
    ) -> None:
        shorts = {
            point: escape
            for point, escape in _SHORT_ESCAPES.items()
            if escape in escapes and not (canonical and escape == "/")
        }
        self._shorts = shorts
        self._raw = common(_RAW, (_PRINTABLE if canonical else _ASCII) if ensure_ascii else ALL)
        # What may be written by its number.
        self._numbered = ALL
        if canonical:
            self._numbered = negate(normalize((*self._raw, *((point, point) for point in shorts))))
        if numbered == "controls":
            self._numbered = common(self._numbered, negate(normalize((*_RAW, *((point, point) for point in shorts)))))
        elif numbered == "never":
            self._numbered = ()
        self._either_case = not canonical
        written = (*self._raw, *self._numbered, *((point, point) for point in shorts))
        self.unwritable = "".join(
            chr(point) for first, last in common(negate(normalize(written)), _ASCII) for point in range(first, last + 1)
        )
        self._characters: dict[str, Regular] = {}
        self.character = self.points(ALL)
        self.body = repeat(self.character)

    @lru_cache(maxsize=4096)  # noqa: B019 (there are few, and they live as long as the module)
    def points(self, points: CodePoints) -> Regular:
        """One character out of a code point set."""
        if len(points) == 1 and points[0][0] == points[0][1] < _SURROGATES:
            return self._point(points[0][0])
        shorts = [escape for point, escape in self._shorts.items() if holds(points, point)]
        numbered = common(points, self._numbered)
        return union(
            encode(common(points, self._raw)),
            concat(literal("\\"), _one_byte("".join(shorts).encode())),
            concat(literal("\\u"), hexadecimal(common(numbered, _BASIC), 4, self._either_case)),
            _surrogate_pairs(common(numbered, _ASTRAL), self._either_case),
        )

    def _point(self, point: int) -> Regular:
        """The same for one code point below the surrogates, in a fifth of the time: texts are made of these."""
        alone = ((point, point),)
        escape = self._shorts.get(point)
        ways = [encode(alone)] if holds(self._raw, point) else []
        if escape is not None:
            ways.append(concat(literal("\\"), _one_byte(escape.encode())))
        if holds(self._numbered, point):
            ways.append(concat(literal("\\u"), hexadecimal(alone, 4, self._either_case)))
        return union(*ways)

    @lru_cache(maxsize=4096)  # noqa: B019
    def text(self, text: str) -> Regular:
        """Exactly this text (it must hold no lone surrogate)."""
        if self.alphabet and len(text) > 1 and text.isascii() and text.isprintable():
            return Word(self.alphabet, text.encode())
        known = self._characters
        characters = [known.get(character) or self._new_character(character) for character in text]
        # Where no character has just one spelling there are no literals to join.
        return Concat(tuple(characters)) if len(text) > 1 and self._either_case else concat(*characters)

    def _new_character(self, character: str) -> Regular:
        language = self._characters[character] = self.points(((ord(character), ord(character)),))
        return language

    def of_length(self, low: int, high: int | None) -> Regular:
        """Texts of so many characters."""
        return repeat(self.character, low, high)

    def any_of(self, texts: tuple[str, ...]) -> Regular:
        """Exactly one of these texts."""
        return prefix_tree(texts, self.text)

    def kept(self, body: Regular) -> Regular:
        """Of texts that were put together of characters, those that may stand between the quotes: all of them."""
        return body


def _surrogate_pairs(points: CodePoints, either_case: bool) -> Regular:
    """``\\uD83D\\uDE00`` and its like for the code points of a set above U+FFFF."""
    beyond = tuple((first - 0x10000, last - 0x10000) for first, last in points)
    return union(
        *(
            concat(
                literal("\\u"),
                hexadecimal(tuple((0xD800 + first, 0xD800 + last) for first, last in ranges_of(highs)), 4, either_case),
                literal("\\u"),
                hexadecimal(tuple((0xDC00 + first, 0xDC00 + last) for first, last in lows), 4, either_case),
            )
            for lows, highs in by_first_digit(beyond, 0x400).items()
        )
    )


def hexadecimal(numbers: CodePoints, digits: int, either_case: bool) -> Regular:
    """The numbers of a set (ranges below ``16 ** digits``) in that many hexadecimal digits: small, or either case."""
    if len(numbers) == 1 and numbers[0][0] == numbers[0][1]:
        # The same as below, for one number: each character that a schema names is one.
        written = f"{numbers[0][0]:0{digits}x}"
        return concat(*(_one_byte((digit + digit.upper() * either_case).encode()) for digit in written))
    return in_digits(numbers, digits, 16, _either_case_digit if either_case else _small_digit)


@lru_cache(maxsize=1 << 16)
def _either_case_digit(values: int) -> Regular:
    written = _digits(values)
    return _one_byte((written + written.upper()).encode())


@lru_cache(maxsize=1 << 16)
def _small_digit(values: int) -> Regular:
    return _one_byte(_digits(values).encode())


def _digits(values: int) -> str:
    """The hexadecimal digits whose bits are set."""
    return "".join(digit for value, digit in enumerate("0123456789abcdef") if values >> value & 1)


def _one_byte(members: bytes) -> Regular:
    distinct = set(members)
    return literal(members[:1]) if len(distinct) == 1 else byte_set(distinct)


@lru_cache(maxsize=64)
def spelling_for(
    canonical: bool, ensure_ascii: bool, numbered: UnicodeEscapes = "any", escapes: str = ALL_ESCAPES
) -> Spelling:
    """The one spelling with these properties."""
    return Spelling(canonical=canonical, ensure_ascii=ensure_ascii, numbered=numbered, escapes=escapes)


EVERY_WAY = spelling_for(False, False, "any", ALL_ESCAPES)
"""Every character in every spelling."""


ASCII_CHARACTERS: tuple[Regular, ...] = tuple(
    EVERY_WAY.points(((point, point),)) for point in range(FIRST_LETTER, 0x7F)
)
"""Each printable ASCII character, in every spelling."""

EVERY_WAY.alphabet = ASCII_CHARACTERS


def is_text(value: str) -> bool:
    """Whether a string can be written as UTF-8, that is, holds no lone surrogate."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def find_at_end(text: Callable[[int], bytes], find: Callable[[bytes], _Found | None], what: str) -> _Found:
    """What ``find`` finds in the last bytes of a text, of which it is given more until it does.

    ``text(n)`` are the last ``n`` bytes of the text, or more.  Raises ValueError, which says what was looked for, if it
    is not found in the whole text.
    """
    size = 32
    while True:
        data = text(size)
        found = find(data)
        if found is not None:
            return found
        if len(data) < size:
            raise ValueError(f"the text does not end with {what}")
        size = 4 * len(data)


def string_before(data: bytes, quote: int) -> int:
    """Where the string begins that the quote at ``quote`` ends; -1 if before the data, or if that is not sure."""
    mark = data[quote : quote + 1]
    while True:
        quote = data.rfind(mark, 0, quote)
        if quote < 0:
            return -1
        before = quote
        while before > 0 and data[before - 1] == 0x5C:
            before -= 1
        if before == 0:
            # There may be more backslashes before the data; no string is the first of a whole text.
            return -1
        if (quote - before) % 2 == 0:
            return quote
