"""Options of :func:`constrain.kernel_files.njit`."""

from __future__ import annotations

from typing import Any

from constrain.kernel_compiler import OPTIONS

ENTRY: dict[str, Any] = OPTIONS
"""For kernels that Python calls."""

INNER: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""For kernels that only kernels call: without wrappers for Python and C, which take as long again."""
