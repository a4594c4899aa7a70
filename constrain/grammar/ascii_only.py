"""A language without its strings that are not pure ASCII."""

from __future__ import annotations

from functools import lru_cache

from constrain.grammar.regular import (
    EMPTY,
    ByteSet,
    Complement,
    Concat,
    Intersect,
    Literal,
    Regular,
    Repeat,
    Union,
    byte_range,
    concat,
    intersect,
    repeat,
    union,
)

_BITS = (1 << 128) - 1
_TEXT = repeat(byte_range(0, 127))


@lru_cache(maxsize=4096)
def ascii_only(language: Regular) -> Regular:
    """The strings of a language all of whose bytes are below 128."""
    # Kept by content, so that what many grammars share stays one object for all of them.
    if isinstance(language, Literal):
        return language if language.data.isascii() else EMPTY
    if isinstance(language, ByteSet):
        bits = language.bits & _BITS
        return language if bits == language.bits else ByteSet(bits) if bits else EMPTY
    if isinstance(language, (Concat, Union)):
        parts = tuple(map(ascii_only, language.parts))
        if all(new is old for new, old in zip(parts, language.parts, strict=True)):
            return language
        return concat(*parts) if isinstance(language, Concat) else union(*parts)
    if isinstance(language, Intersect):
        # One part that is ASCII is enough for all of them; complements stay what they are.
        parts = tuple(part if isinstance(part, Complement) else ascii_only(part) for part in language.parts)
        return intersect(*parts, _TEXT) if all(isinstance(part, Complement) for part in parts) else intersect(*parts)
    if isinstance(language, Repeat):
        item = ascii_only(language.item)
        return language if item is language.item else repeat(item, language.low, language.high)
    if isinstance(language, Complement):
        return intersect(_TEXT, language)
    return language
