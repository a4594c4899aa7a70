"""What is added to the logits of some tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from constrain.arguments import check_integer, check_number
from constrain.errors import ConstrainError
from constrain.sampling.chain.step import Candidates, Situation, Step


class LogitBias(Step):
    """``x + bias[token]``; ``-inf`` rules a token out, unless it is the only one left."""

    def __init__(self, bias: Mapping[int, float]) -> None:
        if not isinstance(bias, Mapping):
            raise ConstrainError(f"logit_bias must be a mapping of token ids to numbers, not {type(bias).__name__}")
        for token, value in bias.items():
            check_integer("logit_bias: a token", token)
            check_number(f"logit_bias: the bias of token {token}", value)
            if not value < math.inf:
                raise ConstrainError(f"logit_bias: the bias of token {token} must be a number or -inf, not {value}")
        self._bias = {int(token): float(value) for token, value in bias.items()}
        if min(self._bias, default=0) < 0:
            raise ConstrainError(f"logit_bias: {min(self._bias)} is not a token id")

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
