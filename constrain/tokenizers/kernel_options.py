"""How kernels are compiled that only kernels call: without wrappers for Python and C, which take as long again."""

from __future__ import annotations

from typing import Any

INNER: dict[str, Any] = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of ``numba.njit``."""
