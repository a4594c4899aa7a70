"""Whether every beginning of a string of a language goes on in infinitely many ways, as far as its expression shows it.

``[a-z]+`` is such a language, and ``x-.*``; ``[a-z]+_id`` is not, since after ``x_`` there is one way only.
"""

from __future__ import annotations

from functools import lru_cache

from constrain.grammar.languages.regular import EPSILON, Complement, Concat, Intersect, Regular, Repeat, Union

_MOST_LEVELS = 30


def is_endless(language: Regular, whole: Regular | None = None) -> bool:
    """Whether every beginning goes on in infinitely many ways; False where the expression does not show it.

    ``whole`` is an endless language that the others, which it may be intersected with, are part of.
    """
    return language is whole or _is_endless(language, whole, 0)


def _is_endless(language: Regular, whole: Regular | None, level: int) -> bool:
    if level > _MOST_LEVELS:
        return False
    if isinstance(language, Repeat):
        return (language.high is None and _is_long(language.item, level + 1)) or _is_endless(
            language.item, whole, level + 1
        )
    if isinstance(language, Concat):
        # What is before an endless part can be finished, and then goes on without end.
        for part in reversed(language.parts):
            if _is_infinite(part, whole, level + 1):
                return _is_endless(part, whole, level + 1)
            if not _is_endless(part, whole, level + 1):
                return False
        return False
    if isinstance(language, Union):
        # The empty string has no beginning that the others do not have.
        parts = [part for part in language.parts if part is not EPSILON]
        return bool(parts) and all(_is_endless(part, whole, level + 1) for part in parts)
    if isinstance(language, Intersect):
        # Without finitely many strings, infinitely many are still infinitely many.
        rest = [
            part
            for part in language.parts
            if part is not whole and not (isinstance(part, Complement) and is_finite(part.item))
        ]
        return (not rest and whole in language.parts) or (len(rest) == 1 and _is_endless(rest[0], whole, level + 1))
    return False


def _is_infinite(language: Regular, whole: Regular | None, level: int) -> bool:
    """Whether a language certainly has infinitely many strings."""
    if level > _MOST_LEVELS:
        return False
    if isinstance(language, Repeat):
        return (language.high is None and _is_long(language.item, level + 1)) or (
            language.high != 0 and _is_infinite(language.item, whole, level + 1)
        )
    if isinstance(language, (Concat, Union)):
        return any(_is_infinite(part, whole, level + 1) for part in language.parts)
    return isinstance(language, Intersect) and _is_endless(language, whole, level)


@lru_cache(maxsize=1024)
def is_finite(language: Regular) -> bool:
    """Whether a language certainly has finitely many strings."""
    seen: set[int] = set()
    todo = [(language, 0)]
    for part, level in todo:
        if level > _MOST_LEVELS or isinstance(part, (Intersect, Complement)):
            return False
        if isinstance(part, Repeat) and part.high is None:
            return False
        if id(part) not in seen:
            seen.add(id(part))
            todo += [(inner, level + 1) for inner in part.inner]
    return True


def _is_long(language: Regular, level: int) -> bool:
    """Whether a language certainly has a string that is not empty."""
    return level <= _MOST_LEVELS and not isinstance(language, (Intersect, Complement))
