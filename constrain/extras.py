"""How to get what an optional part of the package needs, for messages."""

from __future__ import annotations

from constrain.version import DISTRIBUTION


def how_to_install(extra: str) -> str:
    """The command that installs the packages of an extra.

    >>> how_to_install("pydantic")
    "pip install 'constrain-llm[pydantic]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"
