"""The regex front-end: a pattern becomes a regular language over bytes, or an error with the place.

The stages, one file each: :mod:`~constrain.grammar.regex.parser` (text to tree, with
:mod:`~constrain.grammar.regex.charsets` for escapes and sets), :mod:`~constrain.grammar.regex.settle`
(look-arounds that their surroundings decide go away), and :mod:`~constrain.grammar.regex.lower` (tree to
:class:`~constrain.grammar.languages.regular.Regular`).  What is supported, and what each dialect means by it, is in
``docs/regex.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.ir import GrammarBuilder, GrammarIR
from constrain.grammar.languages import utf8
from constrain.grammar.languages.regular import Regular
from constrain.grammar.languages.utf8 import CodePoints
from constrain.grammar.regex.charsets import find_posix_class
from constrain.grammar.regex.lengths import with_length
from constrain.grammar.regex.lower import Lowering
from constrain.grammar.regex.nodes import PLAIN
from constrain.grammar.regex.parser import Dialect, parse
from constrain.grammar.regex.settle import settle
from constrain.grammar.regex.spell import Speller
from constrain.grammar.regex.whole import whole_text
from constrain.grammar.words import by_language

__all__ = ["from_regex", "least_length", "regex_code_points", "regex_language", "regex_of_length"]


# Longer patterns are not kept.
_MOST_CHARACTERS = 1000


def regex_language(
    pattern: str, *, flags: str = "", anchored: bool = True, ascii_case: bool = False, dialect: Dialect = "python"
) -> Regular:
    """The texts that a pattern matches, as UTF-8.

    Parameters
    ----------
    pattern : str
    flags : str
        Any of ``i s m x a u``, as in Python's ``re``.
    anchored : bool
        True: the texts that match as a whole.  False: those in which there is a match somewhere.
    ascii_case : bool
        Whether the flag ``i`` is about the letters of ASCII alone, with or without the flag ``a``.
    dialect : "python", "ecma" or "rust"
        Whose meaning ``\\d \\w \\s \\b . ^ $``, escapes and sets have.

    Raises
    ------
    GrammarError
        The pattern is invalid or not supported; ``line`` and ``column`` say where.
    """
    if len(pattern) > _MOST_CHARACTERS:
        return regex_code_points(pattern, flags=flags, anchored=anchored, ascii_case=ascii_case, dialect=dialect)
    return _known_language(pattern, flags, anchored, ascii_case, dialect)


@lru_cache(maxsize=512)
def _known_language(pattern: str, flags: str, anchored: bool, ascii_case: bool, dialect: Dialect) -> Regular:
    """A language that is made once, however many grammars have the pattern: names, numbers, strings, keywords."""
    return regex_code_points(pattern, flags=flags, anchored=anchored, ascii_case=ascii_case, dialect=dialect)


def regex_code_points(
    pattern: str,
    *,
    flags: str = "",
    anchored: bool = True,
    dialect: Dialect = "python",
    encode_char: Callable[[CodePoints], Regular] = utf8.encode,
    ascii_case: bool = False,
) -> Regular:
    """The texts that a pattern matches, with the code points written as ``encode_char`` says.

    Parameters
    ----------
    pattern, flags, anchored, dialect, ascii_case
        As in :func:`regex_language`.
    encode_char : callable
        Takes a set of code points and returns the language of their spellings.  A code point may
        have several spellings.  No spelling may be empty or the beginning of another one, and no
        spelling may belong to two code points.  It must be hashable: results are kept.

    Raises
    ------
    GrammarError
        The pattern is invalid or not supported; ``line`` and ``column`` say where.
    """
    tree = whole_text(parse(pattern, flags, dialect, ascii_case=ascii_case), anchored)
    try:
        if tree.tier == PLAIN:
            return Speller(encode_char).spell(tree)
        tree = settle(tree, at_start=True)
        return Lowering(pattern, tree, encode_char).run()
    except RecursionError:
        raise GrammarError("the look-arounds in this pattern are nested too deeply") from None


def regex_of_length(
    pattern: str, low: int, high: int | None, encode_char: Callable[[CodePoints], Regular] = utf8.encode
) -> Regular | None:
    """The texts of ``low`` to ``high`` code points (None: any number) in which an ECMAScript pattern matches somewhere.

    None if that cannot be written without an intersection.  ``encode_char``, and errors, are those of
    :func:`regex_code_points`.
    """
    tree = whole_text(parse(pattern, "", "ecma"), False)
    bounded = with_length(tree, low, high) if tree.tier == PLAIN else None
    return None if bounded is None else Speller(encode_char).spell(bounded)


def least_length(pattern: str) -> int:
    """A number of code points that no text is shorter than in which an ECMAScript pattern matches somewhere."""
    return whole_text(parse(pattern, "", "ecma"), False).low


_PATTERN = "the pattern"


def from_regex(pattern: str, flags: str = "", dialect: Dialect = "python") -> GrammarIR:
    """The grammar of the texts that a pattern matches as a whole.

    Raises
    ------
    GrammarError
        The pattern is invalid or not supported; ``line`` and ``column`` say where.
    """
    builder = GrammarBuilder()
    # In Python's syntax it is refused; in ECMAScript it is valid.
    reason = find_posix_class(pattern) if dialect == "ecma" else None
    if reason is not None:
        builder.warnings.append(reason)
    pattern_symbol = builder.lexeme(regex_code_points(pattern, flags=flags, dialect=dialect), _PATTERN)
    return builder.finish(pattern_symbol, make_error=_make_error, describe=by_language)


def _make_error(reason: str, place: str) -> ConstrainError:
    # The place would be the name of a rule, and a pattern has no rules.
    if reason.endswith(f"{_PATTERN} matches no text"):
        reason = f"{_PATTERN} matches no text: it is for a whole text, so look-around finds nothing before or behind it"
    return GrammarError(reason)
