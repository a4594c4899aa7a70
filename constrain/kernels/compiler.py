"""How numba compiles the kernels of this package: its own way, less what they have no use for.

Half of the time that numba takes for a kernel goes by in Python.  Four things of it can be spared:

- Python's garbage collector goes through all that numba keeps, again and again, and finds nothing.
- What type the sum of two integers has is found out anew for each sum, twice at least, by trying a dozen ways to add.
- Passes over the kernel look for what is in none: closures, expressions of whole arrays, overloads to be inlined.
- Compiler options are compared by reading each of them, for each overload that numba thinks of.

The other half is LLVM's.  Two things of it can be spared:

- A kernel is optimised twice, the first time so that numba can remove counts of references.  Kernels count none.
- A kernel that only kernels call becomes part of each of them, and is optimised and compiled there.  What it would be
  on its own nobody calls.

What a kernel that is called comes to is the same.
"""

from __future__ import annotations

import functools
import gc
import importlib
import operator
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

_numba: Any = importlib.import_module("numba.core.compiler")  # has no types, or incomplete ones
_codegen: Any = importlib.import_module("numba.core.codegen")
_runtime: Any = importlib.import_module("numba.core.runtime").rtsys

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
    lasting: ClassVar[dict[Any, Any]] = {}
    """Those about operators of integers, which nothing is compiled for."""

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature of ``func`` for these arguments."""
        ask = super().resolve_function_type  # type: ignore[misc]
        if kws or not _are_plain(args):
            return ask(func, args, kws)
        if func in _OPERATORS and all(isinstance(each, _INTEGERS) for each in args):
            answer = self.lasting.get((func, args))
            if answer is None:
                answer = self.lasting[func, args] = ask(func, args, kws)
            return answer
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
_INTEGERS = (_types.Integer, _types.Boolean)
_OPERATORS = frozenset(value for name, value in vars(operator).items() if not name.startswith("_") and callable(value))


@functools.cache
def _remembering(context: Any) -> Any:
    """A typing context that is the same as ``context`` in all else: they have their attributes in common."""
    kind = type("RememberingContext", (_Remembering, type(context)), {})
    twin: Any = object.__new__(kind)
    twin.__dict__ = context.__dict__
    return twin


class _Library(_codegen.JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """The code of a kernel."""

    def add_linking_library(self, library: Any) -> None:
        """Link another library into this one."""
        if library is not _runtime.library:
            super().add_linking_library(library)

    def _optimize_functions(self, module: Any) -> None:
        # Optimising all of it begins with that.
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class InnerLibrary(_codegen.JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """The code of a kernel that becomes part of others, and is machine code on its own once somebody asks for that."""

    has_machine_code = False

    def add_linking_library(self, library: Any) -> None:
        """Link another library into this one."""
        if library is not _runtime.library:
            super().add_linking_library(library)

    def _optimize_final_module(self) -> None:
        if self.has_machine_code:
            _Library._optimize_final_module(self)

    def _finalize_final_module(self) -> None:
        if self.has_machine_code:
            super()._finalize_final_module()
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def make_machine_code(self) -> None:
        """Make it callable by its address."""
        if self.has_machine_code:
            return
        self._get_module_for_linking()
        self.has_machine_code = True
        self._optimize_final_module()
        self._finalize_final_module()

    def get_pointer_to_function(self, name: str) -> int:
        """The address of a function; 0 without machine code."""
        self._ensure_finalized()
        return super().get_pointer_to_function(name) if self.has_machine_code else 0

    @property
    def codegen(self) -> Any:
        """The owner of the library, or without machine code one who has no place for what Python would read."""
        return self._codegen if self.has_machine_code else _WithoutEnvironments

    def serialize_using_object_code(self) -> Any:
        """What is kept on disk."""
        if self.has_machine_code:
            return super().serialize_using_object_code()
        return self.serialize_using_bitcode()


class _WithoutEnvironments:
    @staticmethod
    def set_env(_name: str, _environment: Any) -> None:
        """Keep nothing."""


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

    library = _Library

    def define_pipelines(self) -> list[Any]:
        """numba's passes, less those without use."""
        if not self.state.flags.nrt:
            self.state.library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            self.state.library.enable_object_caching()
        return useful_passes(self.state)


def useful_passes(state: Any) -> list[Any]:
    """numba's pipelines for a kernel, less the passes without use."""
    passes = _numba.DefaultPassBuilder.define_nopython_pipeline(state)
    passes.passes[:] = [each for each in passes.passes if each[0].__name__ not in _WITHOUT_USE]
    return [passes]


class InnerKernelCompiler(KernelCompiler):
    """The same for a kernel that only kernels call.

    ``library.make_machine_code()`` makes it callable through a pointer.
    """

    library = InnerLibrary
