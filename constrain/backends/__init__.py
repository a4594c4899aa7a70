"""Models behind one interface: :func:`load_backend` opens any of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from constrain.backends.factory import load_backend
from constrain.backends.options import BackendOptions
from constrain.uninterrupted import load_numpy

if TYPE_CHECKING:
    from constrain.backends.base import Backend
    from constrain.backends.function import CallableBackend

# Loaded on first use: options can be checked without numba.
_EXPORTS = {"Backend": "constrain.backends.base", "CallableBackend": "constrain.backends.function"}

__all__ = ["Backend", "BackendOptions", "CallableBackend", "load_backend"]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    load_numpy()
    return getattr(import_module(_EXPORTS[name]), name)
