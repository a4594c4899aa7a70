"""How the tables that the scripts here write are packed into their modules."""

from __future__ import annotations

import zlib
from base64 import b85encode
from typing import Any

import numpy as np


def packed(data: bytes) -> str:
    """Base 85 of zlib of some bytes, as a string literal."""
    return literal(b85encode(zlib.compress(data, 9)).decode())


def packed_runs(table: np.ndarray[Any, np.dtype[np.uint8]]) -> tuple[int, str]:
    """How many runs of equal values a table has, and these as ``constrain.unicode_categories.unpack_runs`` reads them.

    One byte for each value, then the length of each run: 7 bits a byte, lowest first, high bit set on all but the last.
    """
    ends = np.append(np.flatnonzero(np.diff(table)) + 1, len(table))
    data = bytearray(table[ends - 1].tobytes())
    for left in np.diff(ends, prepend=0).tolist():
        while left >= 0x80:
            data.append(left & 0x7F | 0x80)
            left >>= 7
        data.append(left)
    return len(ends), packed(bytes(data))


def literal(text: str) -> str:
    """A text as a string literal in lines of 112 characters."""
    lines = (text[at : at + 112] for at in range(0, len(text), 112))
    return "(\n" + "".join(f'    "{line}"\n' for line in lines) + ")"
