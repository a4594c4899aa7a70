"""How kernels are compiled: the two decorators of this package.

Compile time is a cost that every user meets once, so it is kept down here: explicit signatures, a
cache on disk, and no wrappers for Python around kernels that only other kernels call.

The kernels do not count references.  They own no array: every array is an argument or a view of a
table (storage/tables.py), and lives as long as the compiled grammar.  The counts, though of nothing, would be calls in
the innermost loops.
"""

from __future__ import annotations

from typing import Any

from constrain.kernel_compiler import OPTIONS, InnerKernelCompiler, KernelCompiler
from constrain.kernel_files import njit

_ENTRY: dict[str, Any] = {**OPTIONS, "_nrt": False}
_WITHOUT_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = {**_ENTRY, **_WITHOUT_WRAPPERS, "pipeline_class": InnerKernelCompiler}


# Kernels that are yet to be compiled, and for what; None while kernels are compiled as they are defined.
_deferred: list[tuple[Any, tuple[Any, ...]]] | None = None


def defer() -> None:
    """From now on, do not compile kernels that are defined, but wait for :func:`compile_deferred`."""
    global _deferred
    _deferred = []


def compile_deferred() -> None:
    """Compile what has been put off, the last first.

    A process that does this beside another one, which compiles kernels as they are defined, meets it in the middle:
    each finds in the cache what the other has compiled.
    """
    for kernel, signatures in reversed(_deferred or []):
        if hasattr(kernel, "inner_signatures"):
            compile_inner(kernel)
            continue
        for signature in signatures:
            kernel.compile(signature)


def _compile_now_or_later(signatures: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if _deferred is None:
        return njit(list(signatures), **options)

    def decorate(function: Any) -> Any:
        kernel = njit(**options)(function)
        assert _deferred is not None
        _deferred.append((kernel, signatures))
        return kernel

    return decorate


def njit_entry(*signatures: Any) -> Any:
    """Compile a kernel that Python calls."""
    return _compile_now_or_later(signatures, _ENTRY)


def njit_inner(*signatures: Any) -> Any:
    """Compile a kernel that only kernels call; calling it from Python is not possible.

    It is compiled, or read from the cache, when the first kernel that calls it is compiled.  Machine
    code in the cache holds all that it calls, so a start with a full cache does without: these are
    three quarters of the kernels.
    """
    with_options = njit(**_INNER)

    def decorate(function: Any) -> Any:
        kernel = with_options(function)
        if not hasattr(kernel, "get_call_template"):
            return kernel  # NUMBA_DISABLE_JIT
        resolve = kernel.get_call_template

        def get_call_template(args: Any, kws: Any) -> Any:
            compile_inner(kernel)
            return resolve(args, kws)

        kernel.inner_signatures = signatures
        kernel.get_call_template = get_call_template
        return kernel

    return decorate


def put_off(kernel: Any) -> bool:
    """Defer a kernel that would be compiled now, if kernels are deferred."""
    if _deferred is None:
        return False
    if hasattr(kernel, "inner_signatures"):
        _deferred.append((kernel, ()))
    return True


def compile_inner(kernel: Any) -> Any:
    """The compiled code of an inner kernel (numba's compile result), for the first of its signatures."""
    if not kernel.overloads:
        for signature in kernel.inner_signatures:
            kernel.compile(signature)
        kernel.disable_compile()
    return next(iter(kernel.overloads.values()))


def call_by_address(kernel: Any) -> None:
    """Let an inner kernel have machine code of its own once it is compiled, for :func:`address_of`."""
    if hasattr(kernel, "overloads") and not kernel.overloads:
        kernel._compiler.pipeline_class = KernelCompiler


def address_of(kernel: Any) -> int:
    """Where the machine code of an inner kernel begins."""
    compiled = compile_inner(kernel)
    library = compiled.library
    if not getattr(library, "has_machine_code", True):
        # Another kernel called it before it was said to be called by its address.
        library.make_machine_code()
        kernel._cache.save_overload(kernel.inner_signatures[0], compiled)
    return int(library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def without_dispatch(kernel: Any) -> Any:
    """A kernel of one signature as numba's own wrapper, which does not look at types: half the time of a short call.

    For arguments that are known to be right: an array of another type would be taken for one of the right type.
    """
    if not hasattr(kernel, "overloads"):
        return kernel  # NUMBA_DISABLE_JIT
    if _deferred is not None:
        return kernel
    (compiled,) = kernel.overloads.values()
    return compiled.entry_point


def njit_allocating(*signatures: Any, inner: bool = False) -> Any:
    """Compile a kernel that makes arrays of its own while it runs; ``inner`` as in :func:`njit_inner`."""
    return _compile_now_or_later(signatures, {**OPTIONS, **(_WITHOUT_WRAPPERS if inner else {})})
