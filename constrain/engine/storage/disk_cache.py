"""Named arrays in a file that may be lost, torn or shared at any time: a cache, never a source of truth.

Several processes may write the same file at once (each writes a file of its own and renames it), a machine may stop in
the middle (a length and a checksum tell), a file may have been given the name of another one (the checksum covers it),
and a folder may not be writable or a disk full (then nothing is kept).  No failure here is one that a caller has to
know of: what cannot be read is as if it had not been there.

A file is read, and not mapped into memory: a mapping would save 4 ms of 12 MB (measured), but a file that is cut off
while it is mapped, or removed by another machine on a network drive, ends the process that looks at it next.

All files of a folder together have a limit in bytes, which the environment variable
``CONSTRAIN_CACHE_LIMIT_BYTES`` sets.  Those that were not used for the longest time go first.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from constrain.errors import ConstrainError

Array = np.ndarray[Any, np.dtype[Any]]

_MAGIC = b"constrain arrays 3 "
_ALIGNED = 64
"""Arrays begin at multiples of this, behind the header."""
_LONGEST_HEADER = 4096
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
            header = file.readline(_LONGEST_HEADER)
            if not header.startswith(_MAGIC):
                return None
            stated, listed = header[len(_MAGIC) :].split(b" ", 1)
            checksum = zlib.crc32(listed, _checksum_of_name(path))
            entries = [(name, np.dtype(dtype), length) for name, dtype, length in json.loads(listed)]
            if any(dtype.kind not in "iu" or length < 0 for _, dtype, length in entries):
                return None
            # Before anything is allocated by what the header says.
            places = [_aligned(dtype.itemsize * length) for _, dtype, length in entries]
            if os.fstat(file.fileno()).st_size != len(header) + sum(places):
                return None
            # One piece of memory takes half the time of many: it is made of large pages.
            data = np.empty(sum(places), np.uint8)
            if file.readinto(data.data) != len(data) or zlib.crc32(data.data, checksum) != int(stated, 16):
                return None
        arrays = {}
        begin = 0
        for (name, dtype, length), size in zip(entries, places, strict=True):
            arrays[name] = data[begin : begin + dtype.itemsize * length].view(dtype)
            begin += size
    except (OSError, ValueError, TypeError, RecursionError, SyntaxError, MemoryError):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # for forget_oldest
    return arrays


def _checksum_of_name(path: Path) -> int:
    """What checksums begin with: the name says what the arrays are of, so a file under another one is not whole."""
    return zlib.crc32(path.name.encode("utf-8", "surrogateescape"))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def write(path: Path, arrays: Mapping[str, Array]) -> bool:
    """Keep one-dimensional arrays in a file, in place of what it holds; False if that is not possible.

    It is not possible for arrays that would take more than a fourth of the limit.
    """
    limit = limit_bytes()
    if _SHARE * sum(array.nbytes for array in arrays.values()) > limit:
        return False
    entries = [[name, array.dtype.str, len(array)] for name, array in arrays.items()]
    listed = json.dumps(entries).encode() + b"\n"
    checksum = zlib.crc32(listed, _checksum_of_name(path))
    contents: list[Any] = []
    for array in arrays.values():
        contents += [np.ascontiguousarray(array).data, bytes(_aligned(array.nbytes) - array.nbytes)]
    for content in contents:
        checksum = zlib.crc32(content, checksum)
    header = b"%s%08x %s" % (_MAGIC, checksum, listed)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=_UNFINISHED, delete=False) as file:
            temporary = file.name
            file.write(header)
            file.writelines(contents)
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
