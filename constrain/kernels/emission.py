"""Code of kernels for object files, instead of for this process.

Several processes compile a part of all kernels each.  None is compiled twice: what a kernel that is called takes and
returns its signature says, and what it is called its number, so its code can come from another process.  Only the whole
is optimised, once for each kind of processor; so what many kernels have in common is optimised once too.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from constrain.kernels import compiler, jit
from constrain.kernels.adapters import adapter
from constrain.kernels.library import name_of
from constrain.kernels.signatures import signature_of_types

_llvm: Any = importlib.import_module("llvmlite.binding")
_codegen: Any = importlib.import_module("numba.core.codegen")
_compiler: Any = importlib.import_module("numba.core.compiler")
_descriptors: Any = importlib.import_module("numba.core.funcdesc")
_templates: Any = importlib.import_module("numba.core.typing")
_signatures: Any = importlib.import_module("numba.core.sigutils")
_context: Any = importlib.import_module("numba.core.registry").cpu_target.target_context
_lock: Any = importlib.import_module("numba.core.compiler_lock").global_compiler_lock


class _EmittedLibrary(compiler.InnerLibrary):
    """The code of a kernel without that of those it calls, which never is machine code in this process."""

    counts_references = False

    def add_linking_library(self, library: Any) -> None:
        """Link another library into this one."""
        if self.counts_references:
            _codegen.JITCodeLibrary.add_linking_library(self, library)
        else:
            super().add_linking_library(library)

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Nothing is added to it any more."""
        self._finalized = True

    def modules(self, found: dict[Any, Any]) -> None:
        """Find its module and those of all that it calls, by library; what has been found is not gone through again."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == _llvm.Linkage.external:
                # Another may have it: numba compiles some functions of its own for each kernel that calls them.
                function.linkage = "weak_odr"
        found[self] = self._final_module
        for library in self._linking_libraries:
            if library in found:
                continue
            if isinstance(library, _EmittedLibrary):
                library.modules(found)
            else:
                found[library] = library._get_module_for_linking().clone()


_numbers: dict[Any, int] = {}
"""The kernels, by their Python functions, in the order in which they are defined; it is the same in all processes."""
kernels: list[Any] = []
"""The same."""


def emit_instead_of_running() -> None:
    """Let kernels that this process defines from now on be compiled for :class:`Part` only."""

    def define_pipelines(self: Any) -> list[Any]:
        state = self.state
        if state.func_id.func in _numbers:
            state.func_id.unique_id = _numbers[state.func_id.func]
        state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        state.library = _EmittedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.counts_references = bool(state.flags.nrt)
        return compiler.useful_passes(state)

    compiler.KernelCompiler.define_pipelines = define_pipelines  # type: ignore[method-assign]
    # A number says which kernel it is.
    _compiler.Flags.get_mangle_string = lambda self: ""
    jit.defer()
    jit.keep_on_disk = _add  # type: ignore[attr-defined]
    jit._compile_when_called = lambda kernel: None


def _add(kernel: Any) -> None:
    """Let a kernel have no cache on disk, and be declared where it is called."""
    kernel._cache.is_compiled = lambda: None
    _numbers[kernel.py_func] = len(kernels)
    kernels.append(kernel)
    resolve = kernel.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        if kernel.wanted and not kernel.overloads:
            for signature in kernel.wanted:
                _declare(kernel, *_signatures.normalize_signature(signature))
            kernel.disable_compile()
        return resolve(args, kws)

    kernel.get_call_template = get_call_template


def _declare(kernel: Any, arguments: Any, result: Any) -> None:
    """Let a kernel be called whose code comes from elsewhere, or later."""
    function = kernel.py_func
    names = function.__code__.co_varnames[: len(arguments)]
    described = _descriptors.FunctionDescriptor(
        *(True, function.__module__, function.__qualname__, function.__qualname__, "", {}, result, {}, names, ()),
        mangler=_context.mangler,
        argtypes=arguments,
        abi_tags=[""],
        uid=_numbers[function],
    )
    signature = _templates.signature(result, *arguments)
    stand_in = SimpleNamespace(signature=signature, entry_point=object(), objectmode=False)
    _context.insert_user_function(stand_in.entry_point, described)
    kernel.overloads[arguments] = stand_in


class Part:
    """Some of the kernels, as one process compiles them."""

    def __init__(self) -> None:
        self._modules: dict[Any, Any] = {}
        self._own: list[str] = []
        self._entries: list[list[str]] = []

    def add(self, number: int) -> None:
        """Compile a kernel for all of its signatures."""
        kernel = kernels[number]
        kernel.overloads.clear()
        kernel.disable_compile(False)
        jit.compile_kernel(kernel)
        is_entry = kernel in (jit.deferred or [])
        names = kernel.py_func.__code__.co_varnames
        for version, compiled in enumerate(kernel.overloads.values()):
            compiled.library.modules(self._modules)
            mangled = compiled.fndesc.llvm_func_name
            self._own.append(mangled)
            if is_entry:
                arguments, result = compiled.signature.args, compiled.signature.return_type
                signature = signature_of_types(names[: len(arguments)], arguments, result)
                symbol, name = f"{number}_{version}", name_of(kernel.py_func)
                named = f"{name}#{version}" if version else name
                code = adapter(symbol, signature)
                self._entries.append([mangled, code, symbol, named, signature.code, signature.result])

    def write(self, path: Path) -> None:
        """Write it for :func:`object_code`; a list of its kernels stands beside it."""
        own = [module for library, module in self._modules.items() if isinstance(library, _EmittedLibrary)]
        whole = _linked(own)
        for library, module in self._modules.items():
            if not isinstance(library, _EmittedLibrary):
                # Of numba's own runtime only what is called is taken, so it comes last.
                whole.link_in(module)
        # Another process may have given the same name to another function.
        _let_be_internal(whole, {name: name for name in self._own})
        path.write_bytes(whole.as_bitcode())
        path.with_suffix(".json").write_text(json.dumps(self._entries))


def object_code(paths: Sequence[Path], cpu: str, features: str) -> bytes:
    """The object file of all parts for a processor, as LLVM names it and its features."""
    triple = _llvm.Target.from_triple(_llvm.get_process_triple())
    machine = triple.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default")
    module = _linked([_llvm.parse_bitcode(path.read_bytes()) for path in paths])
    entries = [entry for path in paths for entry in json.loads(path.with_suffix(".json").read_text())]
    _let_be_internal(module, {mangled: f"kernel_{symbol}" for mangled, _, symbol, *_ in entries})
    codegen = _context.codegen()
    with _lock:
        own, codegen._tm = codegen._tm, machine
        try:
            passes, builder = codegen._module_pass_manager()
            passes.run(module, builder)
        finally:
            codegen._tm = own
    # Not before: kernels would become part of their adapters.
    module.link_in(_llvm.parse_assembly("\n".join(code for _, code, *_ in entries)))
    return bytes(machine.emit_object(module))


def _let_be_internal(module: Any, names: dict[str, str]) -> None:
    """Let nothing of a module be seen from outside but what is named, under its new name."""
    for value in (*module.functions, *module.global_variables):
        if value.is_declaration:
            continue
        if value.name in names:
            value.name, value.linkage = names[value.name], "external"
        else:
            value.linkage = "internal"


def _linked(modules: list[Any]) -> Any:
    """One module of some; they are used up.  Linking takes time for what is there as well, so they double in size."""
    while len(modules) > 1:
        for module, other in zip(modules[::2], modules[1::2], strict=False):
            module.link_in(other)
        modules = modules[::2]
    return modules[0]
