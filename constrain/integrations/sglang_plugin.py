"""The entry point that SGLang calls when it starts, in each of its processes."""

from __future__ import annotations

from importlib import import_module

from constrain.integrations.switches import enable_metrics


def register() -> None:
    """Make ``constrain`` a choice of ``--grammar-backend``; twice is as good as once.

    Raises
    ------
    ImportError
        If this SGLang lacks what a back end is made of; SGLang's log has it, and there is no such choice then.
    ConstrainError
        If ``CONSTRAIN_METRICS`` has another value than 0 and 1, or ``prometheus_client`` is not installed.
    """
    # What finds this module, a list of entry points, must not need SGLang.
    import_module("constrain.integrations.sglang").register()
    enable_metrics()
