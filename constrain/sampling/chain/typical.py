"""Locally typical sampling."""

from __future__ import annotations

import numpy as np

from constrain.sampling.chain.step import Candidates, Situation, Step
from constrain.sampling.options import check_options


class Typical(Step):
    """The fewest tokens stay, those with ``-log p`` nearest to the entropy first, that add up to ``mass``; 1: all.

    Meister et al., "Locally typical sampling" (2023).
    """

    def __init__(self, mass: float) -> None:
        check_options(1.0, 0, 1.0, 0, typical=mass)
        self._mass = mass

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        if self._mass >= 1:
            return candidates
        p = candidates.probabilities()
        surprise = -np.log(np.maximum(p, np.finfo(np.float64).tiny))
        order = np.argsort(np.abs(surprise - (p * surprise).sum()), kind="stable")
        return candidates.keep(order[: int(np.searchsorted(np.cumsum(p[order]), self._mass)) + 1])
