"""The library of machine code that an installation brings along, or that ``constrain warmup --native`` made.

It is an extension module (library.c, written by build.py) with all kernels of this version.  With it nothing is
compiled, and numba is not even imported.  A library is taken if it was made from the sources that are there and if the
processor has what it was compiled for; otherwise kernels are compiled by numba (jit.py), which takes a minute once.

``CONSTRAIN_KERNELS=jit`` has them compiled in any case.
"""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from constrain.cache_folder import cache_folders, find_in_caches
from constrain.kernels.digests import sources_digest
from constrain.kernels.native import SUFFIX, native_name
from constrain.kernels.signatures import Signature, parse_signature
from constrain.uninterrupted import load_numpy

_PACKAGE = Path(__file__).resolve().parents[1]
SHIPPED = _PACKAGE / "kernels" / "machine_code"
LEVELS = ("x86_64_v4", "x86_64_v3") if platform.machine() in ("x86_64", "AMD64") else (platform.machine(),)
"""The kinds of processors that libraries are made for, the best first."""

ANOTHER_PROCESSOR = "made for another processor"

_logger = logging.getLogger("constrain")


class Library:
    """The kernels of an extension module.

    Parameters
    ----------
    module : module
        As library.c makes it.
    """

    def __init__(self, module: Any) -> None:
        self.name: str = module.__name__
        self.digest: str = module.digest
        self.on_short_texts: Callable[..., Any] = module.on_short_texts
        self.untrack: Callable[[Any], None] = module.untrack
        self.are_at: Callable[[list[Any], Any], bool] = module.are_at
        self._kernels: dict[str, tuple[Any, int, str, str]] = module.kernels
        self._functions: dict[Any, Any] = {}

    def callable_of(self, function: Any, signatures: int) -> Any:
        """What Python calls instead of a function that is a kernel with so many signatures."""
        name = name_of(function)
        versions = [self._kernels[f"{name}#{i}" if i else name][0] for i in range(signatures)]
        kernel = versions[0] if signatures == 1 else _first_that_takes(versions)
        self._functions[kernel] = function
        return kernel

    def address_of(self, kernel: Any) -> int:
        """Where the machine code of a kernel begins."""
        return self._kernels[name_of(self.function_of(kernel))][1]

    def function_of(self, kernel: Any) -> Any:
        """The function that a kernel was made from; that of an inner kernel is the kernel."""
        return self._functions.get(kernel, kernel)

    def signature_of(self, kernel: Any) -> Signature:
        """What a kernel takes and returns."""
        function = self.function_of(kernel)
        _, _, arguments, result = self._kernels[name_of(function)]
        return parse_signature(function.__code__.co_varnames[: len(arguments) // 3], arguments, result)


def name_of(function: Any) -> str:
    """The name of a kernel in libraries."""
    return f"{function.__module__}.{function.__qualname__}"


def _first_that_takes(versions: list[Callable[..., Any]]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        for version in versions[:-1]:
            try:
                return version(*arguments)
            except TypeError:
                continue
        return versions[-1](*arguments)

    return call


def _find() -> Library | None:
    """The library to be used."""
    compiles = any(os.environ.get(f"NUMBA_{name}", "0") != "0" for name in ("DISABLE_JIT", "BOUNDSCHECK"))
    if compiles or os.environ.get("CONSTRAIN_KERNELS") == "jit":
        return None
    candidates = _native()
    candidates += [path for level in LEVELS for path in sorted(SHIPPED.glob(f"{level}.*"))]
    reasons = []
    for path in candidates:
        found = load(path)
        if isinstance(found, Library):
            return found
        reasons.append(f"{path.name}: {found}")
    if reasons or (SHIPPED.is_dir() and any(SHIPPED.iterdir())):
        why = "; ".join(reasons) or f"this processor is {platform.machine()}"
        _logger.warning("the kernels that came with this installation cannot be used (%s), so they are compiled", why)
    return None


def _native() -> list[Path]:
    """The library for this very processor, if there is one."""
    if not any(next(folder.glob("native_*"), None) for folder in cache_folders()):
        return []
    path = find_in_caches(f"{native_name()}{SUFFIX}")
    return [] if path is None else [path]


def load(path: Path, package: Path = _PACKAGE) -> Library | str:
    """The library of a file with the kernels of a package, or why it cannot be used."""
    name = path.name.partition(".")[0]
    # The extension module would make a failed import of an interrupt.
    load_numpy()
    try:
        spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        if not module.is_supported:
            return ANOTHER_PROCESSOR
        is_old = not hasattr(module, "are_at")
        if is_old or module.digest != sources_digest(package, module.sources.split("\n")):
            return "made from other sources"
    except (ImportError, OSError) as error:
        return str(error)
    return Library(module)


def check(path: Path, package: Path) -> None:
    """Raise ImportError if a library cannot be loaded, for another reason than that it is for another processor."""
    found = load(path, package)
    if isinstance(found, str) and found != ANOTHER_PROCESSOR:
        raise ImportError(found)


loaded = _find()
"""The library in use, if there is one."""
