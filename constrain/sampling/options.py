"""The range of each sampling option; here, so that a wrong one is refused before any kernel is loaded."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping

from constrain.arguments import check_integer, check_number
from constrain.errors import ConstrainError

MOST_BEAMS = 1000
"""Texts in progress of a beam search: a thousand take a quarter of a minute with the smallest of models."""

HIGHEST_LENGTH_PENALTY = 40
"""A text of ten million tokens to this power is still a number."""

_LARGEST_LOGIT = 3.4028234663852886e38
"""Of single precision, which samplers compute logits in."""


def check_length_penalty(length_penalty: float) -> None:
    """Raise :class:`ConstrainError` if a beam search cannot compare texts by it."""
    check_number("length_penalty", length_penalty)
    if not -HIGHEST_LENGTH_PENALTY <= length_penalty <= HIGHEST_LENGTH_PENALTY:
        raise ConstrainError(
            f"length_penalty must be between -{HIGHEST_LENGTH_PENALTY} and {HIGHEST_LENGTH_PENALTY}, "
            f"not {length_penalty}"
        )


def check_options(
    temperature: float,
    top_k: int,
    top_p: float,
    seed: int | None,
    *,
    min_p: float = 0.0,
    typical: float = 1.0,
    repetition_penalty: float = 1.0,
    repetition_window: int = 64,
    frequency_penalty: float = 0.0,
    presence_penalty: float = 0.0,
) -> None:
    """Raise :class:`ConstrainError` if an option is out of range, or no number."""
    numbers = {"temperature": temperature, "top_p": top_p, "min_p": min_p, "typical": typical}
    numbers |= {"repetition_penalty": repetition_penalty, "frequency_penalty": frequency_penalty}
    for name, value in {**numbers, "presence_penalty": presence_penalty}.items():
        check_number(name, value)
    check_integer("top_k", top_k)
    check_integer("repetition_window", repetition_window)
    if seed is not None:
        check_integer("seed", seed)
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ConstrainError(f"temperature must be a number from 0 up, not {temperature}")
    if top_k < 0:
        raise ConstrainError(f"top_k must be 0 (off) or more, not {top_k}")
    if not 0 < top_p <= 1:
        raise ConstrainError(f"top_p must be above 0 and at most 1, not {top_p}")
    if not 0 <= min_p <= 1:
        raise ConstrainError(f"min_p must be from 0 (off) to 1, not {min_p}")
    if not 0 < typical <= 1:
        raise ConstrainError(f"typical must be above 0 and at most 1 (off), not {typical}")
    if not (math.isfinite(repetition_penalty) and repetition_penalty > 0):
        raise ConstrainError(f"repetition_penalty must be a number above 0 (1: off), not {repetition_penalty}")
    if repetition_window < 0:
        raise ConstrainError(f"repetition_window must be 0 (the whole history) or more, not {repetition_window}")
    for name, penalty in (("frequency_penalty", frequency_penalty), ("presence_penalty", presence_penalty)):
        if not math.isfinite(penalty):
            raise ConstrainError(f"{name} must be a finite number (0: off), not {penalty}")
    if seed is not None and not 0 <= seed < 2**64:
        raise ConstrainError(f"seed must be from 0 to 2**64 - 1, not {seed}")


def read_logit_bias(logit_bias: Mapping[int, float]) -> list[tuple[int, float]]:
    """Token ids and what is added to the logit of each.  Raises :class:`ConstrainError` for what is none."""
    if not isinstance(logit_bias, Mapping):
        raise ConstrainError(f"logit_bias must be a mapping of token ids to numbers, not {type(logit_bias).__name__}")
    read = []
    for token, value in logit_bias.items():
        check_number(f"logit_bias: the bias of token {token!r}", value)
        try:
            index = operator.index(token)
        except TypeError:
            raise ConstrainError(f"logit_bias: {token!r} is not a token id") from None
        if not 0 <= index < 2**31:
            raise ConstrainError(f"logit_bias: {index} is not a token id")
        if not (value == -math.inf or abs(value) <= _LARGEST_LOGIT):
            raise ConstrainError(
                f"logit_bias: the bias of token {index} must be -inf or a number of single precision, not {value}"
            )
        read.append((index, float(value)))
    return read
