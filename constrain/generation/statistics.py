"""What a generation measures about itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

FinishReason = Literal["complete", "length", "stop", "cancelled"]


@dataclass
class Statistics:
    """Times and counts of one generation; they grow while it runs.

    Times are in seconds, and only count work: not what the consumer does between two steps.  For a row of a batch
    they are those of the batch while the row was running.

    Attributes
    ----------
    prompt_tokens : int
        Tokens that the generation began with.
    tokens : int
        Tokens made, end-of-sequence and hidden stop tokens not counted.
    forced_tokens : int
        Those of them that the grammar left no choice about, made without asking the model.
    finish_reason : "complete", "length", "stop", "cancelled" or None
        "complete": the text is a whole string of the grammar; without a grammar, the model ended it.  "length":
        ``max_tokens`` or the end of the model's context came first (under a grammar only with ``budget=False``).
        "stop": a stop string or a stop token.  "cancelled": by :meth:`~.loop.Generation.cancel`.  None: still running,
        or abandoned.
    token_seconds : list of float
        For each token the time to make it; the first includes reading the prompt.
    mask_seconds, model_seconds, sample_seconds : float
        Where the time went: masks (only what the model's own time did not cover), asking the model, drawing.
    hidden_mask_seconds : float
        Time spent on masks in another thread, while the model was running.
    total_seconds : float
        All of it, with what is in none of the three above.
    """

    prompt_tokens: int = 0
    tokens: int = 0
    forced_tokens: int = 0
    finish_reason: FinishReason | None = None
    token_seconds: list[float] = field(default_factory=list)
    mask_seconds: float = 0.0
    model_seconds: float = 0.0
    sample_seconds: float = 0.0
    hidden_mask_seconds: float = 0.0
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
    def tokens_per_second(self) -> float | None:
        """Tokens over the total time; None where there is none."""
        return self.tokens / self.total_seconds if self.tokens and self.total_seconds else None

    @property
    def mask_share(self) -> float:
        """Part of the total time that went into masks, from 0 to 1."""
        return self.mask_seconds / self.total_seconds if self.total_seconds else 0.0

    @property
    def forced_share(self) -> float:
        """Part of the tokens that were forced, from 0 to 1."""
        return self.forced_tokens / self.tokens if self.tokens else 0.0

    def as_dict(self) -> dict[str, Any]:
        """All of it but the single times, ready for JSON."""
        return {
            "finish_reason": self.finish_reason,
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.tokens,
            "forced_tokens": self.forced_tokens,
            "forced_share": self.forced_share,
            "seconds_to_first_token": self.seconds_to_first_token,
            "mean_seconds_between_tokens": self.mean_seconds_between_tokens,
            "p99_seconds_between_tokens": self.p99_seconds_between_tokens,
            "tokens_per_second": self.tokens_per_second,
            "mask_seconds": self.mask_seconds,
            "mask_share": self.mask_share,
            "hidden_mask_seconds": self.hidden_mask_seconds,
            "model_seconds": self.model_seconds,
            "sample_seconds": self.sample_seconds,
            "total_seconds": self.total_seconds,
        }
