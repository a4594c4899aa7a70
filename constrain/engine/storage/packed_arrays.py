"""A text and some named arrays as bytes, and back: the container of what is written of a compiled grammar, or a cache.

Bytes may come from anywhere.  What is read is a text and arrays of integers; what they mean is for the caller to check.
The checksum finds damage, and not intent.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from constrain.errors import ConstrainError

Array = np.ndarray[Any, np.dtype[Any]]

_CHECKSUM_BYTES = 4
_LENGTH_BYTES = 8
_ALIGNED = 64
"""The text, which ends in blanks, and each array end at multiples of this."""


def pack(magic: bytes, head: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """``magic``, a checksum, and the rest: a head, which JSON can hold, and one-dimensional arrays of integers."""
    return b"".join(pack_parts(magic, head, arrays))


def pack_parts(magic: bytes, head: Mapping[str, Any], arrays: Mapping[str, Array]) -> list[bytes | memoryview]:
    """The same in parts, of which the arrays are no copies."""
    plain = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, len(array)] for name, array in plain.items()]
    text = json.dumps({"head": head, "arrays": listed}).encode()
    text += b" " * _gap(len(magic) + _CHECKSUM_BYTES + _LENGTH_BYTES + len(text))
    parts: list[bytes | memoryview] = [len(text).to_bytes(_LENGTH_BYTES, "little"), text]
    for array in plain.values():
        parts += [array.data, bytes(_gap(array.nbytes))]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return [magic, checksum.to_bytes(_CHECKSUM_BYTES, "little"), *parts]


def _gap(size: int) -> int:
    return -size % _ALIGNED


def unpack(magic: bytes, data: bytes | memoryview, what: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """The head, and the arrays by name: views of ``data``, bytes or a view of some.

    Raises
    ------
    ConstrainError
        If ``data`` is not what :func:`pack` makes; ``what`` is what the message calls it.
    """
    view = memoryview(data)
    begin = len(magic) + _CHECKSUM_BYTES
    if view[: len(magic)] != magic:
        raise ConstrainError(f"these bytes are not {what}, or one of another format: they begin otherwise")
    if len(view) < begin + _LENGTH_BYTES:
        raise ConstrainError(f"these bytes are not {what}: they are cut off")
    body = view[begin:]
    if zlib.crc32(body) != int.from_bytes(view[len(magic) : begin], "little"):
        raise ConstrainError(f"these bytes are not {what} any more: they are damaged or cut off")
    try:
        place = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
        stated = json.loads(bytes(body[_LENGTH_BYTES:place]))
        head, arrays = stated["head"], {}
        for name, spelled, length in stated["arrays"]:
            dtype = np.dtype(spelled)
            if dtype.kind not in "iu" or type(length) is not int or length < 0:
                raise ValueError("an array has no length, or is none of integers")
            end = place + length * dtype.itemsize
            arrays[str(name)] = np.frombuffer(body[place:end], dtype)
            if len(arrays[str(name)]) != length:
                raise ValueError("an array is cut off")
            place = end + _gap(end - place)
        if place != len(body) or not isinstance(head, dict):
            raise ValueError("there is more than was stated")
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, SyntaxError) as error:
        raise ConstrainError(f"these bytes are not {what}: {error}") from None
    return head, arrays
