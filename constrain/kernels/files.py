"""Where the machine code of kernels is kept: numba's cache, made so that no file in it is trusted for its name alone.

numba reads what it finds.  A file that was cut short stops the import, and so does a full disk or a file of another
user; a kernel of an older version of the package is run if its own source file is the same.  Here a file ends with a
checksum over its content, over what it is the code of, and over all sources that the kernel depends on
(digests.py).  What does not fit is as if it were not there: the kernel is compiled, and the file replaced.  What
cannot be written is not kept.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import pickle
import re
import time
import warnings
import zlib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from constrain.cache_folder import cache_folders
from constrain.kernels.digests import kernel_digest

_caching: Any = importlib.import_module("numba.core.caching")  # has no types
_config: Any = importlib.import_module("numba").config

try:
    _fcntl: Any = importlib.import_module("fcntl")
except ImportError:
    _fcntl = None

_logger = logging.getLogger("constrain")
_CHECKSUM_BYTES = 4
_LONGEST_WAIT, _PAUSE = 120.0, 0.01
_HOUR = 3600.0


def _checksum(data: bytes, meaning: bytes) -> bytes:
    return zlib.crc32(meaning, zlib.crc32(data)).to_bytes(_CHECKSUM_BYTES, "little")


def _folders(source: str) -> list[Path]:
    """Where the machine code of a source file's kernels may be, in this order."""
    below = _caching._CacheLocator.get_suitable_cache_subpath(source)
    if _config.CACHE_DIR:
        return [Path(_config.CACHE_DIR, below)]
    package, *others = cache_folders()
    beside = Path(source).parent / "__pycache__"
    first = package / "kernels" / below if os.environ.get("CONSTRAIN_CACHE_DIR") else beside
    return [first, *(folder / "kernels" / below for folder in others)]


class _Place(_caching._CacheLocator):  # type: ignore[misc, unused-ignore]
    """Where the machine code of one kernel is written.

    Where that is depends on the source file only, and whether it is of this version on the digest.  So a copy of the
    package, or one in an image, need not have the times of its files.
    """

    def __init__(self, function: Any, source: str) -> None:
        self._line = function.__code__.co_firstlineno
        self.folders = _folders(source)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """The place for a function's code."""
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        """The first folder, whether or not it can be written."""
        return str(self.folders[0])

    def get_source_stamp(self) -> Any:
        """Nothing: the digest tells more."""
        return ()

    def get_disambiguator(self) -> str:
        """The line in which the kernel begins."""
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """Make it when something is written."""


class _Code(_caching.CompileResultCacheImpl):  # type: ignore[misc, unused-ignore]
    _locator_classes: ClassVar[list[Any]] = [_Place]


class _CheckedFiles(_caching.IndexDataCacheFile):  # type: ignore[misc, unused-ignore]
    """The index of a kernel, which names a file of machine code for each signature, and those files, in one folder.

    The checksum is behind the pickled object, where an older reader does not look.
    """

    def __init__(self, folder: Path, filename_base: str, digest: str) -> None:
        super().__init__(str(folder), filename_base, ())
        self.folder = folder
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
    """The cache of one kernel.

    It is read from the first folder that has it, also where that cannot be written, and written to the first where that
    is possible.
    """

    _impl_class = _Code

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        digest = kernel_digest(function.__code__.co_filename)
        folders = self._impl.locator.folders
        self._lock: Any = None
        self._places = [_CheckedFiles(folder, self._impl.filename_base, digest) for folder in folders]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for a signature; None if no folder has it.

        Then other processes that want it wait until :meth:`is_compiled`, so that they find it.
        """
        found = self._load(sig, target_context)
        if found is None and self._wait_for_others():
            found = self._load(sig, target_context)
            if found is not None:
                self.is_compiled()
        if found is None:
            _say_that_it_takes_a_while()
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        for place in self._places:
            self._cache_file = place
            found = super().load_overload(sig, target_context)
            if found is not None:
                return found
        return None

    def _wait_for_others(self) -> bool:
        """Take the lock of this kernel; False if that is not possible, or was not for two minutes."""
        if _fcntl is None or self._lock is not None:
            return False
        for place in self._places:
            with contextlib.suppress(OSError):
                place.folder.mkdir(parents=True, exist_ok=True)
                self._lock = _lock(place.folder / f"{self._impl.filename_base}.lock")
                return self._lock is not None
        return False

    def is_compiled(self) -> None:
        """Let other processes go on that wait for this kernel, after it was compiled or could not be."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._lock.name)
            self._lock.close()
            self._lock = None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the machine code for a signature, if that is possible."""
        errors = []
        for place in self._places:
            self._cache_file, self._cache_path = place, str(place.folder)
            try:
                place.folder.mkdir(parents=True, exist_ok=True)
                super().save_overload(sig, data)
                self._remove_older()
                return
            except OSError as error:
                errors.append(f"{self._cache_path} cannot be written ({error})")
        _warn("; ".join(errors))

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


def _lock(path: Path) -> Any:
    """A file that this process alone has locked, while it has this name; None if that takes too long."""
    end = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < end:
        file = path.open("wb")
        try:
            _fcntl.flock(file, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except (BlockingIOError, FileNotFoundError):
            time.sleep(_PAUSE)
        # Whoever had the lock has removed the file: it locks nothing any more.
        file.close()
    return None


def _is_unfinished(file: os.DirEntry[str]) -> bool:
    return ".tmp." in file.name and file.stat().st_mtime < time.time() - _HOUR


announcers: list[Callable[[], None]] = []
"""What is called once, before the first kernel is compiled; without any a line is logged."""
_said = False


def _say_that_it_takes_a_while() -> None:
    global _said
    if not _said:
        _said = True
        for announce in announcers or [_log]:
            announce()


def _log() -> None:
    _logger.warning(
        "compiling kernels for this machine, which takes about a minute once; `constrain warmup` does it before"
    )


_warned = False


def _warn(reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled kernels are not kept, so each start takes about a minute: {reason}; "
            "let CONSTRAIN_CACHE_DIR name a folder for them",
            RuntimeWarning,
            stacklevel=2,
        )


def keep_on_disk(kernel: Any) -> None:
    """Let a kernel have these files as its cache."""
    kernel._cache = _KernelFiles(kernel.py_func)
