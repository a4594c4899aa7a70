"""How values are written where JSON leaves a choice: which spellings of text, and which of numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import get_args

from constrain.grammar.json_schema.lexical.numbers import ANY_NUMBER, PLAIN_NUMBER, NumberForm, number_language
from constrain.grammar.json_schema.lexical.strings import ALL_ESCAPES, Spelling, spelling_for
from constrain.grammar.languages.regular import Regular, complement, concat, counted, intersect, literal, union
from constrain.grammar.languages.substrings import occurs_in
from constrain.grammar.languages.utf8 import CodePoints
from constrain.grammar.schema_options import UnicodeEscapes

_QUOTE = literal('"')

NULL = literal("null")
TRUE = literal("true")
FALSE = literal("false")
BOOLEAN = union(TRUE, FALSE)

Spell = Callable[[Spelling], Regular]
"""A set of strings as a function: how its members may be written in a spelling, without quotes."""


class Notation:
    """The choices, and the languages of the scalars of which nothing more is demanded.

    Parameters
    ----------
    is_canonical : bool
        Text, and the numbers of ``enum`` and ``const``, as ``json.dumps`` writes them.
    ensure_ascii : bool
        Characters beyond ASCII as ``\\uXXXX`` only.
    is_plain : bool
        Numbers without exponent, and integers without fraction.
    numbered, escapes : str
        Which escapes there are (see :class:`~.strings.Spelling`).

    Attributes
    ----------
    spelling : Spelling
    quotes : tuple of (Regular, Spelling)
        What may stand around a string, each with the spelling between two of it.  The first is ``spelling``.
    string : Regular
    numbers : dict of NumberForm to Regular
    null, true, false, boolean : Regular
    """

    null, true, false, boolean = NULL, TRUE, FALSE, BOOLEAN

    def __init__(
        self,
        *,
        is_canonical: bool,
        ensure_ascii: bool,
        is_plain: bool,
        numbered: UnicodeEscapes = "any",
        escapes: str = ALL_ESCAPES,
    ) -> None:
        self.is_canonical = is_canonical
        self.is_plain = is_plain
        self.write_strings_in(((_QUOTE, spelling_for(is_canonical, ensure_ascii, numbered, escapes)),))
        self.numbers = {
            NumberForm.ANY: PLAIN_NUMBER if is_plain else ANY_NUMBER,
            NumberForm.INTEGRAL: number_language(NumberForm.INTEGRAL, is_plain=is_plain),
            NumberForm.NO_FRACTION: number_language(NumberForm.NO_FRACTION),
        }

    def write_strings_in(self, quotes: tuple[tuple[Regular, Spelling], ...]) -> None:
        """Set how strings are written, while the notation is made."""
        self.quotes = quotes
        self.spelling = quotes[0][1]
        self.string = self.strings(any_text)

    def strings(self, spell: Spell) -> Regular:
        """Strings, in quotes."""
        return union(*(concat(quote, spell(spelling), quote) for quote, spelling in self.quotes))


def any_text(spelling: Spelling) -> Regular:
    """All strings."""
    return spelling.body


@lru_cache(maxsize=64)
def notation_for(
    is_canonical: bool,
    ensure_ascii: bool,
    is_plain: bool,
    numbered: UnicodeEscapes,
    escapes: str,
) -> Notation:
    """The one notation of these choices."""
    return Notation(
        is_canonical=is_canonical,
        ensure_ascii=ensure_ascii,
        is_plain=is_plain,
        numbered=numbered,
        escapes=escapes,
    )


USUAL_NOTATION = notation_for(False, False, False, "any", ALL_ESCAPES)
"""Every spelling of text, and of numbers those of :mod:`~.numbers`."""


@cache
def all_notations() -> tuple[Notation, ...]:
    """Those with every escape, made when first asked for."""
    return tuple(
        notation_for(*(bool(choice & bit) for bit in (1, 2, 4)), numbered, ALL_ESCAPES)
        for choice in range(8)
        for numbered in get_args(UnicodeEscapes)
    )


# -- notations in which some texts do not occur as they are, neither in keys nor in strings ---------------


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
