"""What the reference of BERT, StripAccents and the pre-tokenizer Punctuation takes for marks, controls and punctuation.

That reference has an older Unicode than the split patterns.  Newer characters have none of these categories there, and
a few characters have another category than today.  Code points and ranges are hexadecimal.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from constrain.unicode_categories import CATEGORIES, category_table

_NEWER_MARKS = (
    "7FD 897-89F 8CA-8E1 9FE AFA-AFF B55 C04 C3C D00 D3B-D3C D81 EBA ECE 180F 1885-1886 1ABF-1ACE 1DF6-1DFB "
    "A82C A8C5 A8FF A9BD 10D24-10D27 10D69-10D6D 10EAB-10EAC 10EFC-10EFF 10F46-10F50 10F82-10F85 11070 "
    "11073-11074 110C2 111C9 111CF 1123E 11241 1133B 113BB-113C0 113CE 113D0 113D2 113E1-113E2 11438-1143F "
    "11442-11444 11446 1145E 1182F-11837 11839-1183A 1193B-1193C 1193E 11943 119D4-119D7 119DA-119DB 119E0 "
    "11A01-11A0A 11A33-11A38 11A3B-11A3E 11A47 11A51-11A56 11A59-11A5B 11A8A-11A96 11A98-11A99 11C30-11C36 "
    "11C38-11C3D 11C3F 11C92-11CA7 11CAA-11CB0 11CB2-11CB3 11CB5-11CB6 11D31-11D36 11D3A 11D3C-11D3D "
    "11D3F-11D45 11D47 11D90-11D91 11D95 11D97 11EF3-11EF4 11F00-11F01 11F36-11F3A 11F40 11F42 11F5A 13440 "
    "13447-13455 1611E-16129 1612D-1612F 16F4F 16FE4 1CF00-1CF2D 1CF30-1CF46 1E000-1E006 1E008-1E018 "
    "1E01B-1E021 1E023-1E024 1E026-1E02A 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF "
    "1E944-1E94A"
)
"""Nonspacing marks today, but not in the reference."""

_NEWER_COMBINING = (
    "7FD 897-89F 8CA-8D3 9FE AFA-AFF B55 C04 C3C CF3 D00 D3B-D3C D81 EBA ECE 1715 180F 1ABF-1ACE 1CF7 1DF6-1DFA A82C "
    "A8FF 10D24-10D27 10D69-10D6D 10EAB-10EAC 10EFC-10EFF 10F46-10F50 10F82-10F85 11070 11073-11074 110C2 11145-11146 "
    "111C9 111CE-111CF 11241 1133B 113B8-113C0 113C2 113C5 113C7-113CA 113CC-113D0 113D2 113E1-113E2 1145E 1182C-1183A "
    "11930-11935 11937-11938 1193B-1193E 11940 11942-11943 119D1-119D7 119DA-119E0 119E4 11A01-11A0A 11A33-11A39 "
    "11A3B-11A3E 11A47 11A51-11A5B 11A8A-11A99 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D45 11D47 11D8A-11D8E 11D90-11D91 "
    "11D93-11D97 11EF3-11EF6 11F00-11F01 11F03 11F34-11F3A 11F3E-11F42 11F5A 13440 13447-13455 1611E-1612F 16F4F "
    "16F7F-16F87 16FE4 16FF0-16FF1 1CF00-1CF2D 1CF30-1CF46 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF"
)
"""Marks of any kind today, but not in the reference of StripAccents."""

_FORMER_COMBINING = "1CF2-1CF3"

_NEWER_CONTROLS = "890-891 8E2 110CD 13430-1343F"
"""Format controls today, but not in the reference."""

_NEWER_PUNCTUATION = (
    "61D 9FD A76 C77 C84 1B4E-1B4F 1B7D-1B7F 2E43-2E4F 2E52-2E5D 10D6E 10EAD 10F55-10F59 10F86-10F89 "
    "113D4-113D5 113D7-113D8 1144B-1144F 1145A-1145B 1145D 11660-1166C 116B9 1183B 11944-11946 119E2 "
    "11A3F-11A46 11A9A-11A9C 11A9E-11AA2 11B00-11B09 11BE1 11C41-11C45 11C70-11C71 11EF7-11EF8 11F43-11F4F "
    "11FFF 12FF1-12FF2 16D6D-16D6F 16E97-16E9A 16FE2 1E5FF 1E95E-1E95F"
)
"""Punctuation today, but not in the reference."""

_FORMER_MARKS = "1734 1171E"
_FORMER_PUNCTUATION = "166D 111C9"


@lru_cache(maxsize=1)
def older_marks() -> frozenset[str]:
    """Nonspacing marks."""
    return _characters(("Mn",), _NEWER_MARKS, _FORMER_MARKS)


@lru_cache(maxsize=1)
def older_combining_marks() -> frozenset[str]:
    """Marks of any kind."""
    return _characters(("Mn", "Mc", "Me"), _NEWER_COMBINING, _FORMER_COMBINING)


@lru_cache(maxsize=1)
def older_controls() -> frozenset[str]:
    """Controls, format controls and private use."""
    return _characters(("Cc", "Cf", "Co", "Cs"), _NEWER_CONTROLS, "")


def older_punctuation() -> npt.NDArray[np.bool_]:
    """bool[0x110000]: punctuation."""
    members = _members(("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"))
    members[codes_of_ranges(_NEWER_PUNCTUATION)] = False
    members[codes_of_ranges(_FORMER_PUNCTUATION)] = True
    return members


def _characters(categories: tuple[str, ...], newer: str, former: str) -> frozenset[str]:
    members = _members(categories)
    members[codes_of_ranges(newer)] = False
    members[codes_of_ranges(former)] = True
    return frozenset(map(chr, np.flatnonzero(members).tolist()))


def _members(categories: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    members: npt.NDArray[np.bool_] = np.isin(category_table(), [CATEGORIES.index(name) for name in categories])
    return members


def codes_of_ranges(ranges: str) -> list[int]:
    """The code points in ranges like ``"61D 9FD-9FF"``, in hexadecimal."""
    codes: list[int] = []
    for part in ranges.split():
        first, _, last = part.partition("-")
        codes += range(int(first, 16), int(last or first, 16) + 1)
    return codes
