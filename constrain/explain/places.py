"""Where in a text something is: line, column, and the line itself with a caret under the place."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from constrain.grammar.words import printable, quote

_TAB = 4


@dataclass(frozen=True)
class TextPlace:
    """A place in a text, given as bytes.

    Attributes
    ----------
    line, column : int
        Counted from 1; columns in characters.  Only line feeds end a line.
    shown : str
        The line as it can be printed: control characters escaped, cut where it is long.
    indent : int
        How many cells of a terminal stand in ``shown`` before the place.
    character : str
        The character at the place, between quotes and escaped if it cannot be printed; empty at the end of the text.
    """

    line: int
    column: int
    shown: str
    indent: int
    character: str


def place_in_text(data: bytes, offset: int, width: int = 100) -> TextPlace:
    """The place of a byte; within a character, that of the character.

    Parameters
    ----------
    data : bytes
        The text.  What is not UTF-8 is shown as escapes.
    offset : int
        From 0 to ``len(data)``.
    width : int
        How many cells of the line are shown at most.
    """
    offset = _character_start(data, offset)
    begin = data.rfind(b"\n", 0, offset) + 1
    end = data.find(b"\n", offset)
    before = data[begin:offset].decode("utf-8", "surrogateescape")
    after = data[offset : len(data) if end < 0 else end].decode("utf-8", "surrogateescape")
    character = "" if offset == len(data) else quote(after[:1].encode("utf-8", "surrogateescape") or b"\n")
    # Both sides are shown, the side before more so: that is where the reason tends to be.
    left, left_cells = _cut(before[::-1], width * 2 // 3, backwards=True)
    right, _ = _cut(after, max(width - left_cells, width // 3))
    return TextPlace(data.count(b"\n", 0, offset) + 1, len(before) + 1, left + right, left_cells, character)


def _character_start(data: bytes, offset: int) -> int:
    """The first byte of the UTF-8 character that a byte is in."""
    start = offset
    while start > max(0, offset - 3) and start < len(data) and data[start] & 0xC0 == 0x80:
        start -= 1
    if start == offset or start >= len(data):
        return offset
    lead = data[start]
    length = 2 if 0xC2 <= lead < 0xE0 else 3 if 0xE0 <= lead < 0xF0 else 4 if 0xF0 <= lead < 0xF5 else 1
    return start if start + length > offset else offset


def _cut(text: str, width: int, backwards: bool = False) -> tuple[str, int]:
    """As much of a text as fits into a number of cells, made printable, and how many it takes."""
    pieces: list[str] = []
    cells = 0
    for character in text:
        piece = _printable(character)
        size = sum(map(_cells, piece))
        if cells + size > width:
            pieces.append("…")
            cells += 1
            break
        pieces.append(piece)
        cells += size
    return "".join(pieces[::-1] if backwards else pieces), cells


def _printable(character: str) -> str:
    """A character as a terminal can show it: nothing that moves the cursor or changes colours."""
    if character == "\t":
        return " " * _TAB
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return printable(character)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
