"""Functions become kernels: found in a library of machine code, or compiled by numba and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from constrain.kernels.library import loaded
from constrain.kernels.signatures import Signature, read_signature, signature_of_types
from constrain.uninterrupted import uninterrupted

if loaded is None:
    # numba takes longer to import than all else that a start needs.
    import numba as _untyped
    from numba.core import sigutils

    from constrain.kernels.compiler import InnerKernelCompiler, KernelCompiler
    from constrain.kernels.files import keep_on_disk

    _numba: Any = _untyped
    _sigutils: Any = sigutils
    ENTRY: dict[str, Any] = {"nogil": True, "pipeline_class": KernelCompiler}
    """Options of kernels that Python calls, and that may make arrays."""
    INNER: dict[str, Any] = {**ENTRY, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    """Of kernels that only kernels call: without wrappers for Python and C, which take as long again."""
    WITHOUT_ARRAYS: dict[str, Any] = {"_nrt": False}
    """In addition, for kernels that make no arrays: they do not count references."""
    BECOMES_PART: dict[str, Any] = {"pipeline_class": InnerKernelCompiler}
    """In addition, for inner kernels that become part of those that call them."""
else:
    ENTRY, INNER, WITHOUT_ARRAYS, BECOMES_PART = {}, {"no_cpython_wrapper": True}, {}, {}


deferred: list[Any] | None = None
"""Kernels that Python calls, or that are called by their address, which are yet to be compiled; None while they are
compiled as they are defined."""


def defer() -> None:
    """From now on, do not compile kernels that are defined, but wait for :func:`compile_deferred`."""
    global deferred
    deferred = []


def compile_deferred() -> None:
    """Compile what has been put off, the last first.

    A process that does this beside another one, which compiles kernels as they are defined, meets it in the middle:
    each finds in the cache what the other has compiled.
    """
    for kernel in reversed(deferred or []):
        compile_kernel(kernel)


def njit(signatures: Any = None, **options: Any) -> Callable[[Any], Any]:
    """``numba.njit`` for explicit signatures: one, a list of them, or None if they follow from calls.

    With options of :data:`ENTRY` the kernel is compiled, or read from the disk, now.  With those of :data:`INNER` that
    happens when the first kernel that calls it is compiled.  Machine code on disk holds all that it calls, so a start
    with a full cache does without: these are three quarters of the kernels.

    Where there is a library, it has the machine code, and the function of an inner kernel is left as it is.
    """
    wanted = tuple(signatures) if isinstance(signatures, list) else () if signatures is None else (signatures,)
    is_inner = options.get("no_cpython_wrapper", False)

    def decorate(function: Any) -> Any:
        if loaded is not None:
            return function if is_inner else loaded.callable_of(function, len(wanted))
        kernel = _numba.njit(**options)(function)
        if not hasattr(kernel, "overloads"):
            return kernel  # NUMBA_DISABLE_JIT
        kernel.compile = partial(_compile_once, kernel, kernel.compile)
        kernel.wanted = wanted
        keep_on_disk(kernel)
        if is_inner:
            _compile_when_called(kernel)
        elif deferred is not None:
            deferred.append(kernel)
        elif wanted:
            compile_kernel(kernel)
        return kernel

    return decorate


def _compile_once(kernel: Any, compile_for: Callable[[Any], Any], signature: Any) -> Any:
    try:
        return uninterrupted(compile_for, signature)
    finally:
        kernel._cache.is_compiled()


def _compile_when_called(kernel: Any) -> None:
    resolve = kernel.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        compile_kernel(kernel)
        return resolve(args, kws)

    kernel.get_call_template = get_call_template


def compile_kernel(kernel: Any) -> Any:
    """The compiled code of a kernel (numba's compile result), for the first of its signatures."""
    if kernel.wanted and not kernel.overloads:
        for signature in kernel.wanted:
            kernel.compile(signature)
        kernel.disable_compile()
    return next(iter(kernel.overloads.values()), None)


def call_by_address(kernel: Any) -> None:
    """Let an inner kernel have machine code of its own, for :func:`address_of`."""
    if loaded is not None or not hasattr(kernel, "overloads"):
        return
    if deferred is not None and kernel not in deferred:
        deferred.append(kernel)
    if not kernel.overloads and kernel.targetoptions.get("pipeline_class") is InnerKernelCompiler:
        kernel._compiler.pipeline_class = KernelCompiler
    if deferred is None:
        compile_kernel(kernel)


def address_of(kernel: Any) -> int:
    """Where the machine code of a kernel begins; 0 while kernels are deferred."""
    if loaded is not None:
        return loaded.address_of(kernel)
    if deferred is not None:
        return 0
    compiled = compile_kernel(kernel)
    library = compiled.library
    if not getattr(library, "has_machine_code", True):
        # Another kernel called it before it was said to be called by its address.
        library.make_machine_code()
        kernel._cache.save_overload(kernel.wanted[0], compiled)
    return int(library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def without_dispatch(kernel: Any) -> Any:
    """A kernel of one signature as numba's own wrapper, which does not look at types: half the time of a short call.

    For arguments that are known to be right: an array of another type would be taken for one of the right type.
    """
    if loaded is not None or deferred is not None or not hasattr(kernel, "overloads"):
        return kernel
    (compiled,) = kernel.overloads.values()
    return compiled.entry_point


def python_function(kernel: Any) -> Any:
    """The function that a kernel was made from."""
    return loaded.function_of(kernel) if loaded is not None else getattr(kernel, "py_func", kernel)


def signature_of(kernel: Any) -> Signature:
    """What a kernel takes and returns, or what the text of a signature says."""
    if isinstance(kernel, str):
        return read_signature(kernel)
    if loaded is not None:
        return loaded.signature_of(kernel)
    arguments, result = types_of(kernel)
    return signature_of_types(kernel.py_func.__code__.co_varnames[: len(arguments)], arguments, result)


def types_of(kernel: Any) -> tuple[tuple[Any, ...], Any]:
    """numba's types of the arguments and of the result of a kernel, or of the text of a signature."""
    if loaded is not None:
        return (), None
    arguments, result = _sigutils.normalize_signature(kernel if isinstance(kernel, str) else kernel.wanted[0])
    return arguments, result
