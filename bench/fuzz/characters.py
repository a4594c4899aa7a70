"""Characters as ``re`` tells them apart, for judges that share no code with the engine.

The leaves of all random patterns come from one pool.  Two code points that no leaf tells apart are one class, so judges
work on some dozens of classes, and on ranges of code points where a token ends within a character.
"""

from __future__ import annotations

import functools
import re
import sys

import numpy as np

POOL = (
    *("a", "b", "c", "d", "0", "1", "9", " ", "-", "_", ",", ";", "=", "é", "ß", "😀", "K"),
    *(r"\.", r"\n", r"\(", r"\)", r"\+", r"\\", '"'),
    *("[ab]", "[a-c]", "[^a]", "[^ab]", "[0-9]", "[a-z]", "[A-Za-z_]", "[à-ü]", "[😀-😅]", "[^\n]", r"[^\W\d]"),
    *(".", r"\w", r"\d", r"\s", r"\W", r"\S", r"\D", r"[\d.]", r"[^\s,]", "(?i:k)", "(?i:[a-c])", r"[\u0400-\u04ff]"),
)
# Those over which random grammars are made: few characters, so that tokens and lexemes meet often.
ASCII_POOL = ("a", "b", "c", "0", "1", " ", ",", ";", "=", r"\(", r"\)", r"\+", "[ab]", "[a-c]", "[0-9]", "[a-z]", '"')


class Characters:
    """The classes of code points.

    Attributes
    ----------
    ids : int16[0x110000]
        The class of each code point; -1 for surrogates, which no text has.
    classes_of : dict of str to frozenset of int
        The classes of each leaf of the pool.
    example : list of str
        A character of each class.
    """

    def __init__(self) -> None:
        points = [point for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]
        text = "".join(map(chr, points))
        marks = np.zeros(len(points), np.uint64)
        for bit, leaf in enumerate(POOL):
            # Runs, since a match for each of a million characters takes long.
            for match in re.finditer(f"(?:{leaf})+", text):
                marks[match.start() : match.end()] |= np.uint64(1 << bit)
        values, first, inverse = np.unique(marks, return_index=True, return_inverse=True)
        self.ids = np.full(sys.maxunicode + 1, -1, np.int16)
        self.ids[points] = inverse
        self.example = [text[index] for index in first.tolist()]
        self.classes_of = {
            leaf: frozenset(index for index, value in enumerate(values.tolist()) if value >> bit & 1)
            for bit, leaf in enumerate(POOL)
        }
        self.count = len(values)

    def class_of(self, character: str) -> int:
        return int(self.ids[ord(character)])

    @functools.cache  # noqa: B019 (there is one object)
    def begun(self, data: bytes) -> frozenset[int] | None:
        """The classes of the characters whose UTF-8 begins with these bytes, the first of one; None if none does."""
        first = data[0]
        length = 1 if first < 0x80 else 2 if 0xC2 <= first < 0xE0 else 3 if 0xE0 <= first < 0xF0 else 4
        if 0x80 <= first < 0xC2 or first > 0xF4 or len(data) > length:
            return None
        if any(byte & 0xC0 != 0x80 for byte in data[1:]):
            return None
        missing = length - len(data)
        value = first & (0x7F >> length) if length > 1 else first
        for byte in data[1:]:
            value = value << 6 | byte & 0x3F
        low, high = value << 6 * missing, (value + 1 << 6 * missing) - 1
        low, high = max(low, (0, 0, 0x80, 0x800, 0x10000)[length]), min(high, sys.maxunicode)
        found = frozenset(np.unique(self.ids[low : high + 1]).tolist()) - {-1} if low <= high else frozenset()
        return found or None


@functools.cache
def characters() -> Characters:
    """The one object."""
    return Characters()


def is_whole(data: bytes) -> bool:
    """Whether these bytes, the beginning of a character, are all of it."""
    return len(data) == (1 if data[0] < 0x80 else 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4)
