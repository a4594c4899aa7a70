"""Nucleus sampling."""

from __future__ import annotations

import numpy as np

from constrain.sampling.chain.step import Candidates, Situation, Step
from constrain.sampling.options import check_options


class TopP(Step):
    """The fewest tokens stay, most likely first, whose probabilities add up to at least ``p``; 1: all.

    Holtzman et al., "The curious case of neural text degeneration" (2020).
    """

    def __init__(self, p: float) -> None:
        check_options(1.0, 0, p, 0)
        self._p = p

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        if self._p >= 1:
            return candidates
        order = candidates.most_likely_first()
        before = np.cumsum(candidates.probabilities()[order])
        return candidates.keep(order[: int(np.searchsorted(before, self._p)) + 1])
