"""Whether a language is one of whole characters, or may have bytes that are not UTF-8."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from constrain.grammar.languages import regular as r
from constrain.grammar.languages.derivatives import Automaton
from constrain.grammar.languages.quotation import Quotation
from constrain.grammar.languages.utf8 import ANY_TEXT
from constrain.limits import spend

# Steps for a language in which that is not seen by its form.
_MOST_STEPS = 20_000

_Rest = tuple[int, int, int]
"""What a character lacks: the bounds of its next byte, and how many follow that."""

_NOTHING: _Rest = (0, 0, -1)


def has_whole_characters(language: r.Regular) -> bool:
    """Whether all strings of a language are UTF-8; False also where that takes too long to find out."""
    rests = _Reader().after(language, _NOTHING)
    # Intersections and complements may hold less than their parts say.
    return (rests is not None and rests <= {_NOTHING}) or _is_text(language)


class _Reader:
    """Follows the strings of a language through their characters; what parts of it share is looked at once."""

    def __init__(self) -> None:
        # By identity: the languages are parts of one that is being asked about.
        self._known: dict[tuple[int, _Rest], frozenset[_Rest] | None] = {}

    def after(self, language: r.Regular, rest: _Rest) -> frozenset[_Rest] | None:
        """What may be lacking behind a string of a language; None if that may be no part of UTF-8."""
        key = id(language), rest
        if key not in self._known:
            spend()
            self._known[key] = self._find(language, rest)
        return self._known[key]

    def _find(self, language: r.Regular, rest: _Rest) -> frozenset[_Rest] | None:
        found: frozenset[_Rest] | None = frozenset((rest,))
        if isinstance(language, Quotation):
            return found if rest == _NOTHING else None
        if isinstance(language, r.ByteSet):
            return _behind(language.bits, rest)
        if isinstance(language, r.Literal):
            for byte in language.data:
                found = self._all(lambda each, bits=1 << byte: _behind(bits, each), found)  # type: ignore[misc]
            return found
        if isinstance(language, r.Concat):
            for part in language.parts:
                found = self._all(lambda each, part=part: self.after(part, each), found)  # type: ignore[misc]
            return found
        if isinstance(language, r.Union):
            return _together(self.after(part, rest) for part in language.parts)
        if isinstance(language, r.Repeat):
            return self._repeated(language, rest)
        some = [self.after(part, rest) for part in language.parts] if isinstance(language, r.Intersect) else []
        known = [each for each in some if each is not None]
        if known:
            return frozenset.intersection(*known)
        return found if rest == _NOTHING and _is_text(language) else None

    def _all(
        self, behind: Callable[[_Rest], frozenset[_Rest] | None], rests: frozenset[_Rest] | None
    ) -> frozenset[_Rest] | None:
        return None if rests is None else _together(map(behind, rests))

    def _repeated(self, language: r.Repeat, rest: _Rest) -> frozenset[_Rest] | None:
        now: frozenset[_Rest] | None = frozenset((rest,))
        found: set[_Rest] = {rest} if language.low == 0 else set()
        seen: set[frozenset[_Rest]] = set()
        count = 0
        # It comes back to where it was, at once for whole characters.
        while (language.high is None or count < language.high) and (now not in seen or count < language.low):
            assert now is not None
            before = now
            seen.add(now)
            now = self._all(lambda each: self.after(language.item, each), now)
            if now is None:
                return None
            count = count + 1 if now != before else max(count + 1, language.low)
            if count >= language.low:
                found |= now
        return frozenset(found)


def _together(some: Iterable[frozenset[_Rest] | None]) -> frozenset[_Rest] | None:
    found: set[_Rest] = set()
    for each in some:
        if each is None:
            return None
        found |= each
    return frozenset(found)


@lru_cache(maxsize=4096)
def _behind(bits: int, rest: _Rest) -> frozenset[_Rest] | None:
    """The same of one byte out of a set."""
    return _together(_behind_byte(byte, rest) for byte in range(256) if bits >> byte & 1)


def _behind_byte(byte: int, rest: _Rest) -> frozenset[_Rest] | None:
    low, high, more = rest
    if more >= 0:
        if not low <= byte <= high:
            return None
        return frozenset(((0x80, 0xBF, more - 1) if more else _NOTHING,))
    if byte < 0x80:
        return frozenset((_NOTHING,))
    if not 0xC2 <= byte <= 0xF4:
        return None
    low, high = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}.get(byte, (0x80, 0xBF))
    return frozenset(((low, high, (byte >= 0xE0) + (byte >= 0xF0)),))


@lru_cache(maxsize=1024)
def _is_text(language: r.Regular) -> bool:
    return Automaton(r.intersect(language, r.complement(ANY_TEXT))).is_empty(_MOST_STEPS) is True
