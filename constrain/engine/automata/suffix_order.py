"""The suffixes of a text in the order of their bytes: a suffix array (Manber and Myers, 1993).

All suffixes that begin with the same bytes stand side by side in it.  So the places at which some bytes occur in a text
are a range of the array, and one byte more makes the range narrower.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.limits import spend

_AT_ONCE = 7
"""So many symbols of nine bits, a byte or the end of the text, are one key."""

_STEPS = 16
"""Sorting so many suffixes is a step of the work that a grammar may take."""

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Places = np.ndarray[Any, np.dtype[np.int32]]
_Keys = np.ndarray[Any, np.dtype[np.int64]]


def suffix_order(text: Bytes) -> Places:
    """The places of a text, sorted by what the text is from there on; the end of the text comes before all bytes.

    Suffixes are told apart by their first 7 symbols, then by 14, 28 and so on (Larsson and Sadakane, 1999): two groups
    of suffixes that agree so far are told apart by where the suffixes behind them are.  So a text of one letter, again
    and again, takes as many rounds as its length has bits, and ordinary text some six, in which less and less is left.
    """
    count = len(text)
    # Of the end of the text, too: 0.
    ranks = np.zeros(count + 1, np.int32)
    keys = _first_keys(text)
    members: Places = np.argsort(keys).astype(np.int32)
    keys = keys[members]
    order: Places = members.copy()
    slots = np.arange(count, dtype=np.int32)
    length = _AT_ONCE
    while True:
        spend(1 + len(members) // _STEPS)
        begins = np.empty(len(keys) + 1, np.bool_)
        begins[0] = begins[-1] = True
        np.not_equal(keys[1:], keys[:-1], out=begins[1:-1])
        # A group's rank is the place of its first suffix, counted from 1, so those of other groups stay as they are.
        firsts = (slots + np.int32(1)) * begins[:-1]
        ranks[members] = np.maximum.accumulate(firsts, out=firsts)
        together = ~(begins[1:] & begins[:-1])
        slots, members = slots[together], members[together]
        if not len(members):
            return order
        keys = _next_keys(ranks, members, length)
        sorting = np.argsort(keys)
        members, keys = members[sorting], keys[sorting]
        order[slots] = members
        length *= 2


def _first_keys(text: Bytes) -> _Keys:
    """By place: the first symbols there as one number."""
    symbols = np.zeros(len(text) + _AT_ONCE - 1, np.int16)
    symbols[: len(text)] = text
    symbols[: len(text)] += 1
    keys = np.zeros(len(text), np.int64)
    for i in range(_AT_ONCE):
        keys <<= 9
        keys |= symbols[i : i + len(text)]
    return keys


def _next_keys(ranks: Places, members: Places, length: int) -> _Keys:
    """By suffix: its group, and the group of what is ``length`` behind its beginning."""
    behind = members + np.int32(length)
    np.minimum(behind, len(ranks) - 1, out=behind)
    keys = ranks[members].astype(np.int64)
    keys <<= 32
    keys |= ranks[behind]
    return keys
