"""Which characters are one where a pattern ignores case, and which stand for several there.

From Python's own tables: the ways of writing in lower, upper and folded case.  ``\\u00df`` is ``ss`` in folded case;
regex engines differ in whether they match the one with the other.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

_END_OF_CASED = 0x1E944
"""No character from here on has a case."""

_NEW = (
    # Unicode 14
    *((0x2C2F, 0x2C5F), (0xA7C0, 0xA7C1), (0xA7D0, 0xA7D1), (0xA7D6, 0xA7D7), (0xA7D8, 0xA7D9)),
    *((code, code + 0x27) for code in range(0x10570, 0x10596) if code not in (0x1057B, 0x1058B, 0x10593)),
    # Unicode 16
    *((0x0264, 0xA7CB), (0x019B, 0xA7DC), (0x1C89, 0x1C8A), (0xA7CC, 0xA7CD), (0xA7DA, 0xA7DB)),
    *((code, code + 0x20) for code in range(0x10D50, 0x10D66)),
)
"""Pairs that the tables of some Python do not have yet."""


def folded(char: str) -> str:
    """The one character that stands for all that differ from ``char`` in case only."""
    whole = char.casefold()
    if len(whole) != 1:
        whole = char.lower()
    return whole if len(whole) == 1 else char


@cache
def _pairs() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Each cased character beside each other one that differs from it in case only."""
    same: dict[str, list[int]] = {}
    for code in range(_END_OF_CASED):
        char = chr(code)
        if char.lower() != char or char.upper() != char or char.casefold() != char:
            same.setdefault(folded(char), []).append(code)
    pairs = {(one, other) for codes in same.values() for one in codes for other in codes if one != other}
    found = np.array(sorted(pairs | {*_NEW} | {(other, one) for one, other in _NEW}))
    return found[:, 0], found[:, 1]


def add_other_cases(members: npt.NDArray[np.bool_]) -> None:
    """To bool[0x110000], a set of code points, add those that differ from one of them in case only."""
    one, other = _pairs()
    members[other[members[one]]] = True


@cache
def several() -> dict[int, str]:
    """Characters that are several in folded case, and what they are there."""
    texts = {code: chr(code).casefold() for code in range(_END_OF_CASED)}
    return {code: text for code, text in texts.items() if len(text) > 1}


@cache
def texts_of_several() -> frozenset[str]:
    """What is one character in another case."""
    return frozenset(several().values())
