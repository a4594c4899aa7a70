"""What the machine code of a kernel was made from: a hash over all sources that it depends on.

numba compiles a kernel together with what it calls and with the constants it reads, but looks for changes only in the
file that the kernel itself is in.  After an update of the package a kernel could so go on with the old version of
another file's table layout, and read memory that is not its own.  files.py therefore marks machine code with
:func:`kernel_digest`, and takes none that was made from other sources.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_COMPILER = (Path(_FOLDER, "compiler.py"), Path(_FOLDER, "jit.py"))
_IMPORT = re.compile(rb"^\s*(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([\w.]+))", re.MULTILINE)
_NAME = re.compile(rb"\w+")


def kernel_digest(file: str) -> str:
    """A hash over all that decides the machine code of the kernels in a source file.

    These are the file, what it imports of its own package, what those import, and how kernels are compiled.
    """
    return _digest((file,))


@functools.cache
def tree_digest(folder: str | os.PathLike[str]) -> str:
    """As :func:`kernel_digest`, for all files with kernels below a folder."""
    return _digest(files_with_kernels(folder))


def files_with_kernels(folder: str | os.PathLike[str]) -> tuple[str, ...]:
    """The source files below a folder that define kernels."""
    files = sorted(Path(folder).rglob("*.py"))
    return tuple(str(path) for path in files if str(path.parent) != _FOLDER and b"@njit" in path.read_bytes())


@functools.cache
def _digest(files: tuple[str, ...]) -> str:
    top = os.path.dirname(_package_root(files[0]))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in _COMPILER))
    for name in sources_of(files):
        digest.update(os.path.relpath(name, top).encode() + _known_hash(name))
    return digest.hexdigest()


def sources_of(files: Sequence[str]) -> list[str]:
    """These source files and all of their package that they import, but for what only calls the compiler."""
    wanted = dict.fromkeys(files)
    pending = list(files)
    while pending:
        for imported in _imports(pending.pop()):
            if imported not in wanted and os.path.dirname(imported) != _FOLDER:
                wanted[imported] = None
                pending.append(imported)
    return sorted(wanted)


def source_hash(file: str) -> bytes:
    """A hash of the content of a source file."""
    # Without a Path and without a buffer: every start asks for some 200.
    with open(file, "rb", 0) as opened:
        return hashlib.sha256(opened.read()).digest()


_known_hash = functools.cache(source_hash)


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


def sources_digest(package: Path, sources: Iterable[str]) -> str:
    """A hash over the files that a package's kernels are made from, given as paths below it."""
    digest = hashlib.sha256()
    for name in sources:
        digest.update(name.encode() + source_hash(f"{package}{os.sep}{name}"))
    return digest.hexdigest()
