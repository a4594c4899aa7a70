"""How long a part of a test takes, whatever else lives in the process."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Spent:
    """What a part of a test took."""

    seconds: float = 0.0


@contextmanager
def processor_time() -> Iterator[Spent]:
    """Processor seconds of this thread in the block, to be read behind it.

    The garbage collector is off in the block: thousands of tests leave millions of objects in a process, and
    one collection that goes through all of them takes longer than most of what is measured.
    """
    spent = Spent()
    was_enabled = gc.isenabled()
    gc.disable()
    begin = time.thread_time()
    try:
        yield spent
    finally:
        spent.seconds = time.thread_time() - begin
        if was_enabled:
            gc.enable()
