"""Where the machine code of kernels is kept: numba's cache, made so that no file in it is trusted for its name alone.

numba reads what it finds.  A file that was cut short stops the import, and so does a full disk or a file of another
user; a kernel of an older version of the package is run if its own source file is the same.  Here a file ends with a
checksum over its content, over what it is the code of, and over all sources that the kernel depends on
(kernel_cache.py).  What does not fit is as if it were not there: the kernel is compiled, and the file replaced.  What
cannot be written is not kept.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import re
import time
import warnings
import zlib
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from constrain.kernel_cache import kernel_digest
from constrain.uninterrupted import uninterrupted

_caching: Any = importlib.import_module("numba.core.caching")  # has no types
_numba: Any = importlib.import_module("numba")

_CHECKSUM_BYTES = 4
_HOUR = 3600.0


def _checksum(data: bytes, meaning: bytes) -> bytes:
    return zlib.crc32(meaning, zlib.crc32(data)).to_bytes(_CHECKSUM_BYTES, "little")


class _CheckedFiles(_caching.IndexDataCacheFile):  # type: ignore[misc, unused-ignore]
    """The index of a kernel, which names a file of machine code for each signature, and those files.

    The checksum is behind the pickled object, where an older reader does not look.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any, digest: str) -> None:
        super().__init__(cache_path, filename_base, source_stamp)
        self._meaning = f"{filename_base} {digest}".encode()

    def load(self, key: Any) -> Any:
        """The entry for a key; None if it is not there, or not whole."""
        name = self._load_index().get(key)
        return None if name is None else self._read(self._data_path(name), self._meaning_of(key))

    def save(self, key: Any, data: Any) -> None:
        """Keep an entry: first the machine code, and then the index that names it."""
        names = self._load_index()
        name = names.get(key)
        if name is None:
            taken = set(names.values())
            name = next(each for number in count(1) if (each := self._data_name(number)) not in taken)
        self._write(self._data_path(name), self._dump(data), self._meaning_of(key))
        if key not in names:
            self._save_index({**names, key: name})

    def _meaning_of(self, key: Any) -> bytes:
        return self._meaning + repr(key).encode()

    def _load_index(self) -> dict[Any, str]:
        found = self._read(self._index_path, self._meaning)
        if not isinstance(found, tuple) or found[:2] != (self._version, self._source_stamp):
            return {}
        return found[2]  # type: ignore[no-any-return]

    def _save_index(self, overloads: dict[Any, str]) -> None:
        found = self._version, self._source_stamp, overloads
        self._write(self._index_path, self._dump(found), self._meaning)

    def _write(self, path: str, data: bytes, meaning: bytes) -> None:
        with self._open_for_write(path) as file:
            file.write(data)
            file.write(_checksum(data, meaning))

    def _read(self, path: str, meaning: bytes) -> Any:
        try:
            with open(path, "rb") as file:
                data = file.read()
            body = data[:-_CHECKSUM_BYTES]
            return pickle.loads(body) if _checksum(body, meaning) == data[len(body) :] else None
        except Exception:  # whatever reading what is no pickle of this version may raise
            return None


class _KernelFiles(_caching.FunctionCache):  # type: ignore[misc, unused-ignore]
    """The cache of one kernel."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        digest = kernel_digest(function.__code__.co_filename)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, stamp, digest)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the machine code for a signature, if that is possible."""
        try:
            super().save_overload(sig, data)
            self._remove_older()
        except OSError as error:
            _warn(f"{self._cache_path} cannot be written ({error})")

    def _remove_older(self) -> None:
        """Remove the files of this kernel from when it stood in another line, which is part of their names.

        Unfinished files are left by processes that were ended while they wrote; young ones may be being written.
        """
        own = self._impl.filename_base
        kernel, _, version = own.rpartition("-")
        is_old = re.compile(rf"{re.escape(kernel)}-\d+{re.escape(version.lstrip('0123456789'))}\.").match
        for file in os.scandir(self._cache_path):
            if is_old(file.name) and (not file.name.startswith(f"{own}.") or _is_unfinished(file)):
                with contextlib.suppress(OSError):
                    os.unlink(file)


def _is_unfinished(file: os.DirEntry[str]) -> bool:
    return ".tmp." in file.name and file.stat().st_mtime < time.time() - _HOUR


_warned = False


def _warn(reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled kernels are not kept, so each start takes about a minute: {reason}; "
            "let NUMBA_CACHE_DIR name a folder for them",
            RuntimeWarning,
            stacklevel=2,
        )


def njit(signatures: Any = None, **options: Any) -> Callable[[Any], Any]:
    """``numba.njit`` with these files as its cache; ``signatures`` is one, a list of them, or None."""
    make = _numba.njit(**options)

    def decorate(function: Any) -> Any:
        kernel = make(function)
        if not hasattr(kernel, "overloads"):
            return kernel  # NUMBA_DISABLE_JIT
        kernel.compile = partial(uninterrupted, kernel.compile)
        try:
            kernel._cache = _KernelFiles(kernel.py_func)
        except RuntimeError as error:  # there is no folder that can be written
            _warn(str(error))
        if signatures is not None:
            for signature in signatures if isinstance(signatures, list) else [signatures]:
                kernel.compile(signature)
            kernel.disable_compile()
        return kernel

    return decorate
