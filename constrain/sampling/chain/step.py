"""What a chain is made of: candidates, what a step knows besides them, and the step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LARGEST_SEED = 2**64


@dataclass(frozen=True)
class Candidates:
    """The tokens that may still be drawn, by increasing id.

    Attributes
    ----------
    ids : int64[m]
    logits : float64[m]
        All finite.
    """

    ids: NDArray[np.int64]
    logits: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ids)

    def probabilities(self) -> NDArray[np.float64]:
        """float64[m]: ``exp(x - max) / sum``."""
        weights = np.exp(self.logits - self.logits.max())
        probabilities: NDArray[np.float64] = weights / weights.sum()
        return probabilities

    def most_likely_first(self) -> NDArray[np.int64]:
        """int64[m]: the places of the candidates, among equals those with lower ids first."""
        return np.argsort(-self.logits, kind="stable")

    def keep(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> Candidates:
        """Those at some places; all of them if there would be none."""
        chosen = np.flatnonzero(places) if places.dtype == np.bool_ else np.sort(places)
        return Candidates(self.ids[chosen], self.logits[chosen]) if len(chosen) else self


class Randomness:
    """SplitMix64, which gives the same numbers on every platform (Steele, Lea and Flood, OOPSLA 2014)."""

    def __init__(self, state: int) -> None:
        self.state = state

    def uniform(self) -> float:
        """A number from 0 up and below 1."""
        self.state = (self.state + 0x9E3779B97F4A7C15) % _LARGEST_SEED
        value = self.state
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) % _LARGEST_SEED
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) % _LARGEST_SEED
        value ^= value >> 31
        return float((value >> 11) * 2.0**-53)


@dataclass(frozen=True)
class Situation:
    """What a step knows besides the candidates.

    Attributes
    ----------
    history : int64[n]
        The prompt and what was generated.
    generated : int
        How many tokens at the end of ``history`` were generated.
    random : Randomness
    n_logits : int
        How many tokens the model knows.
    """

    history: NDArray[np.int64]
    generated: int
    random: Randomness
    n_logits: int


class Step(ABC):
    """One step of a chain.  A step without state may be shared by chains."""

    @abstractmethod
    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        """The candidates that are left, at least one, perhaps with other logits."""

    def drawn(self, candidates: Candidates, place: int) -> None:  # noqa: B027  # most steps need not know
        """Is told which of the candidates that the whole chain left was drawn."""

    def fresh(self) -> Step:
        """A step with the same options that has seen nothing."""
        return self
