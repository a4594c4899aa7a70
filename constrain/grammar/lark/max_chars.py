"""``[max_chars=N]``: a rule that is over after so many characters, or where it can first end behind them.

name[max_chars=3]: /[a-z]*!?/           a  ab  abc  ab!  abc! is not, as abc has been the end
name[max_chars=3]: /[a-z]*!/            a!  ab!  abcd!
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import groupby

from constrain.errors import ConstrainError
from constrain.grammar import regular as r
from constrain.grammar.derivatives import Automaton
from constrain.grammar.lark.first_ends import first_ends
from constrain.grammar.quotation import Quotation
from constrain.grammar.substrings import ANY_BYTES
from constrain.grammar.utf8 import ANY_CHAR, ANY_TEXT
from constrain.limits import spend

_UNLIMITED = 1_000_000_000
"""No text is as long."""

# Steps for a part of a language in which characters are not seen at once.
_MOST_STEPS = 200_000


def over_after(
    language: r.Regular, most: int, make_error: Callable[[str], ConstrainError], body: r.Regular | None = None
) -> r.Regular:
    """What a rule is that is over after ``most`` characters.

    Parameters
    ----------
    language : Regular
        What it is without that; with a first end, its texts end there.
    most : int
    make_error : callable (str) -> ConstrainError
        Says where the rule is.
    body : Regular, optional
        Of a rule that names its end: what stands before it.  Behind the last character that may be all.

    Raises
    ------
    ConstrainError
        By ``make_error``: if a text of the rule may have bytes that are no characters.
    """
    if most >= _UNLIMITED:
        return language
    if not all(_Characters().are_all_of(each) for each in (language, body) if each is not None):
        raise make_error("[max_chars] counts characters, and a text of the rule may have bytes that are not UTF-8")
    whole = language
    if body is not None:
        whole = r.union(language, r.intersect(body, r.complement(r.concat(language, ANY_BYTES))))
    late = first_ends(r.intersect(whole, r.repeat(ANY_CHAR, most)))
    return r.union(r.intersect(language, r.repeat(ANY_CHAR, 0, most - 1)), late) if most else late


class _Characters:
    """Tells languages of whole characters; what rules share is looked at once."""

    def __init__(self) -> None:
        # By identity: the languages are parts of one that is being asked about.
        self._known: dict[int, bool] = {}

    def are_all_of(self, language: r.Regular) -> bool:
        """Whether all strings of a language are UTF-8; False also where that takes too long to find out."""
        found = self._known.get(id(language))
        if found is None:
            spend()
            found = self._known[id(language)] = self._find(language)
        return found

    def _find(self, language: r.Regular) -> bool:
        if isinstance(language, Quotation):
            return True
        if isinstance(language, r.Union):
            return all(map(self.are_all_of, language.parts))
        if isinstance(language, r.Repeat) and self.are_all_of(language.item):
            return True
        if isinstance(language, r.Intersect) and any(map(self.are_all_of, language.parts)):
            return True
        if isinstance(language, r.Concat):
            # A character may lie in several parts, but in none beside a part that is characters by itself.
            runs = groupby(language.parts, self.are_all_of)
            return all(is_all or _is_text(r.concat(*parts)) for is_all, parts in runs)
        return _is_text(language)


@lru_cache(maxsize=1024)
def _is_text(language: r.Regular) -> bool:
    return Automaton(r.intersect(language, r.complement(ANY_TEXT))).is_empty(_MOST_STEPS) is True
