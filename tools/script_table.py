"""Writes the table in ``constrain/unicode_scripts.py``: the script of every code point, for ``\\p{Script=Greek}``.

    python tools/script_table.py

The package ``regex`` is asked.  What it has of a newer Unicode than :mod:`constrain.unicode_categories` is left out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import regex
from packing import literal, packed_runs

from constrain.unicode_categories import CATEGORIES, category_table

MODULE = Path(__file__).parent.parent / "constrain" / "unicode_scripts.py"


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
    n_runs, packed = packed_runs(table)
    head, _, rest = MODULE.read_text().partition("_NAMES = ")
    tail = rest[rest.index("\n\n\nSCRIPTS") :]
    table_text = f"_NAMES = {literal(','.join(kept))}\n\n_RUNS = {n_runs}\n_PACKED = {packed}"
    MODULE.write_text(head + table_text + tail)


if __name__ == "__main__":
    main()
