"""Writes small GGUF files for tests."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

_KINDS = {np.dtype("f4"): 6, np.dtype("i4"): 5, np.dtype("u4"): 4, np.dtype("u1"): 0, np.dtype("i1"): 1}


def gguf_file(metadata: dict[str, Any], order: str = "<", tail: bytes = b"") -> bytes:
    """A file without tensors; ints become u32, lists arrays of strings, numpy arrays arrays of their kind."""
    out = [b"GGUF", struct.pack(f"{order}IQQ", 3, 0, len(metadata))]
    for key, value in metadata.items():
        out.append(_string(key.encode(), order))
        if isinstance(value, bool):
            out.append(struct.pack(f"{order}IB", 7, value))
        elif isinstance(value, int):
            out.append(struct.pack(f"{order}II", 4, value))
        elif isinstance(value, str | bytes):
            out += [struct.pack(f"{order}I", 8), _string(value, order)]
        elif isinstance(value, np.ndarray):
            out.append(struct.pack(f"{order}IIQ", 9, _KINDS[value.dtype], len(value)))
            out.append(value.astype(value.dtype.newbyteorder(order)).tobytes())
        else:
            out.append(struct.pack(f"{order}IIQ", 9, 8, len(value)))
            out += [_string(item, order) for item in value]
    return b"".join(out) + tail


def _string(value: str | bytes, order: str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(f"{order}Q", len(data)) + data
