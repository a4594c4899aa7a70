"""No garbage collection while a schema is read."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_pauses = 0
_resume = False


@contextmanager
def paused_collection() -> Iterator[None]:
    """Cyclic garbage is not looked for in here, in no thread; afterwards as before.

    Reading a schema makes one object after the other and drops none before the end.  The collector is called for
    every so many new objects and finds nothing: for a schema of 3 MB that is more than half of the time.
    """
    global _pauses, _resume
    # Calls in several threads overlap: the first one pauses, the last one resumes.
    with _lock:
        if _pauses == 0:
            _resume = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if _pauses == 0 and _resume:
                gc.enable()
