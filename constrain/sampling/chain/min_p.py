"""Min-p."""

from __future__ import annotations

from constrain.sampling.chain.step import Candidates, Situation, Step
from constrain.sampling.options import check_options


class MinP(Step):
    """The tokens stay that are at least ``p`` times as likely as the most likely one; 0: all.

    Nguyen et al., "Turning up the heat: min-p sampling for creative and coherent LLM outputs" (2024).
    """

    def __init__(self, p: float) -> None:
        check_options(1.0, 0, 1.0, 0, min_p=p)
        self._p = p

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        p = candidates.probabilities()
        return candidates.keep(p >= self._p * p.max())
