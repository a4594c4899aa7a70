"""A sampler whose steps come in any order."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.arguments import check_integer
from constrain.errors import ConstrainError
from constrain.sampling.chain.mirostat import Mirostat
from constrain.sampling.chain.step import Candidates, Randomness, Situation, Step
from constrain.sampling.chain.temperature import Temperature
from constrain.sampling.sampler import Sample, Sampler, token_ids_of


class SamplerChain(Sampler):
    """Draws tokens through a chain of steps; goes wherever a :class:`Sampler` does.

    Its steps are numpy's, in double precision, over the allowed tokens: slower than :class:`Sampler`, which is the same
    for the steps that both have.  One chain belongs to one thread and one text.

    Parameters
    ----------
    steps : sequence of Step
        In the order in which they are applied.
    seed : int, optional
        See :class:`Sampler`.

    Raises :class:`ConstrainError` if something is no step, or :class:`Mirostat` is not the last one.
    """

    def __init__(self, steps: Sequence[Step], seed: int | None = None) -> None:
        super().__init__(1.0, 0, 1.0, seed)
        if not isinstance(steps, Sequence):
            raise ConstrainError(f"a chain takes a list of steps, not {type(steps).__name__}")
        for step in steps:
            if not isinstance(step, Step):
                raise ConstrainError(f"a step of a chain must be a Step, not {type(step).__name__}")
        if any(isinstance(step, Mirostat) for step in steps[:-1]):
            raise ConstrainError("mirostat must be the last step of a chain: it looks at what is drawn")
        self.steps = tuple(step.fresh() for step in steps)
        self._random = Randomness(self.seed)
        self._prompt: int | None = None

    def for_row(self, row: int) -> SamplerChain:
        if check_integer("row", row) < 0:
            raise ConstrainError(f"row must be 0 or more, not {row}")
        return SamplerChain(self.steps, self._seed_of(row))

    def sample(self, logits: Any, mask: NDArray[np.int32] | None = None, history: Sequence[int] = ()) -> int:
        """Draw one token id; see :meth:`Sampler.sample`.

        What ``history`` holds at the first call counts as the prompt.
        """
        left = self._left(logits, mask, history, self._random)
        p = left.probabilities()
        place = int(np.searchsorted(np.cumsum(p), self._random.uniform() * p.sum(), side="right"))
        place = min(place, len(left) - 1)
        for step in self.steps:
            step.drawn(left, place)
        return int(left.ids[place])

    def sample_batch(
        self,
        logits: Any,
        masks: NDArray[np.int32] | None = None,
        histories: Sequence[Sequence[int]] | None = None,
    ) -> NDArray[np.int64]:
        """A chain has one text: use :meth:`for_row` for each row.  Raises :class:`ConstrainError`."""
        raise ConstrainError("a chain of steps samples one row: make one for each with for_row")

    def sample_with_log_probabilities(
        self, logits: Any, mask: NDArray[np.int32] | None = None, history: Sequence[int] = (), top: int = 0
    ) -> Sample:
        if check_integer("top", top) < 0:
            raise ConstrainError(f"top must be 0 or more, not {top}")
        token = self.sample(logits, mask, history)
        own = self._allowed(logits, mask)
        highest = own.logits.max()
        values = own.logits - highest - np.log(np.exp(own.logits - highest).sum())
        best = [(int(own.ids[place]), float(values[place])) for place in own.most_likely_first()[:top]]
        return Sample(token, float(values[np.searchsorted(own.ids, token)]), tuple(best))

    def distribution(
        self, logits: Any, mask: NDArray[np.int32] | None = None, history: Sequence[int] = ()
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """What the next :meth:`sample` would draw from: token ids int32[m] and their probabilities float64[m]."""
        left = self._looked_at(logits, mask, history)
        return left.ids.astype(np.int32), left.probabilities()

    def adjusted_logits(self, logits: Any, history: Sequence[int] = ()) -> NDArray[np.float32]:
        """The logits that the whole chain leaves, -inf where it rules a token out: float32[n]."""
        left = self._looked_at(logits, None, history)
        row = np.full(self._table(logits, 1).shape[1], -np.inf, dtype=np.float32)
        row[left.ids] = left.logits
        return row

    @contextmanager
    def at_temperature(self, temperature: float | None) -> Iterator[None]:
        """Within it, draw with another temperature in the chain's step for it; with None, with its own.

        Raises :class:`ConstrainError` if the chain has no such step, or that is no number from 0 up.
        """
        if temperature is None:
            yield
            return
        own = self.steps
        steps = tuple(step.at(temperature) if isinstance(step, Temperature) else step for step in own)
        if not any(isinstance(step, Temperature) for step in own):
            raise ConstrainError("the grammar gives a temperature, and the chain of samplers has no step for it")
        self.steps = steps
        try:
            yield
        finally:
            self.steps = own

    def _looked_at(self, logits: Any, mask: NDArray[np.int32] | None, history: Sequence[int]) -> Candidates:
        """What the chain leaves, without any effect on what is drawn later."""
        prompt = self._prompt
        try:
            return self._left(logits, mask, history, copy.copy(self._random))
        finally:
            self._prompt = prompt

    def _left(
        self, logits: Any, mask: NDArray[np.int32] | None, history: Sequence[int], random: Randomness
    ) -> Candidates:
        row = self._table(logits, 1)[0]
        candidates = self._allowed(row, mask)
        tokens = token_ids_of([history])[0].astype(np.int64)
        if self._prompt is None or len(tokens) < self._prompt:
            self._prompt = len(tokens)
        situation = Situation(tokens, len(tokens) - self._prompt, random, len(row))
        for step in self.steps:
            candidates = step.apply(candidates, situation)
        return candidates

    def _allowed(self, row: NDArray[np.float32], mask: NDArray[np.int32] | None) -> Candidates:
        words = self._masks(mask, 1, len(row))[0]
        bits = np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_)
        if bits[len(row) :].any():
            raise ConstrainError("the mask allows a token for which the model has no logit")
        ids = np.flatnonzero(bits[: len(row)])
        if not len(ids):
            raise ConstrainError("the mask allows no token")
        values = row[ids].astype(np.float64)
        if np.isnan(values).any() or (values == np.inf).any():
            raise ConstrainError("the model's logits for the allowed tokens contain NaN or +inf")
        finite = values > -np.inf
        if not finite.any():
            raise ConstrainError("the model's logits are -inf for every allowed token")
        return Candidates(ids[finite], values[finite])


def steps_in_order(order: Sequence[str], steps: Mapping[str, Step]) -> list[Step]:
    """The steps by name, in an order.  A step that is not named is left out; a name without a step does nothing.

    Raises :class:`ConstrainError` for a name that is none of :data:`ORDER`, or is there twice.
    """
    for place, name in enumerate(order):
        if name not in ORDER:
            raise ConstrainError(f"no step is called {name!r}; there are: {', '.join(ORDER)}")
        if name in order[:place]:
            raise ConstrainError(f"the step {name!r} is there twice")
    return [steps[name] for name in order if name in steps]


ORDER = (
    "logit_bias",
    "min_tokens",
    "bad_words",
    "penalties",
    "dry",
    "top_n_sigma",
    "top_k",
    "typical",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
    "mirostat",
)
"""The names of all steps, in llama.cpp's order where it has them: what cuts, then temperature."""
