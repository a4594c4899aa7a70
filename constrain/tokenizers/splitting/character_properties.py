"""The properties of characters that split patterns name: categories, ``Han``, ``Word`` and ``OlderPunctuation``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from constrain.tokenizers.splitting.unicode_older import older_punctuation
from constrain.unicode_categories import CATEGORIES, HAN, category_table, members_of_ranges

_OTHER_ALPHABETIC = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
_LATIN1_NUMBERS = ((0xB2, 0xB3), (0xB9, 0xB9), (0xBC, 0xBE))
_JOIN_CONTROL = ((0x200C, 0x200D),)


def members_of_category(name: str) -> npt.NDArray[np.bool_] | None:
    """bool[0x110000]: the code points of ``L``, ``Lu``, ``Han``, ``Word`` (UTS 18), ``OlderPunctuation``; else None."""
    if name in ("Han", "Script=Han", "sc=Han"):
        return members_of_ranges(HAN)
    if name == "OlderPunctuation":
        return older_punctuation()
    if name == "Word":
        return word_members(alone=False) | members_of_ranges(_JOIN_CONTROL)
    numbers = _numbers(name)
    return np.isin(category_table(), numbers) if numbers else None


def word_members(alone: bool = True) -> npt.NDArray[np.bool_]:
    """``\\w`` as Oniguruma has it: Alphabetic, marks, digits and connectors; ``alone``, outside of a class, the six
    other numbers of Latin-1 too."""
    members: npt.NDArray[np.bool_] = np.isin(category_table(), _numbers("L", "M", "Nd", "Nl", "Pc"))
    members |= members_of_ranges(_OTHER_ALPHABETIC)
    return members | members_of_ranges(_LATIN1_NUMBERS) if alone else members


def _numbers(*names: str) -> list[int]:
    return [number for number, category in enumerate(CATEGORIES) if category in names or category[0] in names]
