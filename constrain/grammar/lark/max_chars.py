"""``[max_chars=N]``: a rule that is over after so many characters, wherever it is.

    name[max_chars=3]: /[a-z]+!/            a! ab! abc

As a language: the texts of the rule of at most N characters, and the beginnings of its texts that have just N.
"""

from __future__ import annotations

from constrain.grammar.lark.first_ends import first_ends
from constrain.grammar.regular import (
    EMPTY,
    EPSILON,
    ByteSet,
    Concat,
    Literal,
    Regular,
    Repeat,
    Union,
    byte_range,
    complement,
    concat,
    intersect,
    literal,
    optional,
    repeat,
    union,
)
from constrain.grammar.utf8 import ALL, encode

UNLIMITED = 1_000_000_000
"""No text is as long."""

_CHARACTER = encode(ALL)
_ANY_BYTES = repeat(byte_range(0, 255))


def cut_after(language: Regular, most: int, *, has_first_end: bool) -> Regular | None:
    """What a rule with this language is that is over after ``most`` characters; None if that cannot be said.

    Parameters
    ----------
    language : Regular
    most : int
    has_first_end : bool
        Whether the rule ends at its first end too.
    """
    if most >= UNLIMITED:
        return first_ends(language) if has_first_end else language
    beginnings = _beginnings(language)
    if beginnings is None:
        return None
    cut = intersect(beginnings, repeat(_CHARACTER, most, most))
    if has_first_end:
        cut = intersect(cut, complement(concat(language, _ANY_BYTES)))
        language = first_ends(language)
    return union(intersect(language, repeat(_CHARACTER, 0, most)), cut)


def _beginnings(language: Regular) -> Regular | None:
    """All beginnings of the strings of a language, with themselves; None for intersections and complements."""
    if isinstance(language, Literal):
        found: Regular = EPSILON
        for byte in reversed(language.data):
            found = optional(concat(literal(bytes((byte,))), found))
        return found
    if isinstance(language, ByteSet):
        return optional(language)
    if isinstance(language, Union):
        parts = [_beginnings(part) for part in language.parts]
        return None if None in parts else union(*(part for part in parts if part is not None))
    if isinstance(language, Concat):
        result: Regular = EMPTY
        for index, part in enumerate(language.parts):
            inner = _beginnings(part)
            if inner is None:
                return None
            result = union(result, concat(*language.parts[:index], inner))
        return result
    if isinstance(language, Repeat):
        inner = _beginnings(language.item)
        if inner is None or language.high == 0:
            return inner and EPSILON
        return concat(repeat(language.item, 0, None if language.high is None else language.high - 1), inner)
    return language if language is EMPTY else None
