"""How JSON spells text: the byte sequences that stand for characters between two quotes.

Every character may be written raw (but for controls, ``"`` and ``\\``), by its short escape where it has one, and as
``\\uXXXX`` with hexadecimal digits in either case, a pair of them above U+FFFF.  A pair is one character.
Half a pair stands for nothing: a lone surrogate is not text.
"""

from __future__ import annotations

from functools import lru_cache

from constrain.grammar.prefix_tree import prefix_tree
from constrain.grammar.regular import Concat, Regular, byte_set, concat, literal, repeat, union
from constrain.grammar.utf8 import ALL, CodePoints, common, encode, negate

_SHORT_ESCAPES = {0x22: '"', 0x5C: "\\", 0x2F: "/", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}
_RAW: CodePoints = negate(((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C)))
_BASIC: CodePoints = ((0x0000, 0xD7FF), (0xE000, 0xFFFF))
_ASTRAL: CodePoints = ((0x10000, 0x10FFFF),)

_HEX_DIGITS = ["0123456789abcdef"[value] for value in range(16)]


@lru_cache(maxsize=4096)
def spell_points(points: CodePoints) -> Regular:
    """One character out of a code point set, in every spelling."""
    shorts = [
        escape for point, escape in _SHORT_ESCAPES.items() if any(first <= point <= last for first, last in points)
    ]
    return union(
        encode(common(points, _RAW)),
        concat(literal("\\"), _one_byte("".join(shorts).encode())),
        concat(literal("\\u"), _hexadecimal(common(points, _BASIC), 4)),
        _surrogate_pairs(common(points, _ASTRAL)),
    )


def _surrogate_pairs(points: CodePoints) -> Regular:
    """``\\uD83D\\uDE00`` and its like for the code points of a set above U+FFFF."""
    by_low: dict[CodePoints, list[tuple[int, int]]] = {}
    for first, last in points:
        first, last = first - 0x10000, last - 0x10000
        high, top = first >> 10, last >> 10
        if high == top:
            by_low.setdefault(((first & 0x3FF, last & 0x3FF),), []).append((high, high))
            continue
        if first & 0x3FF:
            by_low.setdefault(((first & 0x3FF, 0x3FF),), []).append((high, high))
            high += 1
        if last & 0x3FF != 0x3FF:
            by_low.setdefault(((0, last & 0x3FF),), []).append((top, top))
            top -= 1
        if high <= top:
            by_low.setdefault(((0, 0x3FF),), []).append((high, top))
    return union(
        *(
            concat(
                literal("\\u"),
                _hexadecimal(tuple((0xD800 + first, 0xD800 + last) for first, last in sorted(highs)), 4),
                literal("\\u"),
                _hexadecimal(tuple((0xDC00 + first, 0xDC00 + last) for first, last in lows), 4),
            )
            for lows, highs in by_low.items()
        )
    )


@lru_cache(maxsize=4096)
def _hexadecimal(numbers: CodePoints, digits: int) -> Regular:
    """The numbers of a set (ranges below ``16 ** digits``) in that many hexadecimal digits, either case."""
    if digits == 0:
        return literal("")
    unit = 16 ** (digits - 1)
    if numbers == ((0, 16 * unit - 1),):
        return repeat(byte_set(b"0123456789abcdefABCDEF"), digits, digits)
    by_rest: dict[CodePoints, str] = {}
    for value, digit in enumerate(_HEX_DIGITS):
        rest = common(numbers, ((value * unit, (value + 1) * unit - 1),))
        if rest:
            rest = tuple((first - value * unit, last - value * unit) for first, last in rest)
            by_rest[rest] = by_rest.get(rest, "") + digit
    return union(
        *(
            concat(_one_byte((leading + leading.upper()).encode()), _hexadecimal(rest, digits - 1))
            for rest, leading in by_rest.items()
        )
    )


def _one_byte(members: bytes) -> Regular:
    distinct = set(members)
    return literal(members[:1]) if len(distinct) == 1 else byte_set(distinct)


ANY_CHARACTER: Regular = spell_points(ALL)
"""One character between the quotes, in every spelling."""

ANY_BODY: Regular = repeat(ANY_CHARACTER)
"""Everything that can stand between the quotes."""


ASCII_CHARACTERS: dict[str, Regular] = {chr(point): spell_points(((point, point),)) for point in range(0x20, 0x7F)}
"""Each printable ASCII character, in every spelling."""


@lru_cache(maxsize=1024)
def _spell_character(character: str) -> Regular:
    return ASCII_CHARACTERS.get(character) or spell_points(((ord(character), ord(character)),))


@lru_cache(maxsize=4096)
def spell(text: str) -> Regular:
    """Exactly this text, in every spelling (it must hold no lone surrogate)."""
    # No character has just one spelling, so there are no literals to join.
    return Concat(tuple(map(_spell_character, text))) if len(text) > 1 else concat(*map(_spell_character, text))


def spell_any(texts: tuple[str, ...]) -> Regular:
    """Exactly one of these texts, in every spelling."""
    return prefix_tree(texts, spell)


def is_text(value: str) -> bool:
    """Whether a string can be written as UTF-8, that is, holds no lone surrogate."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
