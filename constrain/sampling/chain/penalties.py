"""Penalties of tokens that were there already."""

from __future__ import annotations

import numpy as np

from constrain.errors import ConstrainError
from constrain.sampling.chain.step import Candidates, Situation, Step
from constrain.sampling.options import check_options


class Penalties(Step):
    """``x / r`` if ``x > 0``, else ``x * r``; then ``x - frequency * times - presence``; for the last tokens.

    Keskar et al., "CTRL: A conditional transformer language model for controllable generation" (2019); the two cases
    are transformers'.  ``window``: how many last tokens; 0 for the whole history.
    """

    def __init__(
        self, repetition: float = 1.0, frequency: float = 0.0, presence: float = 0.0, window: int = 64
    ) -> None:
        check_options(
            1.0,
            0,
            1.0,
            0,
            repetition_penalty=repetition,
            repetition_window=window,
            frequency_penalty=frequency,
            presence_penalty=presence,
        )
        self._repetition, self._frequency, self._presence, self._window = repetition, frequency, presence, window

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        seen, times = np.unique(situation.history[-self._window :], return_counts=True)
        if len(seen) and not (seen[0] >= 0 and seen[-1] < situation.n_logits):
            raise ConstrainError("the history has a token for which the model has no logit")
        places = np.searchsorted(candidates.ids, seen)
        there = places < len(candidates)
        there[there] = candidates.ids[places[there]] == seen[there]
        places, times = places[there], times[there]
        logits = candidates.logits.copy()
        x = logits[places]
        x = np.where(x > 0, x / self._repetition, x * self._repetition)
        logits[places] = x - self._frequency * times - self._presence
        return Candidates(candidates.ids, logits)
