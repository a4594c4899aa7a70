"""Environment variables by which an operator switches on what a server does with constrain."""

from __future__ import annotations

import os
from importlib import import_module

from constrain.errors import ConstrainError

METRICS = "CONSTRAIN_METRICS"
"""1: what constrain does is counted and timed by ``prometheus_client``."""


def is_on(name: str) -> bool:
    """Whether an environment variable is 1; 0 is as if it were not set.

    Raises
    ------
    ConstrainError
        If it has another value.
    """
    value = os.environ.get(name, "0")
    if value not in ("", "0", "1"):
        raise ConstrainError(f"{name} must be 1 or 0, not {value!r}")
    return value == "1"


def enable_metrics() -> None:
    """Measure, if an operator has asked for it.

    Raises
    ------
    ConstrainError
        If the variable has another value than 0 and 1, or ``prometheus_client`` is not installed.
    """
    if is_on(METRICS):
        # It needs the whole engine, which a server that does not use it must not pay for.
        import_module("constrain.metrics").enable()
