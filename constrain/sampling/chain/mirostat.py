"""Mirostat 2: holds the surprise of the text near a target."""

from __future__ import annotations

import math

import numpy as np

from constrain.arguments import check_number
from constrain.errors import ConstrainError
from constrain.sampling.chain.step import Candidates, Situation, Step

_LARGEST_MU = 1e300
"""So that no sum of two is infinite, and no difference of infinities no number."""


class Mirostat(Step):
    """The tokens stay whose surprise ``-log2 p`` is at most ``mu``, which begins at ``2 * tau``.

    After each token ``mu`` falls by ``eta`` times what its surprise was above ``tau``.  It is the last step of a chain.

    Basu et al., "Mirostat: A neural text decoding algorithm that directly controls perplexity" (2021), version 2 as in
    llama.cpp.
    """

    def __init__(self, tau: float = 5.0, eta: float = 0.1) -> None:
        for name, value in (("tau", tau), ("eta", eta)):
            check_number(f"mirostat_{name}", value)
            if not (math.isfinite(value) and value >= 0):
                raise ConstrainError(f"mirostat_{name} must be a number from 0 up, not {value}")
        self._tau, self._eta = tau, eta
        self.mu = 2 * tau

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        order = candidates.most_likely_first()
        p = candidates.probabilities()[order]
        # Below 0 it is the same for every mu: no token surprises so little.
        surprising = np.flatnonzero(p < 2.0 ** min(1.0, -self.mu))
        return candidates.keep(order[: max(1, int(surprising[0]))] if len(surprising) else order)

    def drawn(self, candidates: Candidates, place: int) -> None:
        surprise = -math.log2(candidates.probabilities()[place])
        self.mu = min(max(self.mu - self._eta * (surprise - self._tau), -_LARGEST_MU), _LARGEST_MU)

    def fresh(self) -> Mirostat:
        return Mirostat(self._tau, self._eta)
