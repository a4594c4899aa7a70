"""Several encodings as one array, cut and padded to one length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.arguments import checked_id, checked_ids
from constrain.tokenizers.base import Encoding

Side = Literal["left", "right"]


def padded_batch(
    encodings: Iterable[Encoding | Sequence[int]],
    pad_id: int,
    *,
    length: int | None = None,
    max_length: int | None = None,
    multiple_of: int = 1,
    padding_side: Side = "right",
    truncation_side: Side = "right",
) -> dict[str, npt.NDArray[np.int64]]:
    """Ids of several texts in one array.

    Parameters
    ----------
    encodings : iterable of Encoding or of ids
    pad_id : int
        What rows are filled with, such as ``tokenizer.special_tokens.pad``.
    length : int, optional
        The width of the array; by default that of the longest row.
    max_length : int, optional
        Longer rows are cut.
    multiple_of : int
        The width is a multiple of this.
    padding_side, truncation_side : "left" or "right"
        Where rows are filled, and where they are cut.

    Returns
    -------
    dict
        ``"input_ids"`` and ``"attention_mask"`` (1 where a token is, 0 where a row was filled): int64[rows, width].

    Raises :class:`TokenizerError` if a row does not fit into ``length``, or for an argument that makes no sense.
    """
    for name, side in (("padding_side", padding_side), ("truncation_side", truncation_side)):
        if side not in ("left", "right"):
            raise TokenizerError(f'{name} must be "left" or "right", not {side!r}')
    for name, number, least in (("length", length, 0), ("max_length", max_length, 0), ("multiple_of", multiple_of, 1)):
        if number is not None and checked_id(number) < least:
            raise TokenizerError(f"{name} must be {least} or more, not {number}")
    if pad_id is None:
        raise TokenizerError("pad_id: this tokenizer has no token for padding; choose one, such as that of an end")
    fill = checked_id(pad_id)
    if isinstance(encodings, Encoding) or not isinstance(encodings, Iterable):
        raise TokenizerError(f"encodings must be several, not one {type(encodings).__name__}")
    rows = [_cut(_ids_of(each), max_length, truncation_side) for each in encodings]
    longest = max(map(len, rows), default=0)
    if length is not None and longest > length:
        raise TokenizerError(f"a row has {longest} tokens, and length is {length}; max_length= cuts it")
    width = -(-(longest if length is None else length) // multiple_of) * multiple_of
    ids = np.full((len(rows), width), fill, dtype=np.int64)
    mask = np.zeros((len(rows), width), dtype=np.int64)
    for place, row in enumerate(rows):
        columns = slice(0, len(row)) if padding_side == "right" else slice(width - len(row), width)
        ids[place, columns] = row
        mask[place, columns] = 1
    return {"input_ids": ids, "attention_mask": mask}


def _ids_of(each: Any) -> list[int]:
    return each.ids if isinstance(each, Encoding) else checked_ids(each)


def _cut(ids: list[int], most: int | None, side: Side) -> list[int]:
    if most is None or len(ids) <= most:
        return ids
    return ids[:most] if side == "right" else ids[len(ids) - most :]
