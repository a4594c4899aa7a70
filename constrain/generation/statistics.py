"""What a generation measures about itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

FinishReason = Literal["complete", "length"]


@dataclass
class Statistics:
    """Times and counts of one generation; they grow while it runs.

    Times are in seconds, and only count work: not what the consumer does between two steps.

    Attributes
    ----------
    tokens : int
        Tokens made, the end-of-sequence token not counted.
    finish_reason : "complete", "length" or None
        "complete": the text is a whole string of the grammar.  "length": ``max_tokens`` came first.
        None: still running, or abandoned.
    token_seconds : list of float
        For each token the time to make it; the first includes reading the prompt.
    mask_seconds, model_seconds, sample_seconds : float
        Where the time went: filling masks, asking the model, drawing.
    total_seconds : float
        All of it, with what is not in the three above.
    """

    tokens: int = 0
    finish_reason: FinishReason | None = None
    token_seconds: list[float] = field(default_factory=list)
    mask_seconds: float = 0.0
    model_seconds: float = 0.0
    sample_seconds: float = 0.0
    total_seconds: float = 0.0

    @property
    def seconds_to_first_token(self) -> float | None:
        """None while there is no token."""
        return self.token_seconds[0] if self.token_seconds else None

    @property
    def mean_seconds_between_tokens(self) -> float | None:
        """Mean over the tokens after the first; None where there are none."""
        gaps = self.token_seconds[1:]
        return sum(gaps) / len(gaps) if gaps else None

    @property
    def p99_seconds_between_tokens(self) -> float | None:
        """The time that 99 in 100 tokens after the first did not exceed; None where there are none."""
        gaps = sorted(self.token_seconds[1:])
        return gaps[math.ceil(0.99 * len(gaps)) - 1] if gaps else None

    @property
    def mask_share(self) -> float:
        """Part of the total time that went into masks, from 0 to 1."""
        return self.mask_seconds / self.total_seconds if self.total_seconds else 0.0
