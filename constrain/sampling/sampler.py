"""The sampler: a chain of steps from logits to one token, over the tokens that a mask allows.

In this order, for logits ``x`` of the allowed tokens (each step only where it is switched on):

1. repetition penalty ``r``, for tokens of the history's last ``repetition_window``: ``x / r`` if ``x > 0``, else
   ``x * r``;
2. frequency and presence penalty, for the same tokens: ``x - frequency * times - presence``;
3. logit bias: ``x + bias``;
4. temperature ``T``: ``x / T``; 0 means the highest logit wins (the lowest id among equals), and ends the chain;
5. top-k: the ``k`` highest stay (among equals those with lower ids);
6. softmax: ``p_i = exp(x_i - max) / sum``;
7. top-p: the fewest tokens, most likely first, whose ``p`` add up to at least ``top_p``;
8. min-p: those with ``p_i >= min_p * max(p)``;
9. typical: the fewest, nearest ``|-log p_i - H|`` first, that add up to ``typical``; ``H`` is the entropy;
10. one of those is drawn, each in proportion to its ``p``.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.arguments import check_integer, check_number
from constrain.errors import ConstrainError
from constrain.sampling.arrays import as_floats, as_mask
from constrain.sampling.kernels import layout, penalties, rows
from constrain.sampling.kernels.log_probabilities import log_probabilities
from constrain.sampling.options import check_options, read_logit_bias

_STATUS = {
    layout.EMPTY_MASK: "the mask allows no token",
    layout.NOT_A_NUMBER: "the model's logits for the allowed tokens contain NaN or +inf",
    layout.ALL_MINUS_INFINITY: "the model's logits are -inf for every allowed token",
    layout.MASK_TOO_WIDE: "the mask allows a token for which the model has no logit",
    layout.NOT_IN_THE_ROW: "the history or the logit bias has a token for which the model has no logit",
}
_NO_IDS = np.zeros(0, dtype=np.int32)
_NO_VALUES = np.zeros(0, dtype=np.float32)
_FLOAT = np.dtype(np.float32)
_INT = np.dtype(np.int32)
_LARGEST_SEED = 2**64


@dataclass(frozen=True)
class Sample:
    """A token and how likely the model found it.

    Attributes
    ----------
    token_id : int
    log_probability : float
        Natural logarithm of the model's own probability among the allowed tokens: from the logits as they came,
        before penalties, bias, temperature and cuts.
    top : tuple of (int, float)
        The most likely tokens and their log-probabilities, in the same sense.
    """

    token_id: int
    log_probability: float
    top: tuple[tuple[int, float], ...]


class Sampler:
    """Draws token ids from rows of logits.  One sampler belongs to one thread.

    Parameters
    ----------
    temperature : float
        At least 0; 0 is greedy.
    top_k : int
        At least 0; 0 switches the step off.
    top_p : float
        Above 0 and at most 1; 1 switches the step off.
    seed : int, optional
        From 0 to 2**64 - 1.  Equal seeds, options, logits, masks and histories give equal tokens on every platform
        (``typical`` excepted: it takes a logarithm).  Without it one is made up; :attr:`seed` says which.
    min_p : float
        From 0 (off) to 1.
    typical : float
        Above 0 and at most 1 (off).
    repetition_penalty : float
        Above 0; 1 switches it off.
    repetition_window : int
        How many tokens at the end of the history the three penalties look at; 0 for all of them.
    frequency_penalty, presence_penalty : float
        0 switches them off.
    logit_bias : mapping of int to float, optional
        What is added to the logits of tokens; ``-inf`` rules one out.

    Raises
    ------
    ConstrainError
        An option is out of range.
    """

    def __init__(
        self,
        temperature: float = 0.8,
        top_k: int = 40,
        top_p: float = 0.9,
        seed: int | None = None,
        *,
        min_p: float = 0.0,
        typical: float = 1.0,
        repetition_penalty: float = 1.0,
        repetition_window: int = 64,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        logit_bias: Mapping[int, float] | None = None,
    ) -> None:
        check_options(
            temperature,
            top_k,
            top_p,
            seed,
            min_p=min_p,
            typical=typical,
            repetition_penalty=repetition_penalty,
            repetition_window=repetition_window,
            frequency_penalty=frequency_penalty,
            presence_penalty=presence_penalty,
        )
        if seed is None:
            # Short enough to be typed again by whoever wants the same output.
            seed = secrets.randbelow(2**32)
        self.temperature = float(temperature)
        self.top_k = int(top_k)
        self.top_p = float(top_p)
        self.min_p = float(min_p)
        self.typical = float(typical)
        self.repetition_penalty = float(repetition_penalty)
        self.repetition_window = int(repetition_window)
        self.frequency_penalty = float(frequency_penalty)
        self.presence_penalty = float(presence_penalty)
        self.seed = int(seed)
        bias = read_logit_bias({} if logit_bias is None else logit_bias)
        self._bias_ids = np.array([token for token, _ in bias], dtype=np.int32)
        self._bias_values = np.array([value for _, value in bias], dtype=np.float64)
        self._penalises = repetition_penalty != 1 or frequency_penalty != 0 or presence_penalty != 0
        self._options = np.empty(layout.OPTIONS, dtype=np.float64)
        self._options[[layout.TEMPERATURE, layout.TOP_K, layout.TOP_P]] = temperature, min(top_k, 2**31), top_p
        self._options[[layout.MIN_P, layout.TYPICAL, layout.REPETITION]] = min_p, typical, repetition_penalty
        self._options[[layout.FREQUENCY, layout.PRESENCE]] = frequency_penalty, presence_penalty
        self._states = np.array([seed], dtype=np.uint64)
        self._full_mask = np.zeros((1, 0), dtype=np.int32)
        self._full_mask_size = -1
        self._place = _NO_IDS
        self._own_mask = _NO_IDS
        self._touched_ids, self._touched_values = _NO_IDS, _NO_VALUES
        self._no_history = np.zeros(2, dtype=np.int64)
        self._out = np.zeros(1, dtype=np.int64)
        self._resize(0)

    def for_row(self, row: int) -> Sampler:
        """A sampler with the same options that begins to draw what this one, new, would for a row of a batch."""
        row = check_integer("row", row)
        if row < 0:
            raise ConstrainError(f"row must be 0 or more, not {row}")
        return Sampler(
            self.temperature,
            self.top_k,
            self.top_p,
            self._seed_of(row),
            min_p=self.min_p,
            typical=self.typical,
            repetition_penalty=self.repetition_penalty,
            repetition_window=self.repetition_window,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            logit_bias=dict(zip(self._bias_ids.tolist(), self._bias_values.tolist(), strict=True)),
        )

    def sample(self, logits: Any, mask: NDArray[np.int32] | None = None, history: Sequence[int] = ()) -> int:
        """Draw one token id.

        Parameters
        ----------
        logits : float[n], anything numpy can read, or a torch tensor of any device and dtype
            Unnormalised log-probabilities; -inf rules a token out.  Not modified.
        mask : int32[words], optional, a numpy array or a torch tensor
            Bit ``i % 32`` of word ``i // 32`` allows token ``i``; tokens past its end are not allowed.
            Without it every token is.
        history : sequence of int
            The tokens so far, which the penalties look at.  Without penalties it is not read.

        Raises
        ------
        ConstrainError
            No token can be drawn (the message says why), or an argument has the wrong shape or dtype.
        """
        table = self._table(logits, 1)
        window, starts = self._windows([history] if self._penalises else None, 1)
        self._draw(table, self._masks(mask, 1, table.shape[1]), window, starts, self._states[:1])
        return int(self._out[0])

    def sample_batch(
        self,
        logits: Any,
        masks: NDArray[np.int32] | None = None,
        histories: Sequence[Sequence[int]] | None = None,
    ) -> NDArray[np.int64]:
        """Draw one token id for each row.

        Row ``r`` draws from its own random stream, so what it draws does not depend on the other rows; row 0 draws
        what :meth:`sample` would.

        Parameters
        ----------
        logits : float[rows, n]
        masks : int32[rows, words] or int32[words], optional
            One row for each, or one for all.
        histories : sequence of sequences of int, optional
            One for each row.

        Returns
        -------
        int64[rows]

        Raises
        ------
        ConstrainError
            As for :meth:`sample`, with the row.
        """
        table = self._table(logits, 2)
        size = len(table)
        if histories is not None and not hasattr(histories, "__len__"):
            raise ConstrainError(f"histories must be a list of histories, not {type(histories).__name__}")
        if histories is not None and len(histories) != size:
            raise ConstrainError(f"there are {len(histories)} histories for {size} rows")
        window, starts = self._windows(histories if self._penalises else None, size)
        for row in range(len(self._states), size):
            self._states = np.append(self._states, np.uint64(self._seed_of(row)))
        self._draw(table, self._masks(masks, size, table.shape[1]), window, starts, self._states[:size])
        drawn: NDArray[np.int64] = self._out[:size].copy()
        return drawn

    def sample_with_log_probabilities(
        self, logits: Any, mask: NDArray[np.int32] | None = None, history: Sequence[int] = (), top: int = 0
    ) -> Sample:
        """:meth:`sample`, and how likely the model found that token and the ``top`` most likely ones."""
        if check_integer("top", top) < 0:
            raise ConstrainError(f"top must be 0 or more, not {top}")
        table = self._table(logits, 1)
        # Without steps that change logits, the most likely token is the one that greedy sampling takes.
        takes_best = self.temperature == 0 and not self._penalises and not len(self._bias_ids)
        token = -1 if takes_best else self.sample(logits, mask, history)
        room = max(1, min(top, table.shape[1]))
        ids, values = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.float64)
        normaliser = log_probabilities(
            table[0],
            self._masks(mask, 1, table.shape[1])[0],
            room,
            np.empty(room, dtype=np.float32),
            np.empty(room, dtype=np.int32),
            ids,
            values,
        )
        if ids[0] < 0:
            raise ConstrainError(_STATUS[int(ids[0])])
        best = [(i, value) for i, value in zip(ids.tolist(), values.tolist(), strict=True) if i >= 0]
        if takes_best:
            token = best[0][0]
        return Sample(token, float(table[0, token]) - normaliser, tuple(best[:top]))

    def adjusted_logits(self, logits: Any, history: Sequence[int] = ()) -> NDArray[np.float32]:
        """The logits after penalties and bias (steps 1 to 3), as a new array: float32[n]."""
        table = self._table(logits, 1)
        row: NDArray[np.float32] = table[0].copy()
        touched = self._touch(table[0], self._everything(len(row))[0], history)
        row[self._touched_ids[:touched]] = self._touched_values[:touched]
        return row

    def distribution(
        self, logits: Any, mask: NDArray[np.int32] | None = None, history: Sequence[int] = ()
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """What :meth:`sample` would draw from: token ids int32[m] and their probabilities float64[m], summing to 1."""
        table = self._table(logits, 1)
        row_mask = self._masks(mask, 1, table.shape[1])[0]
        touched = self._touch(table[0], row_mask, history)
        count = rows.candidates(
            table[0],
            self._own_mask[: len(row_mask)] if touched else row_mask,
            self._options,
            self._touched_ids[:touched],
            self._touched_values[:touched],
            self._values,
            self._ids,
            self._kept_ids,
            self._kept_weights,
        )
        if count < 0:
            raise ConstrainError(_STATUS[count])
        weights = self._kept_weights[:count]
        return self._kept_ids[:count].copy(), weights / weights.sum()

    @contextmanager
    def at_temperature(self, temperature: float | None) -> Iterator[None]:
        """Within it, draw with another temperature; with None, with its own.

        Raises :class:`ConstrainError` if that is no number from 0 up.
        """
        if temperature is None:
            yield
            return
        check_number("temperature", temperature)
        if not (math.isfinite(temperature) and temperature >= 0):
            raise ConstrainError(f"temperature must be a number from 0 up, not {temperature}")
        own = self.temperature
        self.temperature, self._options[layout.TEMPERATURE] = temperature, temperature
        try:
            yield
        finally:
            self.temperature, self._options[layout.TEMPERATURE] = own, own

    def _seed_of(self, row: int) -> int:
        # Hashed, so that neighbouring seeds do not share streams.
        return _mix(self.seed + _mix(row)) if row else self.seed

    def _touch(self, row: NDArray[np.float32], mask: NDArray[np.int32], history: Sequence[int]) -> int:
        """How many allowed tokens penalties and bias change; they and the mask without them are in the buffers."""
        window, _ = self._windows([history] if self._penalises else None, 1)
        self._make_room(len(row), len(mask), len(window))
        if not len(window) and not len(self._bias_ids):
            return 0
        touched = penalties.touch(
            row,
            mask,
            window,
            self._bias_ids,
            self._bias_values,
            self._options,
            self._place,
            self._own_mask[: len(mask)],
            self._touched_ids,
            self._touched_values,
        )
        if touched < 0:
            raise ConstrainError(_STATUS[touched])
        return int(touched)

    def _draw(
        self,
        table: NDArray[np.float32],
        masks: NDArray[np.int32],
        window: NDArray[np.int32],
        starts: NDArray[np.int64],
        states: NDArray[np.uint64],
    ) -> None:
        size, width = table.shape
        words = masks.shape[1]
        self._make_room(width, words, int(np.diff(starts).max(initial=0)) if len(window) else 0)
        if len(self._out) < size:
            self._out = np.zeros(size, dtype=np.int64)
        done = rows.sample_rows(
            table,
            masks,
            window,
            starts,
            self._bias_ids,
            self._bias_values,
            self._options,
            self._place,
            self._own_mask[:words],
            self._touched_ids,
            self._touched_values,
            self._values,
            self._ids,
            self._kept_ids,
            self._kept_weights,
            states,
            self._out,
        )
        if done < size:
            place = f"row {done}: " if size > 1 else ""
            raise ConstrainError(place + _STATUS[int(self._out[done])])

    def _table(self, logits: Any, dimensions: int) -> NDArray[np.float32]:
        """The logits as float32[rows, n] that a kernel can take; copied only where they are something else."""
        if type(logits) is np.ndarray and logits.dtype == _FLOAT and logits.ndim == dimensions and logits.flags.carray:
            if logits.size:  # the usual case, without delay
                return logits.reshape(-1, logits.shape[-1])
        table = as_floats(logits)
        shape = table.shape
        if len(shape) != dimensions or 0 in shape:
            wanted = "one row of one dimension" if dimensions == 1 else "rows, in two dimensions"
            raise ConstrainError(f"logits must be {wanted}, not of shape {shape}")
        table = np.ascontiguousarray(table)
        if not table.flags.writeable:
            table = table.copy()
        return table.reshape(-1, shape[-1])

    def _masks(self, mask: NDArray[np.int32] | None, size: int, width: int) -> NDArray[np.int32]:
        """The mask as int32[1, words] or int32[size, words]."""
        if mask is None:
            return self._everything(width)
        if type(mask) is np.ndarray and mask.dtype == _INT and mask.ndim == 1 and mask.flags.carray:
            return mask.reshape(1, -1)
        mask = as_mask(mask)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.int32 or not 1 <= mask.ndim <= 2 - (size == 1):
            if not (isinstance(mask, np.ndarray) and mask.dtype == np.int32 and mask.shape[:1] == (1,)):
                raise ConstrainError(
                    "a mask must be one row of a bitmask, a numpy array of dtype int32 and one dimension"
                    + (", or a row for each row of logits" if size > 1 else "")
                )
        table = mask.reshape(1, -1) if mask.ndim == 1 else mask
        if len(table) not in (1, size):
            raise ConstrainError(f"there are {len(table)} masks for {size} rows")
        return table if table.flags.c_contiguous and table.flags.writeable else table.copy()

    def _windows(
        self, histories: Iterable[Sequence[int]] | None, size: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """What the penalties look at of each history, one after the other, and where each begins."""
        if histories is None:
            if len(self._no_history) < size + 1:
                self._no_history = np.zeros(size + 1, dtype=np.int64)
            return _NO_IDS, self._no_history[: size + 1]
        begin = -self.repetition_window if self.repetition_window else 0
        window, parts = token_ids_of(histories, begin)
        starts = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=starts[1:])
        return window if window.flags.writeable else window.copy(), starts

    def _make_room(self, width: int, words: int, longest_window: int) -> None:
        # What is kept never exceeds k, so with top-k the buffers need not be as long as the vocabulary.
        needed = 1 if self.temperature == 0 else min(self.top_k or width, width)
        if needed > len(self._ids):
            self._resize(needed)
        touched = longest_window + len(self._bias_ids)
        if touched:
            if len(self._place) < width:
                self._place = np.zeros(width, dtype=np.int32)
            if len(self._own_mask) < words:
                self._own_mask = np.zeros(words, dtype=np.int32)
            if len(self._touched_ids) < touched:
                self._touched_ids = np.empty(touched, dtype=np.int32)
                self._touched_values = np.empty(touched, dtype=np.float32)

    def _everything(self, size: int) -> NDArray[np.int32]:
        if self._full_mask_size != size:
            bits = np.zeros(-(-size // 32) * 32, dtype=np.uint8)
            bits[:size] = 1
            self._full_mask = np.packbits(bits, bitorder="little").view("<i4").astype(np.int32).reshape(1, -1)
            self._full_mask_size = size
        return self._full_mask

    def _resize(self, size: int) -> None:
        self._values = np.empty(size, dtype=np.float32)
        self._ids = np.empty(size, dtype=np.int32)
        self._kept_ids = np.empty(size, dtype=np.int32)
        self._kept_weights = np.empty(size, dtype=np.float64)


def token_ids_of(histories: Iterable[Sequence[int]], begin: int = 0) -> tuple[NDArray[np.int32], list[NDArray[Any]]]:
    """The histories from ``begin`` on, one after the other, and each by itself.

    Raises :class:`ConstrainError` where something is no token id; nothing is rounded.
    """
    try:
        parts = [np.asarray(history[begin:]) for history in histories]
        whole = np.concatenate(parts) if len(parts) > 1 else parts[0]
        ids = np.ascontiguousarray(whole, dtype=np.int32)
        if len(whole) and (ids.ndim != 1 or not np.array_equal(ids, whole)):
            raise ValueError
    except (TypeError, ValueError, KeyError, OverflowError):
        raise ConstrainError("a history must be a sequence of token ids") from None
    return ids, parts


def _mix(value: int) -> int:
    """SplitMix64's output function, of a number."""
    value = (value + 0x9E3779B97F4A7C15) % _LARGEST_SEED
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) % _LARGEST_SEED
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) % _LARGEST_SEED
    return value ^ (value >> 31)
