r"""Regexes with ``\p{...}``, which Lark reads by the package ``regex`` (``Lark(..., regex=True)``).

Their notation is that of Python's ``re`` and more.  So they are parsed as those are, with a character that stands for
each property, and which characters a set has is asked of the package: there ``\w`` and ``\s`` are other sets than in
``re``.  With the flag ``i`` what a set matches depends on what stands near it (``(?i:k)|\P{Lu}`` does not match ``d``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from constrain.grammar.languages.utf8 import LAST, CodePoints

_PROPERTY = re.compile(r"\\(?:([pP](?:\{[^{}]*\}|[A-Za-z]))|.)", re.DOTALL)
_FIRST_STAND_IN = 0xF0000
_STAND_INS = re.compile("[\U000f0000-\U000fffff]|\\\\U000[fF]")
# A set, or a brace that begins no counted repetition.
_UNIT = re.compile(r"\\.|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|\{\d*,?\d*\}|(?P<brace>\{)|.", re.DOTALL)


def has_properties(pattern: str) -> bool:
    r"""Whether a regex has ``\p{...}`` or ``\P{...}``."""
    return any(found[1] for found in _PROPERTY.finditer(pattern))


def without_properties(pattern: str) -> tuple[str, dict[int, str]]:
    r"""A regex with a character in the place of each ``\p{...}``, and what stands for which of them.

    Raises
    ------
    ValueError
        If ``re`` and ``regex`` may read the rest of it differently; the argument names what.
    """
    stand_ins: dict[str, int] = {}

    def replaced(found: re.Match[str]) -> str:
        if not found[1]:
            return found[0]
        return chr(stand_ins.setdefault(found[0], _FIRST_STAND_IN + len(stand_ins)))

    if _STAND_INS.search(pattern):
        raise ValueError(r"a private character (U+F0000 to U+FFFFF) in a grammar with \p{...}")
    pattern = _PROPERTY.sub(replaced, pattern)
    for unit in _UNIT.finditer(pattern):
        if unit["brace"]:
            raise ValueError(r"a brace that is no repetition, in a grammar with \p{...} (write \{),")
        if unit["set"] and "[:" in unit["set"]:
            raise ValueError(r"[: in a set, in a grammar with \p{...} (write \[:),")
    return pattern, {point: text for text, point in stand_ins.items()}


@lru_cache(maxsize=4096)
def code_points(text: str, letters: str) -> CodePoints:
    """What the package matches of a regex for one character, with flags."""
    import regex  # type: ignore[import-untyped, unused-ignore]

    flags = 0
    for letter in letters:
        flags |= getattr(regex, letter.upper())
    found: list[tuple[int, int]] = []
    for begin, text_of_all in ((0, _below_surrogates()), (0xE000, _above_surrogates())):
        runs = regex.finditer(f"(?:{text})+", text_of_all, flags)
        found += [(begin + run.start(), begin + run.end() - 1) for run in runs]
    return tuple(found)


@lru_cache(maxsize=1)
def _below_surrogates() -> str:
    return "".join(map(chr, range(0xD800)))


@lru_cache(maxsize=1)
def _above_surrogates() -> str:
    return "".join(map(chr, range(0xE000, LAST + 1)))


def re_module(uses_properties: bool) -> Any:
    """The module that Lark reads the regexes of a grammar with."""
    if uses_properties:
        import regex

        return regex
    return re


def pattern_errors() -> tuple[type[Exception], ...]:
    """What compiling a regex may raise; Lark asks the package, if it is installed, for widths that it cannot tell."""
    try:
        import regex
    except ImportError:
        return (re.error,)
    return re.error, regex.error
