"""What the machine code of a kernel was made from: a hash over all sources that it depends on.

numba compiles a kernel together with what it calls and with the constants it reads, but looks for changes only in the
file that the kernel itself is in.  After an update of the package a kernel could so go on with the old version of
another file's table layout, and read memory that is not its own.  kernel_files.py therefore marks machine code with
:func:`kernel_digest`, and takes none that was made from other sources.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_COMPILER = Path(__file__).with_name("kernel_compiler.py")
_IMPORT = re.compile(rb"^\s*(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([\w.]+))", re.MULTILINE)
_NAME = re.compile(rb"\w+")


@functools.cache
def _cache_folder(folder: str, _configured: str) -> Path | None:
    numba: Any = importlib.import_module("numba")

    def probe() -> None: ...

    # numba derives the place from the file that a function says it is from.
    probe.__code__ = probe.__code__.replace(co_filename=os.path.join(folder, "__init__.py"))
    try:
        dispatcher = numba.njit(cache=True)(probe)
    except RuntimeError:
        return None
    # With NUMBA_DISABLE_JIT set a function stays a function.
    return Path(dispatcher.stats.cache_path) if hasattr(dispatcher, "stats") else None


def cache_folder(folder: str | os.PathLike[str]) -> Path | None:
    """Where numba keeps the machine code for the package folder ``folder``; None if it can write nowhere."""
    numba: Any = importlib.import_module("numba")
    return _cache_folder(os.fspath(folder), numba.config.CACHE_DIR)


def kernel_digest(file: str) -> str:
    """A hash over all that decides the machine code of the kernels in a source file.

    These are the file, what it imports of its own package, what those import, and how kernels are compiled.
    """
    return _digest((file,))


@functools.cache
def tree_digest(folder: str | os.PathLike[str]) -> str:
    """As :func:`kernel_digest`, for all files with kernels below a folder."""
    return _digest(tuple(str(path) for path in sorted(Path(folder).rglob("*.py")) if b"njit" in path.read_bytes()))


@functools.cache
def _digest(files: tuple[str, ...]) -> str:
    wanted = dict.fromkeys(files)
    pending = list(files)
    while pending:
        for imported in _imports(pending.pop()):
            if imported not in wanted:
                wanted[imported] = None
                pending.append(imported)
    top = os.path.dirname(_package_root(files[0]))
    digest = hashlib.sha256(_COMPILER.read_bytes())
    for name in sorted(wanted):
        digest.update(os.path.relpath(name, top).encode() + _source_hash(name))
    return digest.hexdigest()


@functools.cache
def _source_hash(file: str) -> bytes:
    return hashlib.sha256(Path(file).read_bytes()).digest()


def _package_root(file: str) -> str:
    """The folder of the package that a file belongs to, the outermost one."""
    folder = os.path.dirname(os.path.abspath(file))
    while os.path.exists(os.path.join(os.path.dirname(folder), "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


@functools.cache
def _imports(file: str) -> tuple[str, ...]:
    """The files of its own package that a source file imports."""
    root = _package_root(file)
    package = os.path.basename(root).encode()
    found: dict[str, None] = {}
    for module, names, plain in _IMPORT.findall(Path(file).read_bytes()):
        first, *rest = (module or plain).split(b".")
        if first == package:
            place = os.path.join(root, *(part.decode() for part in rest))
            found.update(dict.fromkeys(_files_of(place, _NAME.findall(names))))
    return tuple(found)


def _files_of(place: str, names: Iterable[bytes]) -> Iterable[str]:
    if os.path.exists(f"{place}.py"):
        yield f"{place}.py"
        return
    for name in names:
        path = os.path.join(place, f"{name.decode()}.py")
        if os.path.exists(path):
            yield path
