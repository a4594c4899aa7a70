"""DRY: what would go on with a repetition becomes less likely, the more so the longer the repetition is."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from constrain.arguments import check_integer, check_number
from constrain.errors import ConstrainError
from constrain.sampling.chain.step import Candidates, Situation, Step

_LARGEST_PENALTY = 1e30


class DRY(Step):
    """``x - multiplier * base ** (n - allowed_length)`` for tokens that would lengthen a repetition of n tokens.

    The end of the history repeats what stands before an earlier place of it; the token at that place would go on with
    it.  The longest such repetition counts for each token, from ``allowed_length`` tokens on.

    P. E. Weidmann, "DRY: A modern repetition penalty that reliably prevents looping" (2024, text-generation-webui).

    Parameters
    ----------
    multiplier : float
        0 switches it off.
    base : float
        At least 1.
    allowed_length : int
        At least 1.
    window : int
        How many of the last tokens are looked at; 0 for all.
    breakers : ids
        Tokens that no repetition goes across, such as line ends and quotes.
    """

    def __init__(
        self,
        multiplier: float,
        base: float = 1.75,
        allowed_length: int = 2,
        window: int = 0,
        breakers: Iterable[int] = (),
    ) -> None:
        for name, value, least in (("multiplier", multiplier, 0), ("base", base, 1)):
            check_number(f"dry_{name}", value)
            if not (math.isfinite(value) and value >= least):
                raise ConstrainError(f"dry_{name} must be a number from {least} up, not {value}")
        if check_integer("dry_allowed_length", allowed_length) < 1:
            raise ConstrainError(f"dry_allowed_length must be 1 or more, not {allowed_length}")
        if check_integer("dry_window", window) < 0:
            raise ConstrainError(f"dry_window must be 0 (all) or more, not {window}")
        self._multiplier, self._base, self._allowed, self._window = multiplier, base, allowed_length, window
        self._breakers = np.array([check_integer("dry_breakers: an id", token) for token in breakers], dtype=np.int64)

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        history = situation.history[-self._window :]
        if self._multiplier == 0 or len(history) < 2:
            return candidates
        backwards = history[::-1]
        stops = np.flatnonzero(np.isin(backwards, self._breakers))
        limit = int(stops[0]) if len(stops) else len(history)
        lengths = np.minimum(_matches(backwards.tolist()), limit)
        # The match at place i of the reversed history ends there, and the token before it, i - 1, went on with it.
        follows = backwards[:-1]
        longest: dict[int, int] = {}
        for place in np.flatnonzero(lengths[1:] >= self._allowed).tolist():
            token, length = int(follows[place]), int(lengths[place + 1])
            longest[token] = max(longest.get(token, 0), length)
        logits = candidates.logits.copy()
        for token, length in longest.items():
            if token in self._breakers:
                continue
            power = (length - self._allowed) * math.log(self._base)
            penalty = self._multiplier * math.exp(power) if power < math.log(_LARGEST_PENALTY) else _LARGEST_PENALTY
            logits[candidates.ids == token] -= penalty
        return Candidates(candidates.ids, logits)


def _matches(tokens: list[int]) -> NDArray[np.int64]:
    """For each place how many tokens from there on are those from the beginning on (the Z array), in linear time."""
    size = len(tokens)
    lengths = [0] * size
    left = right = 0
    for place in range(1, size):
        if place < right:
            lengths[place] = min(right - place, lengths[place - left])
        while place + lengths[place] < size and tokens[lengths[place]] == tokens[place + lengths[place]]:
            lengths[place] += 1
        if place + lengths[place] > right:
            left, right = place, place + lengths[place]
    return np.array(lengths, dtype=np.int64)
