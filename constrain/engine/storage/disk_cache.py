"""Named arrays in a file that may be lost, torn or shared at any time: a cache, never a source of truth.

Several processes may write the same file at once (each writes a file of its own and renames it), a machine may stop in
the middle (a length and a checksum tell), a file may have been given the name of another one (it holds its own),
and a folder may not be writable or a disk full (then nothing is kept).  No failure here is one that a caller has to
know of: what cannot be read is as if it had not been there.

A file is read, and not mapped into memory: a mapping would save 4 ms of 12 MB (measured), but a file that is cut off
while it is mapped, or removed by another machine on a network drive, ends the process that looks at it next.

All files of a folder together have a limit in bytes, which the environment variable
``CONSTRAIN_CACHE_LIMIT_BYTES`` sets.  Those that were not used for the longest time go first.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from constrain.engine.storage.packed_arrays import Array, pack_parts, unpack
from constrain.errors import ConstrainError

_MAGIC = b"constrain arrays 4\n"
_SUFFIX, _UNFINISHED = ".arrays", ".arrays.tmp"
_HOUR = 3600.0

LIMIT_VARIABLE = "CONSTRAIN_CACHE_LIMIT_BYTES"
DEFAULT_LIMIT_BYTES = 256 << 20
"""A vocabulary of 128,256 tokens takes two files, 7 MB and up to 1.5 MB."""

_SHARE = 4
"""One file may take the limit divided by this."""


def limit_bytes() -> int:
    """How many bytes the files of a folder may have together.

    Raises
    ------
    ConstrainError
        If the environment variable is no number of bytes.
    """
    stated = os.environ.get(LIMIT_VARIABLE)
    if stated is None:
        return DEFAULT_LIMIT_BYTES
    if not stated.isdecimal():
        raise ConstrainError(f"{LIMIT_VARIABLE} must be a number of bytes, not {stated!r}; 0 keeps nothing")
    return int(stated)


def name_of(content: str) -> str:
    """The name of the file for arrays that are called ``content``."""
    return f"{content}{_SUFFIX}"


def read(path: Path) -> dict[str, Array] | None:
    """The arrays in a file, one-dimensional; None if there is none that is whole."""
    try:
        with path.open("rb") as file:
            # One piece of memory takes half the time of many: it is made of large pages.
            data = np.empty(os.fstat(file.fileno()).st_size, np.uint8)
            if file.readinto(data.data) != len(data):
                return None
        head, arrays = unpack(_MAGIC, data.data, "a file of arrays")
    except (OSError, ConstrainError, MemoryError):
        return None
    if head != _head(path):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # for forget_oldest
    return arrays


def _head(path: Path) -> dict[str, str]:
    """The name says what the arrays are of, so a file under another one is not whole."""
    return {"name": path.name}


def write(path: Path, arrays: Mapping[str, Array]) -> bool:
    """Keep one-dimensional arrays in a file, in place of what it holds; False if that is not possible.

    It is not possible for arrays that would take more than a fourth of the limit.
    """
    limit = limit_bytes()
    if _SHARE * sum(array.nbytes for array in arrays.values()) > limit:
        return False
    parts = pack_parts(_MAGIC, _head(path), arrays)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=_UNFINISHED, delete=False) as file:
            temporary = file.name
            file.writelines(parts)
        os.replace(temporary, path)
        temporary = None
    except OSError:
        return False
    finally:
        # Also after an interrupt.
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    with contextlib.suppress(OSError):
        path.chmod(0o644)  # a temporary file is for its user alone; the folder says who may read this one
    forget_oldest(path.parent, limit)
    return True


def forget_oldest(folder: Path, limit: int) -> None:
    """Keep the files that were used last, up to the limit; remove what processes left that were ended while writing."""
    used: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for file in folder.glob(f"*{_SUFFIX}*"):
            with contextlib.suppress(OSError):  # another process may have been quicker
                found = file.stat()
                if file.name.endswith(_SUFFIX):
                    used.append((found.st_mtime, found.st_size, file))
                elif file.name.endswith(_UNFINISHED) and found.st_mtime < time.time() - _HOUR:
                    file.unlink()
    total = 0
    for _, size, file in sorted(used, reverse=True):
        total += size
        if total > limit:
            with contextlib.suppress(OSError):
                file.unlink()
