"""The sampler: temperature, top-k, top-p and a seeded draw, over the tokens that a mask allows.

In this order, for logits ``x`` of the allowed tokens:

1. temperature ``T``: ``x / T``; 0 means the highest logit wins (the lowest id among equals);
2. top-k: the ``k`` highest stay (among equals those with lower ids); 0 means all;
3. softmax: ``p_i = exp(x_i / T - max) / sum``;
4. top-p: the fewest tokens, most likely first, whose ``p`` add up to at least ``top_p``; 1 means all;
5. one of those is drawn, each in proportion to its ``p``.

What it does not do: penalties, bias, min-p; nor batches.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.errors import ConstrainError
from constrain.sampling import kernels
from constrain.sampling.options import check_options

_STATUS = {
    kernels.EMPTY_MASK: "the mask allows no token",
    kernels.NOT_A_NUMBER: "the model's logits for the allowed tokens contain NaN or +inf",
    kernels.ALL_MINUS_INFINITY: "the model's logits are -inf for every allowed token",
    kernels.MASK_TOO_WIDE: "the mask allows a token for which the model has no logit",
}


class Sampler:
    """Draws token ids from rows of logits.  One sampler belongs to one sequence and one thread.

    Parameters
    ----------
    temperature : float
        At least 0; 0 is greedy.
    top_k : int
        At least 0; 0 switches the step off.
    top_p : float
        Above 0 and at most 1; 1 switches the step off.
    seed : int, optional
        From 0 to 2**64 - 1.  Equal seeds, options, logits and masks give equal tokens on every platform.
        Without it one is made up; :attr:`seed` says which.

    Raises
    ------
    ConstrainError
        An option is out of range.
    """

    def __init__(self, temperature: float = 0.8, top_k: int = 40, top_p: float = 0.9, seed: int | None = None) -> None:
        check_options(temperature, top_k, top_p, seed)
        if seed is None:
            # Short enough to be typed again by whoever wants the same output.
            seed = secrets.randbelow(2**32)
        self.temperature = float(temperature)
        self.top_k = int(top_k)
        self.top_p = float(top_p)
        self.seed = int(seed)
        self._state = np.array([seed], dtype=np.uint64)
        self._full_mask = np.zeros(0, dtype=np.int32)
        self._full_mask_size = -1
        self._resize(0)

    def sample(self, logits: Any, mask: NDArray[np.int32] | None = None) -> int:
        """Draw one token id.

        Parameters
        ----------
        logits : float[n], anything numpy can read
            Unnormalised log-probabilities; -inf rules a token out.  Not modified.
        mask : int32[words], optional
            Bit ``i % 32`` of word ``i // 32`` allows token ``i``; tokens past its end are not allowed.
            Without it every token is.

        Raises
        ------
        ConstrainError
            No token can be drawn (the message says why), or an argument has the wrong shape or dtype.
        """
        count = self._candidates(logits, mask)
        return int(kernels.draw(count, self._kept_ids, self._kept_weights, self._state))

    def distribution(
        self, logits: Any, mask: NDArray[np.int32] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """What :meth:`sample` would draw from: token ids int32[m] and their probabilities float64[m], summing to 1."""
        count = self._candidates(logits, mask)
        weights = self._kept_weights[:count]
        return self._kept_ids[:count].copy(), weights / weights.sum()

    def _candidates(self, logits: Any, mask: NDArray[np.int32] | None) -> int:
        row = np.ascontiguousarray(logits, dtype=np.float32)
        if row.ndim != 1 or len(row) == 0 or np.ndim(logits) != 1:
            raise ConstrainError(f"logits must be one row of one dimension, not of shape {np.shape(logits)}")
        if not row.flags.writeable:
            row = row.copy()
        if mask is None:
            mask = self._everything(len(row))
        elif not isinstance(mask, np.ndarray) or mask.dtype != np.int32 or mask.ndim != 1:
            raise ConstrainError("a mask must be one row of a bitmask, a numpy array of dtype int32 and one dimension")
        elif not mask.flags.c_contiguous or not mask.flags.writeable:
            mask = mask.copy()
        # What is kept never exceeds k, so with top-k the buffers need not be as long as the vocabulary.
        needed = 1 if self.temperature == 0 else min(self.top_k or len(row), len(row))
        if needed > len(self._ids):
            self._resize(needed)
        count = int(
            kernels.candidates(
                row,
                mask,
                self.temperature,
                self.top_k,
                self.top_p,
                self._values,
                self._ids,
                self._kept_ids,
                self._kept_weights,
            )
        )
        if count < 0:
            raise ConstrainError(_STATUS[count])
        return count

    def _everything(self, size: int) -> NDArray[np.int32]:
        if self._full_mask_size != size:
            bits = np.zeros(-(-size // 32) * 32, dtype=np.uint8)
            bits[:size] = 1
            self._full_mask = np.packbits(bits, bitorder="little").view("<i4").astype(np.int32)
            self._full_mask_size = size
        return self._full_mask

    def _resize(self, size: int) -> None:
        self._values = np.empty(size, dtype=np.float32)
        self._ids = np.empty(size, dtype=np.int32)
        self._kept_ids = np.empty(size, dtype=np.int32)
        self._kept_weights = np.empty(size, dtype=np.float64)
