"""What is added to the logits of some tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from constrain.errors import ConstrainError
from constrain.sampling.chain.step import Candidates, Situation, Step
from constrain.sampling.options import read_logit_bias


class LogitBias(Step):
    """``x + bias[token]``; ``-inf`` rules a token out, unless it is the only one left."""

    def __init__(self, bias: Mapping[int, float]) -> None:
        self._bias = dict(read_logit_bias(bias))

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        if not self._bias:
            return candidates
        if max(self._bias) >= situation.n_logits:
            raise ConstrainError(f"logit_bias: the model has no logit for token {max(self._bias)}")
        logits = candidates.logits.copy()
        for token, value in self._bias.items():
            logits[candidates.ids == token] += value
        finite = logits > -math.inf
        return Candidates(candidates.ids[finite], logits[finite]) if finite.any() else candidates


def without(candidates: Candidates, ids: frozenset[int]) -> Candidates:
    """The candidates but for some tokens; all of them if nothing would be left."""
    return candidates.keep(~np.isin(candidates.ids, list(ids)))
