"""A text and some named arrays as bytes, and back: the container of what is written of a compiled grammar.

Bytes may come from anywhere.  What is read is a text and arrays of the stated types; what they mean is for the caller
to check.  The checksum finds damage, and not intent.
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
_TYPES: dict[str, np.dtype[Any]] = {"<i4": np.dtype("<i4"), "|u1": np.dtype("u1")}


def pack(magic: bytes, head: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """``magic``, a checksum, and the rest: a head, which JSON can hold, and arrays (int32[n] or uint8[n])."""
    plain = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, len(array)] for name, array in plain.items()]
    text = json.dumps({"head": head, "arrays": listed}).encode()
    body = b"".join([len(text).to_bytes(_LENGTH_BYTES, "little"), text, *(array.tobytes() for array in plain.values())])
    return magic + zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little") + body


def unpack(magic: bytes, data: bytes, what: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """The head, and the arrays by name: read-only views of ``data``.

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
        for name, dtype, length in stated["arrays"]:
            if type(length) is not int or length < 0:
                raise ValueError("an array has no length")
            end = place + length * _TYPES[dtype].itemsize
            arrays[str(name)] = np.frombuffer(body[place:end], _TYPES[dtype])
            if len(arrays[str(name)]) != length:
                raise ValueError("an array is cut off")
            place = end
        if place != len(body) or not isinstance(head, dict):
            raise ValueError("there is more than was stated")
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ConstrainError(f"these bytes are not {what}: {error}") from None
    return head, arrays
