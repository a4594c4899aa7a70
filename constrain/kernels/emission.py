"""Machine code of kernels for object files, instead of for this process."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from constrain.kernels import compiler
from constrain.kernels.jit import compile_kernel
from constrain.kernels.library import name_of
from constrain.kernels.signatures import Signature, signature_of_types

_llvm: Any = importlib.import_module("llvmlite.binding")
_codegen: Any = importlib.import_module("numba.core.codegen")
_passes: Any = importlib.import_module("numba.core.compiler").DefaultPassBuilder
_lock: Any = importlib.import_module("numba.core.compiler_lock").global_compiler_lock

_LLVM_TYPES = {"bool": "i8", "float32": "float", "float64": "double", "int32": "i32", "uint32": "i32"}


class _EmittedLibrary(compiler.InnerLibrary):
    """The code of a kernel, which never is machine code in this process."""

    counts_references = False

    def add_linking_library(self, library: Any) -> None:
        """Link another library into this one."""
        if self.counts_references:
            _codegen.JITCodeLibrary.add_linking_library(self, library)
        else:
            super().add_linking_library(library)

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def optimised(self, machine: Any) -> Any:
        """A copy of the module that is optimised for a processor."""
        with _lock:
            self._get_module_for_linking()
            module = self._final_module.clone()
            own, self._codegen._tm = self._codegen._tm, machine
            try:
                passes, builder = self._codegen._module_pass_manager()
                passes.run(module, builder)
            finally:
                self._codegen._tm = own
        return module


def emit_instead_of_running() -> None:
    """Let kernels of this process be compiled for :class:`Emission` only."""

    def define_pipelines(self: Any) -> list[Any]:
        state = self.state
        state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        state.library = _EmittedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.counts_references = bool(state.flags.nrt)
        passes = _passes.define_nopython_pipeline(state)
        passes.passes[:] = [each for each in passes.passes if each[0].__name__ not in compiler.WITHOUT_USE]
        return [passes]

    compiler.KernelCompiler.define_pipelines = define_pipelines  # type: ignore[method-assign]


def keep_nothing(kernel: Any) -> None:
    """Let a kernel have no cache on disk."""
    kernel._cache.is_compiled = lambda: None


class Emission:
    """Kernels on their way into object files, one for each kind of processor.

    Parameters
    ----------
    targets : sequence of (str, str)
        The processors and their features, as LLVM names them.
    """

    def __init__(self, targets: Sequence[tuple[str, str]]) -> None:
        triple = _llvm.Target.from_triple(_llvm.get_process_triple())
        self._machines = [
            triple.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default")
            for cpu, features in targets
        ]
        self._modules = [_llvm.parse_assembly("") for _ in targets]
        self.entries: list[tuple[str, str, str, str]] = []
        """Of each kernel its symbols' ending, its name, and the kinds of its arguments and its result."""

    def add(self, kernel: Any, number: int) -> None:
        """Compile a kernel for all of its signatures."""
        compile_kernel(kernel)
        names = kernel.py_func.__code__.co_varnames
        for version, compiled in enumerate(kernel.overloads.values()):
            arguments, result = compiled.signature.args, compiled.signature.return_type
            signature = signature_of_types(names[: len(arguments)], arguments, result)
            symbol = f"{number}_{version}"
            for machine, whole in zip(self._machines, self._modules, strict=True):
                module = compiled.library.optimised(machine)
                for value in (*module.functions, *module.global_variables):
                    if value.is_declaration:
                        continue
                    if value.name == compiled.fndesc.llvm_func_name:
                        value.name, value.linkage = f"kernel_{symbol}", "external"
                    else:
                        # Another process may have given the same name to another function.
                        value.linkage = "internal"
                whole.link_in(module)
                whole.link_in(_llvm.parse_assembly(adapter(symbol, signature)))
            name = name_of(kernel.py_func)
            self.entries.append((symbol, f"{name}#{version}" if version else name, signature.code, signature.result))

    def object_codes(self) -> list[bytes]:
        """The object file for each processor."""
        made = zip(self._machines, self._modules, strict=True)
        return [bytes(machine.emit_object(module)) for machine, module in made]


def adapter(symbol: str, signature: Signature) -> str:
    """LLVM's code for a function of (words, result, error) that calls a kernel.

    numba passes an array on as seven values, for one dimension: an owner, a parent, how many items, their size, the
    address, the shape and the strides.
    """
    lines: list[str] = []
    passed: list[str] = []

    def make(text: str) -> str:
        lines.append(f"  %v{len(lines)} = {text}")
        return f"%v{len(lines) - 1}"

    place = 0

    def following(kind: str = "i64") -> str:
        nonlocal place
        pointer = make(f"getelementptr i64, ptr %words, i64 {place}")
        place += 1
        return make(f"load {kind}, ptr {pointer}")

    for kind in signature.arguments.values():
        if not kind.dimensions:
            passed.append(f"{_LLVM_TYPES.get(kind.dtype, 'i64')} {following(_LLVM_TYPES.get(kind.dtype, 'i64'))}")
            continue
        size = _SIZES[kind.dtype]
        address, shape = following("ptr"), [following() for _ in range(kind.dimensions)]
        strides = [str(size)]
        for length in reversed(shape[1:]):
            strides.insert(0, make(f"mul i64 {strides[0]}, {length}"))
        items = shape[0]
        for length in shape[1:]:
            items = make(f"mul i64 {items}, {length}")
        passed += ["ptr null", "ptr null", f"i64 {items}", f"i64 {size}", f"ptr {address}"]
        passed += [f"i64 {each}" for each in (*shape, *strides)]
    types = ", ".join(each.split()[0] for each in passed)
    return "\n".join(
        [
            f"declare i32 @kernel_{symbol}(ptr, ptr, {types})",
            f"define i32 @adapter_{symbol}(ptr %words, ptr %result, ptr %error) {{",
            *lines,
            f"  %status = call i32 @kernel_{symbol}(ptr %result, ptr %error, {', '.join(passed)})",
            "  ret i32 %status",
            "}",
        ]
    )


_SIZES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "float32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
}
