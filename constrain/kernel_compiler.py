"""How numba compiles the kernels of this package: its own way, less what they have no use for.

Most of the time that numba takes for a kernel goes by in Python.  Three things of it can be spared:

- Python's garbage collector goes through all that numba keeps, again and again, and finds nothing.
- Passes over the kernel look for what is in none: closures, expressions of whole arrays, overloads to be inlined.
- Compiler options are compared by reading each of them, for each overload that numba thinks of.

Together that is a fifth of the time.  What numba makes of a kernel is the same.
"""

from __future__ import annotations

import gc
import importlib
from typing import Any

_numba: Any = importlib.import_module("numba.core.compiler")  # has no types, or incomplete ones

_WITHOUT_USE = ("InlineClosureLikes", "InlineOverloads", "NopythonRewrites")


class _ComparableFlags(_numba.Flags):  # type: ignore[misc, unused-ignore]
    """Compiler options that are compared as they are kept."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ComparableFlags) and self._values == other._values

    def __hash__(self) -> int:
        # The key of a dictionary has the types of the arguments beside the options, which are nearly always the same.
        return len(self._values)


_KEEPS_VALUES = hasattr(_numba.Flags(), "_values")


class KernelCompiler(_numba.CompilerBase):  # type: ignore[misc, unused-ignore]
    """A ``pipeline_class`` for ``numba.njit``."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, return_type: Any, flags: Any, local_types: Any
    ) -> None:
        if _KEEPS_VALUES:
            flags = _ComparableFlags(flags)
        super().__init__(typing, target, library, args, return_type, flags, local_types)

    def compile_extra(self, func: Any) -> Any:
        """Compile ``func``, without collecting garbage meanwhile."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if collects:
                gc.enable()

    def define_pipelines(self) -> list[Any]:
        """numba's passes, less those without use."""
        passes = _numba.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes[:] = [each for each in passes.passes if each[0].__name__ not in _WITHOUT_USE]
        return [passes]


OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "pipeline_class": KernelCompiler}
"""Options of ``numba.njit`` for every kernel."""
