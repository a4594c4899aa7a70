"""Threads kept between calls: started when they are first needed, and anew in a forked child, which has none.

An interrupt may come at any line of a call, and what it leaves must not hold up the next one.  ``ThreadPoolExecutor``
does not give that: its semaphore is Python code, and an interrupt that finds it locked leaves it locked, so that every
later call waits for ever.  Here all that calls wait for is a lock or a queue of the interpreter's own.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from queue import SimpleQueue

from constrain.forking import renew_in_child


class Work:
    """A function that a thread is to call.

    It is made before it is handed over, so that its caller knows of it whenever an interrupt comes.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._lock, self._is_taken = threading.Lock(), False
        self._error: BaseException | None = None
        # Held until it is done.
        self._undone = threading.Lock()
        self._undone.acquire()

    def cancel(self) -> bool:
        """Whether no thread has begun it; none will then."""
        return self._take()

    def wait(self) -> None:
        """Wait until a thread that has begun it is done; raise what the function has raised."""
        with self._undone:
            pass
        if self._error is not None:
            raise self._error

    def _take(self) -> bool:
        """Whether it is the caller's, who is the first then."""
        with self._lock:
            is_mine, self._is_taken = not self._is_taken, True
        return is_mine

    def call(self) -> None:
        """Call the function, in a thread, unless it is cancelled."""
        if self._take():
            try:
                self._function()
            except BaseException as error:
                self._error = error

    def end(self) -> None:
        """Tell who waits."""
        self._undone.release()


class KeptThreads:
    """At most so many threads, which do what is handed to them in its order."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._has_ended = False
        self._renew_after_fork()
        renew_in_child(self)
        atexit.register(self._end)

    def _renew_after_fork(self) -> None:
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        # Those that take work.  One that an interrupt has kept from beginning is not among them.
        self._workers: list[threading.Thread] = []
        # How much is not done; after an interrupt it may be more than there is.
        self._open = 0

    def submit(self, work: Work) -> None:
        """Hand it to a thread; RuntimeError if there is none, and none can be started."""
        with self._lock:
            if self._has_ended:
                raise RuntimeError("no thread can be started at the interpreter's end")
            self._open += 1
            needs_another = len(self._workers) < min(self._most, self._open)
            self._queue.put(work)
        if needs_another:
            # Daemons, since nobody waits for them before _end is called.
            thread = threading.Thread(target=self._take_work, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                if not self._workers and work.cancel():
                    raise

    def _take_work(self) -> None:
        queue = self._queue
        with self._lock:
            if len(self._workers) >= self._most:
                return
            self._workers.append(threading.current_thread())
        while (work := queue.get()) is not None:
            work.call()
            # First, so that who has waited and comes with more finds this thread free.
            with self._lock:
                self._open -= 1
            work.end()
            # What it holds is not kept until there is more.
            work = None

    def _end(self) -> None:
        """Let all be done that was handed over, at the interpreter's end."""
        with self._lock:
            self._has_ended, workers = True, self._workers
        for _ in workers:
            self._queue.put(None)
        for worker in workers:
            worker.join()
