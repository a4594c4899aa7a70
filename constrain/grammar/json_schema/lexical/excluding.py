"""Notations in which some strings do not occur, neither in keys nor in strings that no pattern or format describes.

Marks occur in no string at all: what stands around a value reads them as its own.
"""

from __future__ import annotations

from functools import lru_cache

from constrain.grammar.json_schema.lexical.notation import USUAL_NOTATION, Notation
from constrain.grammar.json_schema.lexical.strings import Spelling
from constrain.grammar.regular import Regular, complement, intersect
from constrain.grammar.substrings import occurs_in
from constrain.grammar.utf8 import CodePoints


class _Excluding(Spelling):
    """A spelling of texts that, as they are written, do not hold some strings.

    Patterns and formats are told character by character, so only marks are looked for in them.
    """

    def __init__(self, base: Spelling, excludes: tuple[str, ...], marks: tuple[str, ...]) -> None:
        self._base = base
        self._clean = complement(occurs_in((*excludes, *marks)))
        self._unmarked = complement(occurs_in(marks)) if marks else None
        self.character = base.character
        self.body = intersect(base.body, self._clean)

    @lru_cache(maxsize=1024)  # noqa: B019 (there are few, and they live as long as the module)
    def points(self, points: CodePoints) -> Regular:
        """One character out of a code point set."""
        return self._base.points(points)

    @lru_cache(maxsize=1024)  # noqa: B019
    def text(self, text: str) -> Regular:
        """Exactly this text."""
        return intersect(self._base.text(text), self._clean)

    def any_of(self, texts: tuple[str, ...]) -> Regular:
        """Exactly one of these texts."""
        return intersect(self._base.any_of(texts), self._clean)

    def of_length(self, low: int, high: int | None) -> Regular:
        """Texts of so many characters."""
        return intersect(self._base.of_length(low, high), self._clean)

    @lru_cache(maxsize=1024)  # noqa: B019
    def kept(self, body: Regular) -> Regular:
        """Of texts that were put together of characters, those without a mark."""
        return body if self._unmarked is None else intersect(body, self._unmarked)


class _ExcludingNotation(Notation):
    def __init__(self, base: Notation, excludes: tuple[str, ...], marks: tuple[str, ...]) -> None:
        super().__init__(is_canonical=base.is_canonical, ensure_ascii=False, is_plain=base.is_plain)
        ((quote, spelling),) = base.quotes
        self.write_strings_in(((quote, _Excluding(spelling, excludes, marks)),))


@lru_cache(maxsize=64)
def notation_without(excludes: tuple[str, ...], marks: tuple[str, ...] = ()) -> Notation:
    """The usual notation without some strings, and without some marks."""
    return _ExcludingNotation(USUAL_NOTATION, excludes, marks) if excludes or marks else USUAL_NOTATION
