"""``[max_chars=N]``: a rule that is over after so many characters, or where it can first end behind them.

name[max_chars=3]: /[a-z]*!?/           a  ab  abc  ab!  abc! is not, as abc has been the end
name[max_chars=3]: /[a-z]*!/            a!  ab!  abcd!
"""

from __future__ import annotations

from collections.abc import Callable

from constrain.errors import ConstrainError
from constrain.grammar.languages import regular as r
from constrain.grammar.languages.substrings import ANY_BYTES
from constrain.grammar.languages.utf8 import ANY_CHAR
from constrain.grammar.languages.whole_characters import has_whole_characters
from constrain.grammar.lark.first_ends import first_ends

_UNLIMITED = 1_000_000_000
"""No text is as long."""


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
    if not all(has_whole_characters(each) for each in (language, body) if each is not None):
        raise make_error("[max_chars] counts characters, and a text of the rule may have bytes that are not UTF-8")
    whole = language
    if body is not None:
        whole = r.union(language, r.intersect(body, r.complement(r.concat(language, ANY_BYTES))))
    late = first_ends(r.intersect(whole, r.repeat(ANY_CHAR, most)))
    return r.union(r.intersect(language, r.repeat(ANY_CHAR, 0, most - 1)), late) if most else late
