"""How these kernels are compiled: as the engine's, but with reference counts, since they make small arrays."""

from __future__ import annotations

from typing import Any

from constrain.engine.storage.jit import njit_allocating


def njit_entry(*signatures: Any) -> Any:
    """Compile a kernel that Python calls."""
    return njit_allocating(*signatures)


def njit_inner(*signatures: Any, fastmath: Any = False) -> Any:
    """Compile a kernel that only kernels call; ``fastmath``: what LLVM may assume of its floats, by LLVM's names."""
    return njit_allocating(*signatures, inner=True, fastmath=fastmath)
