"""The range of each sampling option; here, so that a wrong one is refused before any kernel is loaded."""

from __future__ import annotations

import math

from constrain.errors import ConstrainError


def check_options(temperature: float, top_k: int, top_p: float, seed: int | None) -> None:
    """Raise :class:`ConstrainError` if an option is out of range."""
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ConstrainError(f"temperature must be a number from 0 up, not {temperature}")
    if top_k < 0:
        raise ConstrainError(f"top_k must be 0 (off) or more, not {top_k}")
    if not 0 < top_p <= 1:
        raise ConstrainError(f"top_p must be above 0 and at most 1, not {top_p}")
    if seed is not None and not 0 <= seed < 2**64:
        raise ConstrainError(f"seed must be from 0 to 2**64 - 1, not {seed}")
