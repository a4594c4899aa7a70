"""What the reader makes of a grammar's text: tokens, which know their place, and trees of them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence


class Lines:
    """Where the lines of a text begin, worked out when the first place is asked for."""

    __slots__ = ("_starts", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] | None = None

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        if self._starts is None:
            self._starts = [0, *(found.end() for found in re.finditer("\n", self._text))]
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


NOWHERE = Lines("")


class Token(str):
    """A piece of a grammar's text.

    Attributes
    ----------
    type : str
        ``RULE``, ``TERMINAL``, ``STRING``, ``REGEXP``, ``NUMBER``, ...: see :mod:`.reader`.
    offset : int
        Of its first character in the text.
    """

    __slots__ = ("_lines", "offset", "type")

    type: str
    offset: int
    _lines: Lines

    def __new__(cls, kind: str, text: str, lines: Lines = NOWHERE, offset: int = 0) -> Token:
        token = str.__new__(cls, text)
        token.type = kind
        token.offset = offset
        token._lines = lines
        return token

    @property
    def place(self) -> tuple[int, int]:
        """Line and column of its first character, both from 1."""
        return self._lines.place(self.offset)

    def part(self, kind: str, begin: int, end: int | None = None) -> Token:
        """A token that is a part of this one."""
        return Token(kind, self[begin:end], self._lines, self.offset + begin)


class Tree:
    """A node of the tree.

    Attributes
    ----------
    data : str
        What it is: ``expansions``, ``expr``, ``literal``, ...: see :mod:`.reader`.
    children : list of Tree or Token
    """

    __slots__ = ("children", "data")

    def __init__(self, data: str, children: Sequence[Tree | Token]) -> None:
        self.data = data
        # A list, which is handed over: nobody else has it.
        self.children: list[Tree | Token] = children  # type: ignore[assignment]
