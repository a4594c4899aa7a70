"""Where a JSON object ends in a text that still grows: each character is read once."""

from __future__ import annotations

import re

_PLACES = re.compile(r'["\\{}\[\]]')


class JsonScanner:
    """Looks for the end of an object or array.

    Parameters
    ----------
    start : int
        Where it begins.
    """

    def __init__(self, start: int) -> None:
        self._at = start
        self._depth = 0
        self._in_string = False

    def end(self, text: str) -> int:
        """The place behind its closing bracket; -1 if that has not come yet.  ``text`` may grow between calls."""
        while True:
            found = _PLACES.search(text, self._at)
            if found is None:
                self._at = len(text)
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
            if mark == '"':
                self._in_string = not self._in_string
            elif self._in_string:
                continue
            elif mark in "{[":
                self._depth += 1
            elif mark in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    return self._at
