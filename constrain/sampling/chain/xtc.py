"""XTC: excludes top choices."""

from __future__ import annotations

from constrain.arguments import check_number
from constrain.errors import ConstrainError
from constrain.sampling.chain.step import Candidates, Situation, Step


class XTC(Step):
    """With ``probability``, of the tokens with at least ``threshold`` only the least likely one stays, and all below.

    Nothing happens where fewer than two reach the threshold.  P. E. Weidmann, "Exclude top choices (XTC): a sampler
    that boosts creativity" (2024, text-generation-webui).
    """

    def __init__(self, probability: float, threshold: float = 0.1) -> None:
        for name, value in (("probability", probability), ("threshold", threshold)):
            check_number(f"xtc_{name}", value)
            if not 0 <= value <= 1:
                raise ConstrainError(f"xtc_{name} must be from 0 to 1, not {value}")
        self._probability, self._threshold = probability, threshold

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        if self._probability == 0 or self._threshold > 0.5 or len(candidates) < 2:
            return candidates
        if situation.random.uniform() >= self._probability:
            return candidates
        order = candidates.most_likely_first()
        many = int((candidates.probabilities() >= self._threshold).sum())
        return candidates.keep(order[max(0, many - 1) :])
