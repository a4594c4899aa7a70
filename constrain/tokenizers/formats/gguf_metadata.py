"""Reads the metadata of a GGUF file: what stands in front of the tensors, which are never touched.

A GGUF file (version 2 or 3, little or big endian) is: ``GGUF``, the version, the number of tensors and of
metadata entries, and then the entries: a key, the type of its value, the value.  Strings and arrays are
preceded by their length; no length is believed before it is compared with what is left of the file.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from constrain.errors import TokenizerError
from constrain.tokenizers.file_errors import errors_of

MAGIC = b"GGUF"

_STRING, _ARRAY, _BOOL = 8, 9, 7
_SCALARS = {0: "u1", 1: "i1", 2: "u2", 3: "i2", 4: "u4", 5: "i4", 6: "f4", 7: "u1", 10: "u8", 11: "i8", 12: "f8"}
_DEEPEST = 4


def read_gguf_metadata(path: Path, wanted: Callable[[str], bool] = lambda key: True) -> dict[str, Any]:
    """The metadata entries whose key is ``wanted``.

    Numbers and booleans are Python's; a string is ``bytes`` (its encoding is not checked); an array of strings
    is a list of bytes; an array of numbers is a numpy array; an array of arrays is a list.

    Raises :class:`TokenizerError` with the path if the file is not a GGUF file or is damaged.
    """
    return _read(path, wanted)[0]


def metadata_length(path: Path) -> int:
    """How many bytes of a GGUF file stand in front of what describes its tensors; errors as above."""
    return _read(path, lambda key: False)[1]


def _read(path: Path, wanted: Callable[[str], bool]) -> tuple[dict[str, Any], int]:
    with errors_of(path), path.open("rb") as file:
        if path.stat().st_size == 0:
            raise TokenizerError("an empty file")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            reader = _Reader(view)
            return reader.read(wanted), reader.position


class _Reader:
    def __init__(self, view: mmap.mmap) -> None:
        self._view = view
        self._size = len(view)
        self.position = 0
        self._order = "<"

    def read(self, wanted: Callable[[str], bool]) -> dict[str, Any]:
        if self._take(4) != MAGIC:
            raise TokenizerError("not a GGUF file")
        version = self._number("u4")
        if version in (2 << 24, 3 << 24):
            self._order = ">"
            version >>= 24
        if version not in (2, 3):
            raise TokenizerError(f"GGUF version {version} is not supported; supported are 2 and 3")
        self._number("u8")  # tensors
        count = self._number("u8")
        metadata: dict[str, Any] = {}
        for _ in range(count):  # every entry takes some bytes, so a wrong number ends at the end of the file
            key = self._take(self._number("u8")).decode("utf-8", "replace")
            kind = self._number("u4")
            if key in metadata:
                raise TokenizerError(f"GGUF key {key!r} is there twice")
            if wanted(key):
                metadata[key] = self._value(kind, 0)
            else:
                self._skip(kind, 0)
        return metadata

    def _take(self, length: int) -> bytes:
        if length > self._size - self.position:
            raise TokenizerError(f"damaged GGUF file: {length} bytes wanted at {self.position} of {self._size}")
        self.position += length
        return self._view[self.position - length : self.position]

    def _number(self, dtype: str) -> Any:
        return np.frombuffer(self._take(int(dtype[1])), dtype=self._order + dtype)[0].item()

    def _value(self, kind: int, depth: int) -> Any:
        if kind == _STRING:
            return self._take(self._number("u8"))
        if kind == _ARRAY:
            return self._array(depth)
        value = self._number(self._scalar(kind))
        return bool(value) if kind == _BOOL else value

    def _array(self, depth: int) -> Any:
        kind, count = self._number("u4"), self._number("u8")
        if kind == _STRING:
            ends = self._string_ends(count)
            view = self._view
            return [view[end - length : end] for end, length in ends]
        if kind == _ARRAY:
            self._check_nesting(count, depth)
            return [self._array(depth + 1) for _ in range(count)]
        dtype = np.dtype(self._order + self._scalar(kind))
        data = self._take(count * dtype.itemsize)
        return np.frombuffer(data, dtype=dtype).astype(dtype.newbyteorder("="))

    def _skip(self, kind: int, depth: int) -> None:
        if kind == _STRING:
            self._jump(self._number("u8"))
        elif kind != _ARRAY:
            self._jump(np.dtype(self._scalar(kind)).itemsize)
        else:
            inner, count = self._number("u4"), self._number("u8")
            if inner == _STRING:
                self._string_ends(count)
            elif inner == _ARRAY:
                self._check_nesting(count, depth)
                for _ in range(count):
                    self._skip(_ARRAY, depth + 1)
            else:
                self._jump(count * np.dtype(self._scalar(inner)).itemsize)

    def _jump(self, length: int) -> None:
        if length > self._size - self.position:
            raise TokenizerError(f"damaged GGUF file: {length} bytes wanted at {self.position} of {self._size}")
        self.position += length

    def _string_ends(self, count: int) -> list[tuple[int, int]]:
        """The end and the length of each of ``count`` strings; moves past them."""
        if count * 8 > self._size - self.position:
            raise TokenizerError(f"damaged GGUF file: {count} strings wanted at {self.position} of {self._size}")
        unpack = struct.Struct(self._order + "Q").unpack_from
        view, size, pos = self._view, self._size, self.position
        found = []
        for _ in range(count):
            if pos + 8 > size:
                raise TokenizerError(f"damaged GGUF file: it ends within an array of strings, at {pos}")
            length = unpack(view, pos)[0]
            pos += 8 + length
            if pos > size:
                raise TokenizerError(f"damaged GGUF file: a string of {length} bytes at {pos - length} of {size}")
            found.append((pos, length))
        self.position = pos
        return found

    def _check_nesting(self, count: int, depth: int) -> None:
        if depth >= _DEEPEST or count * 12 > self._size - self.position:
            raise TokenizerError(f"damaged GGUF file: arrays within arrays at {self.position}")

    def _scalar(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise TokenizerError(f"damaged GGUF file: value type {kind} at {self.position}")
        return _SCALARS[kind]
