"""How the engine's kernels are compiled: with explicit signatures, and nearly all without counts of references.

They own no array: every array is an argument or a view of a table (storage/tables.py), and lives as long as the
compiled grammar.  The counts, though of nothing, would be calls in the innermost loops.
"""

from __future__ import annotations

from typing import Any

from constrain.kernels.jit import BECOMES_PART, ENTRY, INNER, WITHOUT_ARRAYS, njit

_ENTRY: dict[str, Any] = {**ENTRY, **WITHOUT_ARRAYS}
_INNER: dict[str, Any] = {**INNER, **WITHOUT_ARRAYS, **BECOMES_PART}


def njit_entry(*signatures: Any) -> Any:
    """Compile a kernel that Python calls."""
    return njit(list(signatures), **_ENTRY)


def njit_inner(*signatures: Any) -> Any:
    """Compile a kernel that only kernels call; calling it from Python is not possible."""
    return njit(list(signatures), **_INNER)


def njit_allocating(*signatures: Any, inner: bool = False, fastmath: Any = False) -> Any:
    """Compile a kernel that makes arrays of its own while it runs.

    ``inner`` is as in :func:`njit_inner`, ``fastmath`` as in numba.
    """
    return njit(list(signatures), fastmath=fastmath, **(INNER if inner else ENTRY))
