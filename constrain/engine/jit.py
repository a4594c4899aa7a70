"""How kernels are compiled: the two decorators of this package.

Compile time is a cost that every user meets once, so it is kept down here: explicit signatures, a
cache on disk, and no wrappers for Python around kernels that only other kernels call.
"""

from __future__ import annotations

from typing import Any

from numba import njit

_ENTRY: dict[str, Any] = {"cache": True, "nogil": True}
_INNER: dict[str, Any] = {**_ENTRY, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def njit_entry(*signatures: Any) -> Any:
    """Compile a kernel that Python calls."""
    return njit(list(signatures), **_ENTRY)


def njit_inner(signature: Any) -> Any:
    """Compile a kernel that only kernels call; calling it from Python is not possible."""
    return njit(signature, **_INNER)
