"""Top-n-sigma."""

from __future__ import annotations

import math

from constrain.arguments import check_number
from constrain.errors import ConstrainError
from constrain.sampling.chain.step import Candidates, Situation, Step


class TopNSigma(Step):
    """The tokens stay whose logit is at most ``n`` standard deviations of all logits below the highest; 0: all.

    Whatever the temperature before it is, the same tokens stay.  Tang et al., "Top-nσ: Not all logits are you need"
    (2024).
    """

    def __init__(self, n: float) -> None:
        check_number("top_n_sigma", n)
        if not (math.isfinite(n) and n >= 0):
            raise ConstrainError(f"top_n_sigma must be a number from 0 (off) up, not {n}")
        self._n = n

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        if self._n == 0:
            return candidates
        logits = candidates.logits
        return candidates.keep(logits >= logits.max() - self._n * logits.std())
