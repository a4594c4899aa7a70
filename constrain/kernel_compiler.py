"""How numba compiles the kernels of this package: its own way, less what they have no use for.

Most of the time that numba takes for a kernel goes by in Python.  Four things of it can be spared:

- Python's garbage collector goes through all that numba keeps, again and again, and finds nothing.
- What type the sum of two integers has is found out anew for each sum, twice at least, by trying a dozen ways to add.
- Passes over the kernel look for what is in none: closures, expressions of whole arrays, overloads to be inlined.
- Compiler options are compared by reading each of them, for each overload that numba thinks of.

Together that is three tenths of the time.  What numba makes of a kernel is the same.
"""

from __future__ import annotations

import functools
import gc
import importlib
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

_numba: Any = importlib.import_module("numba.core.compiler")  # has no types, or incomplete ones

_WITHOUT_USE = ("InlineClosureLikes", "InlineOverloads", "NopythonRewrites")


class _ComparableFlags(_numba.Flags):  # type: ignore[misc, unused-ignore]
    """Compiler options that are compared as they are kept."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ComparableFlags) and self._values == other._values

    def __hash__(self) -> int:
        # The key of a dictionary has the types of the arguments beside the options, which are nearly always the same.
        return len(self._values)


class _Remembering:
    """What a typing context has in addition, to remember which types operators and builtin functions return.

    Only within one kernel: for kernels with other options numba compiles the implementation of a function again, and
    does so when it is asked for its type.
    """

    answers: ClassVar[dict[Any, Any]] = {}

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature of ``func`` for these arguments."""
        ask = super().resolve_function_type  # type: ignore[misc]
        if kws or not _are_plain(args):
            return ask(func, args, kws)
        return self._remembered((func, args), lambda: ask(func, args, kws))

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """The signature of an assignment to an element."""
        ask = super().resolve_setitem  # type: ignore[misc]
        args = target, index, value
        return self._remembered(args, lambda: ask(*args)) if _are_plain(args) else ask(*args)

    def _remembered(self, question: Any, ask: Callable[[], Any]) -> Any:
        answer = self.answers.get(question)
        if answer is None:
            answer = ask()
            # A kernel that is compiled meanwhile has answers of its own.
            self.answers[question] = answer
        return answer


def _are_plain(args: Iterable[Any]) -> bool:
    return all(isinstance(each, _PLAIN) for each in args)


_types: Any = importlib.import_module("numba.core.types")
_PLAIN = (_types.Number, _types.Boolean, _types.Literal, _types.Array)


@functools.cache
def _remembering(context: Any) -> Any:
    """A typing context that is the same as ``context`` in all else: they have their attributes in common."""
    kind = type("RememberingContext", (_Remembering, type(context)), {})
    twin: Any = object.__new__(kind)
    twin.__dict__ = context.__dict__
    return twin


_KEEPS_VALUES = hasattr(_numba.Flags(), "_values")


class KernelCompiler(_numba.CompilerBase):  # type: ignore[misc, unused-ignore]
    """A ``pipeline_class`` for ``numba.njit``."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, return_type: Any, flags: Any, local_types: Any
    ) -> None:
        if _KEEPS_VALUES:
            flags = _ComparableFlags(flags)
        super().__init__(_remembering(typing), target, library, args, return_type, flags, local_types)

    def compile_extra(self, func: Any) -> Any:
        """Compile ``func``; numba has its lock for all of the process meanwhile."""
        collects = gc.isenabled()
        gc.disable()
        answers, _Remembering.answers = _Remembering.answers, {}
        try:
            return super().compile_extra(func)
        finally:
            _Remembering.answers = answers
            if collects:
                gc.enable()

    def define_pipelines(self) -> list[Any]:
        """numba's passes, less those without use."""
        passes = _numba.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes[:] = [each for each in passes.passes if each[0].__name__ not in _WITHOUT_USE]
        return [passes]


OPTIONS: dict[str, Any] = {"nogil": True, "pipeline_class": KernelCompiler}
"""Options of :func:`constrain.kernel_files.njit` for every kernel."""
