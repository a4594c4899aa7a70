"""Writes ``constrain/tokenizers/normalizing/normalization_data.py``: Unicode normalization as in ``tokenizers``.

    python tools/normalization_tables.py > constrain/tokenizers/normalizing/normalization_data.py

The forms there are of an older Unicode than Python has.  So the library is asked, for every code point: what it
decomposes to, what composes again, and between which marks it is put (its combining class).  Hangul syllables follow
from their numbers and are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import groupby
from unicodedata import combining

from packing import packed
from tokenizers import normalizers

NFC, NFD, NFKD = (form().normalize_str for form in (normalizers.NFC, normalizers.NFD, normalizers.NFKD))
HANGUL = range(0xAC00, 0xAC00 + 11172)
POINTS = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000 and code not in HANGUL]

HEAD = '''"""The data of :mod:`constrain.tokenizers.normalizing.normal_forms`, by ``tools/normalization_tables.py``.

Base 85 of zlib of two texts in UTF-8, each of items with U+0000 behind every one:

* *decompositions*: a character, a letter, and what it becomes; ``C``: canonically, and it composes again; ``X``:
  canonically, and it does not; ``K``: for compatibility;
* *classes*: a combining class as one character, and the marks that have it.

Unicode data is Copyright Unicode, Inc., under the Unicode License v3.
"""

from __future__ import annotations
'''


def representatives() -> dict[int, str]:
    """A mark of each combining class that ``tokenizers`` has; these do not change once they are given."""
    marks: dict[int, str] = {}
    for code in POINTS:
        char = chr(code)
        if combining(char) and combining(char) not in marks and swaps(char, "\u0334", NFD) | swaps("\u0345", char, NFD):
            marks[combining(char)] = char
    return marks


def swaps(first: str, second: str, form: Callable[[str], str]) -> bool:
    """Whether two marks behind a letter are put the other way round."""
    return form(f"x{first}{second}") == f"x{second}{first}" != f"x{first}{second}"


def class_of(char: str, marks: dict[int, str]) -> int:
    """The combining class of a character: it stays where it is on both sides of a mark that has the same."""
    if NFD(char) != char or not (swaps(char, "\u0334", NFD) or swaps("\u0345", char, NFD)):
        return 0
    same = [number for number, mark in marks.items() if not swaps(char, mark, NFD) and not swaps(mark, char, NFD)]
    assert len(same) == 1, (hex(ord(char)), same)
    return same[0]


def decompositions() -> list[str]:
    items = []
    for char in map(chr, POINTS):
        canonical, compatible = NFD(char), NFKD(char)
        if canonical != char:
            items.append(char + ("C" if NFC(char) == char else "X") + canonical)
        if compatible != canonical:
            items.append(char + "K" + compatible)
    return items


def table(name: str, items: list[str]) -> str:
    data = "".join(f"{item}\0" for item in items).encode()
    return f"\n{name} = {packed(data)}\n"


def main() -> None:
    marks = representatives()
    classes = sorted((class_of(char, marks), char) for char in map(chr, POINTS))
    groups = [
        chr(number) + "".join(char for _, char in group)
        for number, group in groupby(classes, key=lambda item: item[0])
        if number
    ]
    sys.stdout.write(HEAD + table("DECOMPOSITIONS", decompositions()) + table("CLASSES", groups))


main()
