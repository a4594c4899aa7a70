"""Keeps numba's cache of compiled kernels honest when kernels of several files depend on each other.

numba compiles a kernel together with what it calls and with the constants it reads, but looks for
changes only in the file that the kernel itself is in.  After an update of the package a kernel
could so go on with the old version of another file's table layout, and read memory that is not
its own.  Each folder of kernels therefore has a stamp over all of its kernels' sources beside the
machine code, and without a matching stamp the machine code is deleted.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

_STAMP = "constrain-kernels.stamp"
_COMPILER = Path(__file__).with_name("kernel_compiler.py")
_HOUR = 3600.0
_IMPORT = re.compile(rb"^\s*from [\w.]*\.(\w+) import\b", re.MULTILINE)


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


def drop_stale_kernels(folder: str | os.PathLike[str]) -> None:
    """Delete the machine code for the kernels in ``folder`` if it was made from other sources.

    To be called by the folder's ``__init__.py`` before a kernel is imported.  Kernels call kernels and read
    constants of their own folder only, and import them with ``from package.module import name``.
    """
    cache = cache_folder(folder)
    if cache is None:
        return
    stamp = cache / _STAMP
    digest = kernel_digest(os.fspath(folder)).encode()
    with contextlib.suppress(OSError):
        if stamp.read_bytes() == digest:
            return
    # What cannot be removed, as a file of another user, is not taken for what it is not (kernel_files.py).
    # Unfinished files are left by processes that were ended while they wrote; young ones may be being written.
    for pattern, age in (("*.nbi", 0.0), ("*.nbc", 0.0), ("*.nb[ic].tmp.*", _HOUR), (f"*.{_STAMP}", _HOUR)):
        with contextlib.suppress(OSError):
            for file in cache.glob(pattern):
                with contextlib.suppress(OSError):
                    if age == 0 or file.stat().st_mtime < time.time() - age:
                        file.unlink()
    with contextlib.suppress(OSError):
        with tempfile.NamedTemporaryFile(dir=cache, suffix=f".{_STAMP}", delete=False) as file_:
            file_.write(digest)
        os.replace(file_.name, stamp)


@functools.cache
def kernel_digest(folder: str) -> str:
    """A hash over all that decides the machine code of a folder's kernels.

    These are its files with kernels and, of the same folder, those that they import from; and how kernels are compiled,
    which numba does not look at either.
    """
    sources = {file.stem: file.read_bytes() for file in Path(folder).glob("*.py")}
    wanted = [name for name, source in sources.items() if b"njit" in source]
    for name in wanted:  # grows while it is gone through
        imported = (match.decode() for match in _IMPORT.findall(sources[name]))
        wanted += [other for other in imported if other in sources and other not in wanted]
    digest = hashlib.sha256(_COMPILER.read_bytes())
    for name in sorted(wanted):
        digest.update(f"{name} {len(sources[name])}\n".encode())
        digest.update(sources[name])
    return digest.hexdigest()
