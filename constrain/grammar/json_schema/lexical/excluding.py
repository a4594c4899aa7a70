"""Notations in which some texts do not occur as they are, neither in keys nor in strings."""

from __future__ import annotations

from functools import lru_cache

from constrain.grammar.json_schema.lexical.notation import USUAL_NOTATION, Notation
from constrain.grammar.json_schema.lexical.strings import Spelling
from constrain.grammar.regular import Regular, complement, counted, intersect
from constrain.grammar.substrings import occurs_in
from constrain.grammar.utf8 import CodePoints


class _Excluding(Spelling):
    """A spelling of texts that, as they are written, do not hold some others."""

    def __init__(self, base: Spelling, excludes: tuple[str, ...]) -> None:
        self._base = base
        self._clean = complement(occurs_in(excludes))
        self.excludes = excludes
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
        return counted(self.body, self.character, low, high)

    @lru_cache(maxsize=1024)  # noqa: B019
    def kept(self, body: Regular) -> Regular:
        """Of texts that were put together of characters, those that hold none of the others."""
        return intersect(body, self._clean)


class _ExcludingNotation(Notation):
    def __init__(self, base: Notation, excludes: tuple[str, ...]) -> None:
        super().__init__(is_canonical=base.is_canonical, ensure_ascii=False, is_plain=base.is_plain)
        ((quote, spelling),) = base.quotes
        self.write_strings_in(((quote, _Excluding(spelling, excludes)),))


@lru_cache(maxsize=64)
def notation_without(excludes: tuple[str, ...]) -> Notation:
    """The usual notation without some texts."""
    return _ExcludingNotation(USUAL_NOTATION, excludes) if excludes else USUAL_NOTATION
