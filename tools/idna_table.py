"""Writes ``constrain/grammar/json_schema/lexical/idn/table.py``: which code points names may hold, by RFC 5892.

    python tools/idna_table.py ArabicShaping.txt Scripts.txt > constrain/grammar/json_schema/lexical/idn/table.py

The two files are those of the Unicode Character Database in the version of Python's ``unicodedata``; they have what
it has not.  The rest follows from RFC 5892, section 2 and appendix A.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from pathlib import Path

import numpy as np
from packing import packed_runs

# RFC 5892, section 2.6: what is decided by hand.
VALID = {0x00DF, 0x03C2, 0x06FD, 0x06FE, 0x0F0B, 0x3007}
IN_CONTEXT = {0x00B7, 0x0375, 0x05F3, 0x05F4, 0x30FB, *range(0x0660, 0x066A), *range(0x06F0, 0x06FA)}
NOT_VALID = {0x0640, 0x07FA, 0x302E, 0x302F, *range(0x3031, 0x3036), 0x303B}
JOINERS = {0x200C, 0x200D}
# Sections 2.5 (blocks) and 2.9 (conjoining jamo), and Default_Ignorable_Code_Point among letters and marks.
REFUSED = (
    *((0x20D0, 0x20FF), (0x1D100, 0x1D1FF), (0x1D200, 0x1D24F), (0x1100, 0x11FF), (0xA960, 0xA97C), (0xD7B0, 0xD7FB)),
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF)),
)
LETTERS_AND_DIGITS = {"Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"}
BIDI = {"L": 0, "R": 1, "AL": 1, "AN": 2, "EN": 3, "NSM": 4}
JOINING = {"D": 1, "L": 2, "R": 3, "T": 4}
SCRIPTS = {"Greek": 1, "Hebrew": 2, "Hiragana": 3, "Katakana": 3, "Han": 3}


def is_member(point: int) -> bool:
    """Whether a label may hold a code point at all, perhaps only in the right company."""
    if point in VALID or point in IN_CONTEXT or point in JOINERS:
        return True
    character = chr(point)
    if point in NOT_VALID or unicodedata.category(character) not in LETTERS_AND_DIGITS:
        return False
    if any(first <= point <= last for first, last in REFUSED):
        return False
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
    return unicodedata.normalize("NFKC", folded) == character


def values(path: str, column: int, names: dict[str, int]) -> dict[int, int]:
    """Numbers of code points out of a file of the database, by the names in a column."""
    found = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.partition("#")[0].split(";")]
        if len(fields) > column and fields[column] in names and re.match("[0-9A-F]", fields[0]):
            first, _, last = fields[0].partition("..")
            for point in range(int(first, 16), int(last or first, 16) + 1):
                found[point] = names[fields[column]]
    return found


def main(shaping: str, scripts: str) -> None:
    joining, script = values(shaping, 2, JOINING), values(scripts, 1, SCRIPTS)
    kinds: dict[tuple[int, ...], int] = {}
    table = np.zeros(0x110000, np.uint8)
    for point in range(0x80, 0x110000):
        if not 0xD800 <= point <= 0xDFFF and is_member(point):
            character = chr(point)
            category = unicodedata.category(character)
            # What is not listed is transparent if it is a mark (ArabicShaping.txt, introduction).
            joins = joining.get(point, JOINING["T"] if category in ("Mn", "Me", "Cf") and point not in JOINERS else 0)
            traits = (
                BIDI.get(unicodedata.bidirectional(character), 5),
                joins,
                script.get(point, 0),
                int(category.startswith("M")),
                int(unicodedata.combining(character) == 9),
            )
            table[point] = kinds.setdefault(traits, len(kinds) + 1)
    n_runs, packed = packed_runs(table)
    print(f'''"""What code points a label of an internationalized name may hold, and what is known of each.

From the Unicode Character Database, version {unicodedata.unidata_version}, by ``tools/idna_table.py``.
Unicode data is Copyright Unicode, Inc., under the Unicode License v3.
"""

TRAITS = (
    # Bidi: L, R or AL, AN, EN, NSM, other; joining type: none, D, L, R, T; script: other, Greek, Hebrew, kana or Han;
    # whether it is a mark; whether it is a virama.''')
    for traits in kinds:
        print(f"    {traits},")
    print(f''')
"""Of each kind of code point, from 1; kind 0 is what no label may hold, and ASCII."""

RUNS = {n_runs}
PACKED = {packed}
"""The kind of every code point, in runs as in :mod:`constrain.unicode_categories`."""''')


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
