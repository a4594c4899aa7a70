"""What libraries are called: that for a machine's own processor, and the ending of all."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

SUFFIX = ".abi3.so"
"""Of all libraries: any Python from 3.10 on loads them."""

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
