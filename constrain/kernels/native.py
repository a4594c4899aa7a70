"""The library made on a machine for its own processor: what it is called, and making it."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

SUFFIX = ".abi3.so"
"""Of all libraries: any Python from 3.10 on loads them."""

_PACKAGE = Path(__file__).resolve().parents[1]
_PROCESSORS = Path("/proc/cpuinfo")
# The first of them, with all that it can do.
_MOST_BYTES = 16384


def native_name() -> str | None:
    """The name of the library for this processor; None where a processor cannot be told from others.

    A folder may be shared by machines with different processors.
    """
    try:
        with _PROCESSORS.open("rb") as file:
            first = file.read(_MOST_BYTES).split(b"\n\n")[0]
    except OSError:
        return None
    said = re.findall(rb"^(?:model name|flags|Features|CPU part)\s*:.*$", first, re.MULTILINE)
    return f"native_{hashlib.sha256(b''.join(said)).hexdigest()[:16]}" if said else None


def build_native(folder: Path, *, package: Path = _PACKAGE, progress: Callable[[int, int], None] | None = None) -> Path:
    """Make the library for this processor in a folder; the others as for ``build_libraries``.

    Raises
    ------
    RuntimeError
        If it cannot be made.
    """
    name = native_name()
    if name is None:
        raise RuntimeError("what this processor can do is not known, so there is no library for it alone")
    build: Any = importlib.import_module("constrain.kernels.build")
    path = folder / f"{name}{SUFFIX}"
    build.build_libraries({path: build.host_target()}, package=package, progress=progress)
    return path
