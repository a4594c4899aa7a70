"""Threads kept between calls: started when they are first needed, and anew in a forked child, which has none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from constrain.forking import renew_in_child


class KeptThreads:
    """At most so many threads, which do what is handed to them in its order."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._renew_after_fork()
        renew_in_child(self)

    def _renew_after_fork(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, function: Callable[[], None]) -> Future[None]:
        """Hand a function to a thread; RuntimeError if none can be started."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._most, thread_name_prefix=self._name)
            pool = self._pool
        return pool.submit(function)
