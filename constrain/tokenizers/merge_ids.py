"""Merges as ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from constrain.tokenizers.bpe_kernels import fill_tokens, find_pairs

Merges = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Left ids, right ids and merged ids, in order of rank."""


def ids_of_merges(pairs: Sequence[Sequence[str]], ids: Mapping[str, int]) -> Merges:
    """The ids of pairs of tokens, and of what they make together.

    Raises :class:`TypeError` or :class:`ValueError` if one of them is no pair of tokens that make a token.
    """
    if set(map(len, pairs)) - {2}:
        raise ValueError("not a pair")
    # Half a million pairs: in one kernel call, with the two tokens of a pair side by side, as they are in the third.
    data, bounds = _bytes_of(chain.from_iterable(pairs), 2 * len(pairs))
    blob, starts = _bytes_of(ids, len(ids))
    places = np.arange(len(ids), dtype=np.int32)
    slots = np.full(1 << (2 * len(ids)).bit_length(), -1, dtype=np.int32)
    fill_tokens(blob, starts, places[np.diff(starts) > 0], slots)
    found = np.empty((3, len(pairs)), dtype=np.int32)
    if not find_pairs(data, bounds, blob, starts, slots, found):
        raise ValueError("not a pair of tokens that make a token")
    left, right, merged = np.fromiter(ids.values(), dtype=np.int64, count=len(ids))[found]
    return left, right, merged


def is_merge(pair: Sequence[str], ids: Mapping[str, int]) -> bool:
    """Whether this is a pair of tokens that make a token."""
    try:
        first, second = pair
        return {first, second, first + second} <= ids.keys()
    except (TypeError, ValueError):
        return False


def _bytes_of(texts: Iterable[str], count: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Texts one after the other in UTF-8, and where each begins, and the last one ends."""
    kept = list(texts)
    # Lone surrogates are some other function's business.
    data = np.frombuffer(bytearray("".join(kept).encode("utf-8", "surrogatepass")), dtype=np.uint8)
    if len(data) >= 2**31:
        raise ValueError("more than 2 GiB")
    characters = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data)).astype(np.int32)
    ends = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, kept), dtype=np.int64, count=count), out=ends[1:])
    return data, characters[ends]
