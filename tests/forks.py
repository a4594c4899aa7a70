"""What a forked child does, as a test."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def child_does(work: Callable[[], object], seconds: int = 30) -> bool:
    """Whether a forked child does some work in time, with a true result. What it raises stays in the child."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            # The default action needs nothing of Python: it ends a child that waits for a lock.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0
