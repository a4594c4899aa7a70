"""How much memory this process has had resident at most."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

LIMIT = 12 << 30
"""Bytes of address space a worker may take, so that one grammar cannot take the machine with it."""


def peak(pid: int | None = None) -> int:
    """Bytes; 0 where that cannot be known (of another process on a system without /proc)."""
    # Where there is a /proc: getrusage's figure begins with what the parent had at the fork.
    try:
        for line in Path(f"/proc/{pid or 'self'}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    if pid is not None:
        return 0
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest << 10


def limit() -> None:
    """Let allocations beyond :data:`LIMIT` fail, where the system can do that."""
    if sys.platform == "linux":
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        soft = LIMIT if hard == resource.RLIM_INFINITY else min(LIMIT, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
