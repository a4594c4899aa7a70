"""The most likely tokens."""

from __future__ import annotations

from constrain.sampling.chain.step import Candidates, Situation, Step
from constrain.sampling.options import check_options


class TopK(Step):
    """The ``k`` highest logits stay, among equals those with lower ids; 0: all."""

    def __init__(self, k: int) -> None:
        check_options(1.0, k, 1.0, 0)
        self._k = k

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        if not 0 < self._k < len(candidates):
            return candidates
        return candidates.keep(candidates.most_likely_first()[: self._k])
