"""Merges as ids; half a million of them without a Python object for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.tokenizers.models.bpe_kernels import fill_tokens
from constrain.tokenizers.models.merge_kernels import find_pairs, read_pairs

Merges = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Left ids, right ids and merged ids, in order of rank."""

_KEY = b'"merges"'
_ARRAY = re.compile(rb"[ \t\n\r]*:[ \t\n\r]*\[")


@dataclass(frozen=True)
class Pairs:
    """Pairs of tokens.

    Attributes
    ----------
    data : uint8[n]
        The tokens one after the other in UTF-8.
    bounds : int32[2 * k + 1]
        Where each begins, and the last one ends.
    """

    data: npt.NDArray[np.uint8]
    bounds: npt.NDArray[np.int32]

    @classmethod
    def of(cls, pairs: Sequence[Sequence[str]]) -> Pairs:
        """Raises :class:`TypeError` or :class:`ValueError` if one of them is no pair of strings."""
        if set(map(len, pairs)) - {2}:
            raise ValueError("not a pair")
        return cls(*_bytes_of(chain.from_iterable(pairs), 2 * len(pairs)))

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Pairs:
        """Of ``"left right"``.  Raises :class:`ValueError` if one of them has no blank or several."""
        data, ends = _bytes_of(texts, len(texts))
        cuts = np.flatnonzero(data == 0x20)
        if len(cuts) != len(texts) or (cuts < ends[:-1]).any() or (cuts >= ends[1:]).any():
            raise ValueError("not a pair")
        # Each blank is left out, so what follows moves to the left by one for each.
        bounds = np.empty(2 * len(texts) + 1, dtype=np.int32)
        bounds[::2] = ends - np.arange(len(ends))
        bounds[1::2] = cuts - np.arange(len(cuts))
        return cls(data[data != 0x20], bounds)

    def __len__(self) -> int:
        return len(self.bounds) // 2

    def __getitem__(self, place: int) -> list[str]:
        first, second, end = self.bounds[2 * place : 2 * place + 3].tolist()
        data = self.data[first:end].tobytes()
        return [part.decode("utf-8", "replace") for part in (data[: second - first], data[second - first :])]


def read_json_with_merges(data: bytes) -> Any:
    """JSON, with what is under ``merges`` in the object ``model`` as :class:`Pairs`, where it is an array of pairs.

    Raises what :func:`json.loads` raises.
    """
    found = _merges_in(data)
    if found is not None:
        pairs, begin, end = found
        content = json.loads((data[:begin] + data[end:]).decode("utf-8-sig"))
        model = content.get("model") if isinstance(content, dict) else None
        if isinstance(model, dict) and model.get("merges") == []:
            model["merges"] = pairs
            return content
    return json.loads(data.decode("utf-8-sig"))


def _merges_in(data: bytes) -> tuple[Pairs, int, int] | None:
    """The pairs, and the inside of their array; None if there is no such array, or several."""
    # Within a string a quote has a backslash in front, so what is found is a key if a colon follows.
    place, begins = data.find(_KEY), []
    while place >= 0:
        array = _ARRAY.match(data, place + len(_KEY))
        if array is not None:
            begins.append(array.end())
        place = data.find(_KEY, place + len(_KEY))
    if len(begins) != 1 or len(data) >= 2**31:
        return None
    begin = begins[0]
    room = len(data) - begin
    out, bounds = np.empty(room, dtype=np.uint8), np.empty(2 * (room // 3) + 3, dtype=np.int32)
    count, end = read_pairs(np.frombuffer(bytearray(data), dtype=np.uint8), begin, out, bounds)
    if count < 0:
        return None
    bounds = bounds[: 2 * count + 1].copy()
    return Pairs(out[: bounds[-1]].copy(), bounds), begin, end


def ids_of_merges(pairs: Pairs | Sequence[Sequence[str]], ids: Mapping[str, int]) -> Merges:
    """The ids of pairs of tokens, and of what they make together.

    Raises :class:`TypeError` or :class:`ValueError` if one of them is no pair of tokens that make a token.
    """
    if not isinstance(pairs, Pairs):
        pairs = Pairs.of(pairs)
    blob, starts = _bytes_of(ids, len(ids))
    places = np.flatnonzero(np.diff(starts)).astype(np.int32)
    slots = np.full(1 << (2 * len(ids)).bit_length(), -1, dtype=np.int32)
    fill_tokens(blob, starts, places, slots)
    found = np.empty((3, len(pairs)), dtype=np.int32)
    if not find_pairs(pairs.data, pairs.bounds, blob, starts, slots, found):
        raise ValueError("not a pair of tokens that make a token")
    left, right, merged = np.fromiter(ids.values(), dtype=np.int64, count=len(ids))[found]
    return left, right, merged


def is_merge(pair: Sequence[str], ids: Mapping[str, int]) -> bool:
    """Whether this is a pair of tokens that make a token.  A token without text makes none."""
    try:
        first, second = pair
        return bool(first and second) and {first, second, first + second} <= ids.keys()
    except (TypeError, ValueError):
        return False


def _bytes_of(texts: Iterable[str], count: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Texts one after the other in UTF-8, and where each begins, and the last one ends."""
    kept = list(texts)
    # Lone surrogates are refused elsewhere.
    data = np.frombuffer(bytearray("".join(kept).encode("utf-8", "surrogatepass")), dtype=np.uint8)
    if len(data) >= 2**31:
        raise ValueError("more than 2 GiB")
    characters = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data)).astype(np.int32)
    ends = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, kept), dtype=np.int64, count=count), out=ends[1:])
    return data, characters[ends]
