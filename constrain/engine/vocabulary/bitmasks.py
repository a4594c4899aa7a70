"""Token bitmasks: int32[batch, ceil(size / 32)]; token ``i`` is bit ``i % 32`` of word ``i // 32``.

The layout is the one that XGrammar and llguidance use, so that code written for theirs can take ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.arguments import check_integer
from constrain.engine.storage.jit import njit_entry
from constrain.errors import ConstrainError
from constrain.kernels.language import boolean, float32, float64, int32, void

Bitmask = np.ndarray[Any, np.dtype[np.int32]]


def words_for(size: int) -> int:
    """How many int32 words hold ``size`` bits."""
    return (size + 31) // 32


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> Bitmask:
    """A bitmask for ``batch_size`` sequences: int32[batch_size, ceil(vocab_size / 32)], all bits set.

    Raises
    ------
    ConstrainError
        If ``batch_size`` or ``vocab_size`` is no integer or less than 1, or no memory could hold so much.
    """
    rows, size = check_integer("batch_size", batch_size), check_integer("vocab_size", vocab_size)
    if rows < 1 or size < 1:
        raise ConstrainError(f"a bitmask needs a batch and a vocabulary of at least 1, not {rows} and {size}")
    try:
        return np.full((rows, words_for(size)), -1, np.int32)
    except (ValueError, OverflowError):
        raise ConstrainError(f"a bitmask for {rows} sequences and {size} tokens is larger than any array") from None


def is_allowed(row: Bitmask, token: int) -> bool:
    """Whether a token is in a row of a mask, int32[words]."""
    return bool(int(row[token >> 5]) >> (token & 31) & 1)


def ids_in_mask(row: Bitmask) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The tokens of one row of a bitmask: int64[n], increasing."""
    return np.flatnonzero(np.unpackbits(row.astype("<i4").view(np.uint8), bitorder="little"))


def allow(row: Bitmask, token: int) -> None:
    """Put a token into a row of a mask, int32[words]."""
    row[token >> 5] |= np.uint32(1 << (token & 31)).astype(np.int32)


def forbid(row: Bitmask, token: int) -> None:
    """Take a token out of a row of a mask, int32[words]."""
    row[token >> 5] &= ~np.uint32(1 << (token & 31)).astype(np.int32)


@njit_entry(void(float32[:, ::1], int32[:, ::1], boolean), void(float64[:, ::1], int32[:, ::1], boolean))
def forbid_logits(logits, mask, shared):  # type: ignore[no-untyped-def]
    """Set ``logits[row, i]`` to -inf where bit ``i`` of the row's mask is 0, and behind the mask's last bit."""
    bits = 32 * mask.shape[1]
    for row in range(logits.shape[0]):
        words = mask[0 if shared else row]
        for i in range(logits.shape[1]):
            if i >= bits or not (words[i >> 5] >> (i & 31)) & 1:
                logits[row, i] = -np.inf
