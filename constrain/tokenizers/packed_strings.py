"""Many strings in one piece of memory: a tokenizer that comes from a cache does not make them all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

Item = TypeVar("Item", str, bytes)


class PackedStrings(Sequence["Item | None"], Generic[Item]):
    """A sequence of str or of bytes, or None where there is nothing; its items are made when they are asked for.

    Parameters
    ----------
    blob : uint8[n]
        The strings one after the other, texts in UTF-8.
    lengths : int32[count]
        Bytes of each, -1 for None.
    kind : str or bytes
        What items are; also an attribute.

    Attributes
    ----------
    blob : bytes
    lengths : int32[count]

    Raises :class:`ValueError` if the lengths are not those of the blob.
    """

    def __init__(self, blob: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int32], kind: type[Item]) -> None:
        ends = np.cumsum(np.maximum(lengths, 0), dtype=np.int64)
        if len(lengths) and (lengths.min() < -1 or ends[-1] != len(blob)):
            raise ValueError("the strings have another length")
        self.blob = blob.tobytes()
        self._ends = ends
        self.lengths = lengths
        self.kind: Any = kind

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        length = int(self.lengths[place])
        if length < 0:
            return None
        end = int(self._ends[place])
        data = self.blob[end - length : end]
        return data.decode() if self.kind is str else data

    def __iter__(self) -> Iterator[Item | None]:
        blob = self.blob
        bounds = [0, *self._ends.tolist()]
        # A list is made in two thirds of the time that a generator takes.
        items: list[Any] = [blob[begin:end] for begin, end in pairwise(bounds)]
        if self.kind is str:
            items = list(map(bytes.decode, items))
        if not len(self.lengths) or self.lengths.min() >= 0:
            return iter(items)
        return iter([item if length >= 0 else None for item, length in zip(items, self.lengths.tolist(), strict=True)])

    def arrays(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
        """``blob`` and ``lengths``."""
        return np.frombuffer(self.blob, dtype=np.uint8), self.lengths


def packed(items: Iterable[Any], kind: Any) -> PackedStrings[Any]:
    """The same strings, packed.  Raises :class:`UnicodeEncodeError` for a lone surrogate."""
    if isinstance(items, PackedStrings) and items.kind is kind:
        return items
    listed = list(items)
    missing = [place for place, item in enumerate(listed) if item is None] if None in listed else []
    for place in missing:
        listed[place] = kind()
    data: list[bytes] = list(map(str.encode, listed)) if kind is str else listed
    lengths = np.fromiter(map(len, data), dtype=np.int32, count=len(data))
    lengths[missing] = -1
    return PackedStrings(np.frombuffer(b"".join(data), dtype=np.uint8), lengths, cast(Any, kind))
