"""Where an object ends in a text that still grows, in JSON or a like notation: each character is read once."""

from __future__ import annotations

import re

_QUOTE = '"'


class JsonScanner:
    """Looks for the end of an object or array.

    Parameters
    ----------
    start : int
        Where it begins.
    quote : str
        What stands around a string.  Only in JSON's has a backslash a meaning.
    """

    def __init__(self, start: int, quote: str = _QUOTE) -> None:
        self._at = start
        self._quote = quote
        escape = r"|\\" if quote == _QUOTE else ""
        self._places = re.compile(re.escape(quote) + r"|[{}\[\]]" + escape)
        self._depth = 0
        self._in_string = False

    def end(self, text: str) -> int:
        """The place behind its closing bracket; -1 if that has not come yet.  ``text`` may grow between calls."""
        while True:
            found = self._places.search(text, self._at)
            if found is None:
                # The beginning of a longer quote may stand at the end.
                self._at = max(self._at, len(text) - len(self._quote) + 1)
                return -1
            mark = found.group()
            if mark == "\\" and self._in_string:
                if found.end() == len(text):
                    # What it stands before has not come yet.
                    self._at = found.start()
                    return -1
                self._at = found.end() + 1
                continue
            self._at = found.end()
            if mark == self._quote:
                self._in_string = not self._in_string
            elif self._in_string:
                continue
            elif mark in "{[":
                self._depth += 1
            elif mark in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    return self._at
