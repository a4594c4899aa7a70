"""Writes ``constrain/unicode_scripts.py``: the script of every code point, for ``\\p{Script=Greek}`` in patterns.

    python tools/script_table.py > constrain/unicode_scripts.py

The package ``regex`` is asked.  What it has of a newer Unicode than :mod:`constrain.unicode_categories` is left out.
"""

from __future__ import annotations

import sys
import zlib
from base64 import b85encode

import numpy as np
import regex

from constrain.unicode_categories import CATEGORIES, category_table

HEAD = '''"""The script of every code point; written by script_table.py.

From the Unicode Character Database, version 16.0.  The table is packed as in :mod:`constrain.unicode_categories`.
Unicode data is Copyright Unicode, Inc., under the Unicode License v3.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from constrain.unicode_categories import unpack_runs

'''

TAIL = '''

SCRIPTS: dict[str, int] = {name: number for number, names in enumerate(_NAMES.split(",")) for name in names.split()}
"""The number of a script in the table, by its long and short names, in lower case and without ``_``."""


@lru_cache(maxsize=1)
def script_table() -> npt.NDArray[np.uint8]:
    """The script of each code point as a number of :data:`SCRIPTS`: uint8[0x110000], read-only."""
    table = unpack_runs(_PACKED, _RUNS)
    table.flags.writeable = False
    return table
'''


def aliases() -> dict[str, list[str]]:
    """The names of each script, by the first of them."""
    by_number: dict[int, list[str]] = {}
    for name, number in regex._regex_core.PROPERTIES["SCRIPT"][1].items():
        by_number.setdefault(number, []).append(name.lower())
    return {names[0]: names for names in by_number.values()}


def main() -> None:
    every = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    assigned = category_table() != CATEGORIES.index("Cn")
    table = np.zeros(0x110000, dtype=np.uint8)
    kept = ["unknown zzzz"]
    for first, names in aliases().items():
        members = np.zeros(0x110000, dtype=bool)
        for found in regex.finditer(rf"\p{{Script={first}}}+", every):
            members[found.start() : found.end()] = True
        members &= assigned
        if first != "unknown" and members.any():
            table[members] = len(kept)
            kept.append(" ".join(names))
    ends = np.append(np.flatnonzero(np.diff(table)) + 1, len(table))
    lengths = np.diff(np.concatenate(([0], ends)))
    packed = bytearray(table[ends - 1].tobytes())
    for left in map(int, lengths):
        while left >= 0x80:
            packed.append(left & 0x7F | 0x80)
            left >>= 7
        packed.append(left)
    write = sys.stdout.write
    write(HEAD)
    write("_NAMES = (\n" + "".join(f'    "{part}"\n' for part in cut(",".join(kept))) + ")\n\n")
    write(f"_RUNS = {len(ends)}\n_PACKED = (\n")
    text = b85encode(zlib.compress(bytes(packed), 9)).decode()
    write("".join(f'    "{part}"\n' for part in cut(text)) + ")\n" + TAIL)


def cut(text: str) -> list[str]:
    """A text in lines of 112 characters."""
    return [text[at : at + 112] for at in range(0, len(text), 112)]


if __name__ == "__main__":
    main()
