"""The entry point that vLLM calls when it starts, in each of its processes."""

from __future__ import annotations

from importlib import import_module

from constrain.integrations.switches import enable_metrics, is_on

SWITCH = "CONSTRAIN_VLLM"
"""The environment variable that switches it on: 1, or 0 as if it were not set."""


def register() -> None:
    """Put constrain in the place of vLLM's XGrammar, if ``CONSTRAIN_VLLM`` is 1; twice is as good as once.

    Raises
    ------
    ConstrainError
        If the variable has another value than 0 and 1, or this vLLM lacks what takes constrain's parts.  vLLM does not
        start then.
    """
    if is_on(SWITCH):
        # A server that does not use it must not pay for the import.
        import_module("constrain.integrations.vllm.places").take_places()
        enable_metrics()
