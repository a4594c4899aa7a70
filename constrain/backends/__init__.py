"""Models behind one interface: :func:`load_backend` opens any of them."""

from constrain.backends.base import Backend
from constrain.backends.factory import load_backend
from constrain.backends.function import CallableBackend
from constrain.backends.options import BackendOptions

__all__ = ["Backend", "BackendOptions", "CallableBackend", "load_backend"]
