"""The engines, by name.  One file each; an engine's package is imported in its worker only."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from bench.maskbench.engines.base import Engine

OURS = "constrain"

# name: (module here, class in it, package to install, arguments)
_ENGINES: dict[str, tuple[str, str, str, dict[str, object]]] = {
    OURS: ("ours", "Constrain", "constrain", {}),
    "llguidance": ("llguidance", "LLGuidance", "llguidance", {}),
    "xgrammar": ("xgrammar", "XGrammar", "xgrammar", {"options": {}}),
    "xgrammar-lax": (
        "xgrammar",
        "XGrammar",
        "xgrammar",
        {"options": {"any_whitespace": True, "strict_mode": False}},
    ),
    "outlines-core": ("outlines_core", "OutlinesCore", "outlines_core", {}),
}

NAMES = tuple(_ENGINES)
"""All of them, in the order in which tables show them."""

SCHEMAS_ONLY = frozenset({"xgrammar-lax"})
"""The same as another one but for JSON Schemas."""


def installed(name: str) -> bool:
    """Whether the engine's package is there."""
    return find_spec(_ENGINES[name][2]) is not None


def make(name: str, **more: object) -> Engine:
    """The engine of that name, with more arguments of its own; imports its package."""
    module, cls, _, arguments = _ENGINES[name]
    engine: Engine = getattr(import_module(f"bench.maskbench.engines.{module}"), cls)(**arguments, **more)
    return engine
