"""Temperature, and temperature by entropy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from constrain.arguments import check_number
from constrain.errors import ConstrainError
from constrain.sampling.chain.step import Candidates, Situation, Step


class Temperature(Step):
    """``x / T``; at 0 only the highest logit stays, that of the lowest id among equals.

    With ``spread`` above 0 the temperature is ``low + (high - low) * (H / log m) ** exponent``, from
    ``low = max(0, T - spread)`` to ``high = T + spread``: ``H`` is the entropy of the ``m`` candidates.  Where the
    model is sure it is low (llama.cpp's dynamic temperature, ``--dynatemp-range``; kalomaze, 2023).
    """

    def __init__(self, temperature: float, spread: float = 0.0, exponent: float = 1.0) -> None:
        for name, value in (("temperature", temperature), ("dynatemp_range", spread), ("dynatemp_exponent", exponent)):
            check_number(name, value)
            if not (math.isfinite(value) and value >= 0):
                raise ConstrainError(f"{name} must be a number from 0 up, not {value}")
        self._temperature, self._spread, self._exponent = temperature, spread, exponent

    def at(self, temperature: float) -> Temperature:
        """The same step around another temperature."""
        return Temperature(temperature, self._spread, self._exponent)

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        temperature = self._temperature
        if self._spread > 0:
            if len(candidates) < 2:
                return candidates
            p = candidates.probabilities()
            p = p[p > 0]
            entropy = float(-(p * np.log(p)).sum()) / math.log(len(candidates))
            low, high = max(0.0, temperature - self._spread), temperature + self._spread
            temperature = low + (high - low) * max(0.0, entropy) ** self._exponent
        if temperature == 0:
            return candidates.keep(candidates.most_likely_first()[:1])
        return Candidates(candidates.ids, divided(candidates.logits, temperature))


def divided(logits: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """``logits / temperature``, all finite, for finite logits and any temperature above 0.

    A quotient out of range would leave no probabilities.  Logits say as much with a number taken from all of them, so
    the highest is then taken as 0, and those that are still out of range are as low as a number can be.
    """
    with np.errstate(over="ignore"):
        quotients: NDArray[np.float64] = logits / temperature
        if np.isfinite(quotients).all():
            return quotients
        relative = (logits - logits.max()) / temperature
    lowest: NDArray[np.float64] = np.maximum(relative, np.finfo(np.float64).min)
    return lowest
