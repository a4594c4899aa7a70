"""``[max_chars=N]``: a rule that is over after so many characters, wherever it is.

    name[max_chars=3]: /[a-z]+!/            a! ab! abc

As a language: the texts of the rule of at most N characters, and the beginnings of its texts that have just N.
Beginnings are of whole characters.
"""

from __future__ import annotations

from constrain.grammar import regular as r
from constrain.grammar.lark.first_ends import first_ends
from constrain.grammar.substrings import ANY_BYTES
from constrain.grammar.utf8 import ANY_CHAR

UNLIMITED = 1_000_000_000
"""No text is as long."""


def cut_after(
    language: r.Regular, most: int, *, has_first_end: bool, cuts: dict[r.Regular, r.Regular] | None = None
) -> r.Regular | None:
    """What a rule with this language is that is over after ``most`` characters; None if that cannot be said.

    Parameters
    ----------
    language : Regular
    most : int
    has_first_end : bool
        Whether the rule ends at its first end too.
    cuts : dict, optional
        The beginnings of what other rules are that are cut, which may be parts of this one; this one's are added.
    """
    cuts = {} if cuts is None else cuts
    if most >= UNLIMITED:
        return first_ends(language) if has_first_end else language
    beginnings = _beginnings(language, cuts)
    if beginnings is None:
        return None
    cut = r.intersect(beginnings, r.repeat(ANY_CHAR, most, most))
    if has_first_end:
        cut = r.intersect(cut, r.complement(r.concat(language, ANY_BYTES)))
        language = first_ends(language)
    found = r.union(r.intersect(language, r.repeat(ANY_CHAR, 0, most)), cut)
    if not has_first_end:
        # Whatever is no longer can be gone on with until it is over.
        cuts[found] = r.intersect(beginnings, r.repeat(ANY_CHAR, 0, most))
    return found


def _holds_its_beginnings(language: r.Regular) -> bool:
    """Whether all beginnings of its strings are in the language, as far as can be seen."""
    if isinstance(language, r.Intersect):
        return all(map(_holds_its_beginnings, language.parts))
    if isinstance(language, r.Complement):
        return isinstance(language.item, r.Concat) and language.item.parts[-1] == ANY_BYTES
    return isinstance(language, r.Repeat) and language.low == 0 and language.item == ANY_CHAR


def _beginnings(language: r.Regular, cuts: dict[r.Regular, r.Regular]) -> r.Regular | None:
    """All beginnings of the strings of a language, with themselves; None for most intersections and complements."""
    if language in cuts:
        return cuts[language]
    if _holds_its_beginnings(language):
        return language
    if isinstance(language, r.Literal):
        found: r.Regular = r.EPSILON
        for byte in reversed(language.data):
            found = r.optional(r.concat(r.literal(bytes((byte,))), found))
        return found
    if isinstance(language, r.ByteSet):
        return r.optional(language)
    if isinstance(language, r.Union):
        parts = [_beginnings(part, cuts) for part in language.parts]
        return None if None in parts else r.union(*(part for part in parts if part is not None))
    if isinstance(language, r.Concat):
        result: r.Regular = r.EMPTY
        for index, part in enumerate(language.parts):
            inner = _beginnings(part, cuts)
            if inner is None:
                return None
            result = r.union(result, r.concat(*language.parts[:index], inner))
        return result
    if isinstance(language, r.Repeat):
        inner = _beginnings(language.item, cuts)
        if inner is None or language.high == 0:
            return inner and r.EPSILON
        return r.concat(r.repeat(language.item, 0, None if language.high is None else language.high - 1), inner)
    return language if language is r.EMPTY else None
