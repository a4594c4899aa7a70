"""The embedded language model: an n-gram model small enough to ship.

The model has learned from a few million words which token tends to follow the last four, and nothing else.  So words
and phrases come out right, and the text makes no sense.  With it every part of the package can be tried without a
download.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

import numpy as np
import numpy.typing as npt

from constrain.demo.ngram_kernels import next_costs

STEP = 1 / 16
"""Log-probabilities are stored as multiples of this (natural logarithm)."""


class DemoModel:
    """Next-token log-probabilities of the embedded model.

    Attributes
    ----------
    vocab_size : int
        Number of tokens.
    context_size : int
        How many of the last tokens the prediction depends on.
    """

    def __init__(self, file: IO[bytes], boundary: int) -> None:
        with np.load(file, allow_pickle=False) as arrays:
            children = _from_byte_planes(arrays["children"])
            steps = _from_byte_planes(arrays["words"])
            self._costs = arrays["costs"]
            weights = arrays["weights"]
            self.context_size = int(arrays["order"]) - 1
        self._boundary = boundary
        self.vocab_size = len(self._costs) - len(steps)
        self._first = np.empty(len(children) + 1, dtype=np.int32)
        self._first[0] = self.vocab_size
        np.cumsum(children, dtype=np.int32, out=self._first[1:])
        self._first[1:] += np.int32(self.vocab_size)
        self._words = _undo_differences(steps, children)
        self._weights = np.zeros(len(children), dtype=np.int8)
        self._weights[children > 0] = weights
        # exp() of every cost that can occur: the model never calls a transcendental function per token.
        self._likelihood = np.exp(-STEP * np.arange(-128 * 8, 2048))

    def logits(self, ids: Sequence[int] | npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        """Natural-log probabilities of the next token: float32[vocab_size].

        ``ids`` is everything so far; an empty sequence means the beginning of a text.  The end-of-text
        token has its probability like any other.  An id out of range is a ValueError.
        """
        tail = [int(token_id) for token_id in ids[-self.context_size :]]
        if any(not 0 <= token_id < self.vocab_size for token_id in tail):
            raise ValueError(f"token ids must lie between 0 and {self.vocab_size - 1}, not {tail}")
        if len(ids) < self.context_size:
            tail.insert(0, self._boundary)
        if self._boundary in tail:
            tail = tail[len(tail) - 1 - tail[::-1].index(self._boundary) :]
        costs = np.empty(self.vocab_size, dtype=np.int32)
        next_costs(np.array(tail, dtype=np.int64), self._first, self._words, self._costs, self._weights, costs)
        total = float(np.log(self._likelihood[costs + 128 * 8].sum()))
        return (costs * -STEP - total).astype(np.float32)


def _from_byte_planes(planes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    values: npt.NDArray[np.uint16] = planes[0] | planes[1].astype(np.uint16) << 8
    return values


def _undo_differences(steps: npt.NDArray[np.uint16], children: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint16]:
    """Words from the differences between siblings.  Sums may wrap around: their differences do not."""
    sums = np.cumsum(steps, dtype=np.uint16)
    counts = children[children > 0].astype(np.int32)
    firsts = np.cumsum(counts) - counts
    words: npt.NDArray[np.uint16] = sums - np.repeat(sums[firsts] - steps[firsts], counts)
    return words
