"""A language without upper bounds of repetitions: larger, and with few states."""

from __future__ import annotations

from constrain.grammar.languages.regular import (
    Concat,
    Intersect,
    Regular,
    Repeat,
    Union,
    concat,
    intersect,
    repeat,
    union,
)

# Shorter repetitions are left as they are.
_FEW = 4

_MOST_LEVELS = 30


def without_bounds(language: Regular, level: int = 0) -> Regular:
    """A language that holds all of another one, in which long repetitions are endless."""
    if level > _MOST_LEVELS:
        return language
    if isinstance(language, Repeat):
        item = without_bounds(language.item, level + 1)
        if language.low > _FEW or (language.high is not None and language.high > _FEW):
            return repeat(item, min(language.low, 1), None)
        return language if item is language.item else repeat(item, language.low, language.high)
    if isinstance(language, (Concat, Union, Intersect)):
        parts = [without_bounds(part, level + 1) for part in language.parts]
        if all(new is old for new, old in zip(parts, language.parts, strict=True)):
            return language
        make = union if isinstance(language, Union) else intersect if isinstance(language, Intersect) else concat
        return make(*parts)
    # What a complement holds must not become more.
    return language
