"""Where a string or a value in brackets ends in a text that still grows, in JSON or the like, each sign read once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Brackets:
    """What a notation has for brackets and strings.

    Attributes
    ----------
    opening : str
        The brackets and quotes that a value may begin with.
    quotes : tuple of str
        What may stand around a string: of two with the same beginning the longer one first.
    pairs : str
        All brackets that come in pairs: first those that open one, then those that close it.
    has_escapes : bool
        Whether a backslash in a string has a meaning.
    stop : str
        What ends a value wherever it stands outside of strings, if anything does but its last bracket.
    """

    opening: str
    quotes: tuple[str, ...]
    pairs: str = "[{]}"
    has_escapes: bool = True
    stop: str = ""
    outside: re.Pattern[str] = field(init=False)
    inside: dict[str, re.Pattern[str]] = field(init=False)

    def __post_init__(self) -> None:
        marks = [re.escape(mark) for mark in (*self.quotes, self.stop) if mark]
        object.__setattr__(self, "outside", re.compile("|".join((*marks, *map(re.escape, self.pairs)))))
        escape = r"|\\" if self.has_escapes else ""
        inside = {quote: re.compile(re.escape(quote) + escape) for quote in self.quotes}
        object.__setattr__(self, "inside", inside)


JSON = Brackets('{["', ('"',))
PYTHON = Brackets("(", ('"""', "'''", '"', "'"), "([{)]}")
"""Of a call; the arguments of one begin with a parenthesis."""


class BracketScanner:
    """Looks for the end of a value in brackets, or of a string.

    Parameters
    ----------
    start : int
        Where it begins.
    brackets : Brackets
    """

    def __init__(self, start: int, brackets: Brackets = JSON) -> None:
        self._at = start
        self._brackets = brackets
        self._opening = brackets.pairs[: len(brackets.pairs) // 2]
        self._longest = max(map(len, (*brackets.quotes, brackets.stop)))
        self._depth = 0
        # The quote that has begun the string it is in.
        self._quote = ""

    def end(self, text: str) -> int:
        """The place behind its closing bracket or quote, or before its stop; -1 if none of these has come yet.

        ``text`` may grow meanwhile.
        """
        brackets = self._brackets
        while True:
            pattern = brackets.inside[self._quote] if self._quote else brackets.outside
            found = pattern.search(text, self._at)
            if found is None:
                # The beginning of a longer mark may stand at the end.
                self._at = max(self._at, len(text) - self._longest + 1)
                return -1
            mark = found.group()
            if (mark == "\\" and found.end() == len(text)) or (not self._quote and self._may_grow(text, found)):
                # What it is, or stands before, has not come yet.
                self._at = found.start()
                return -1
            if mark == brackets.stop:
                return found.start()
            self._at = found.end()
            if mark == "\\":
                self._at += 1
            elif self._quote:
                self._quote = ""
                if not self._depth:
                    return self._at
            elif mark in brackets.quotes:
                self._quote = mark
            elif mark in self._opening:
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return self._at

    def _may_grow(self, text: str, found: re.Match[str]) -> bool:
        """Whether what stands at the end of a text may be the beginning of a longer quote."""
        if len(text) - found.start() >= self._longest or found.group() not in self._brackets.quotes:
            return False
        rest = text[found.start() :]
        return any(quote.startswith(rest) and quote != rest for quote in self._brackets.quotes)
