"""Merges as ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Merges = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Left ids, right ids and merged ids, in order of rank."""


def ids_of_merges(pairs: Iterable[Sequence[str]], ids: Mapping[str, int]) -> Merges:
    """The ids of pairs of tokens, and of what they make together.

    Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError` if one of them is no pair of tokens that make a
    token.
    """
    # Half a million pairs: an array is slow to fill item by item, and pairs that are kept keep the collector busy.
    left: list[int] = []
    right: list[int] = []
    merged: list[int] = []
    for first, second in pairs:
        left.append(ids[first])
        right.append(ids[second])
        merged.append(ids[first + second])
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64), np.array(merged, dtype=np.int64)
