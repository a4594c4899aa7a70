"""Compiling in the background: a pool of threads with a bound, and one compile for all who ask for the same at once.

Each who asks has a future of their own, which they may cancel.  When the last one has, the compile itself ends soon.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.kept_threads import KeptThreads, Work
from constrain.limits import Deadline

WORKERS = max(1, min(4, os.cpu_count() or 1))
"""How many grammars of a process are compiled in the background at the same time."""

_threads = KeptThreads(WORKERS, "constrain-compile")


class CompileFuture(Future[CompiledGrammar]):
    """What one who asked waits for.  It can be cancelled as long as there is no result, also while it is compiled."""

    def __init__(self, leave: Callable[[CompileFuture], None]) -> None:
        super().__init__()
        self._leave = leave

    def cancel(self) -> bool:
        """Whether it is cancelled now; others who wait for the same grammar still get it."""
        is_cancelled = super().cancel()
        if is_cancelled:
            self._leave(self)
        return is_cancelled


class CompileJobs:
    """The compiles of one compiler that are under way or wait for a thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[Hashable, _Job] = {}

    def submit(
        self,
        key: Hashable,
        compile_grammar: Callable[[Deadline], CompiledGrammar],
        time_limit: float | Deadline | None,
    ) -> CompileFuture:
        """A future for a grammar; an equal key joins the compile that is under way.

        Raises
        ------
        ConstrainError
            If ``time_limit`` is no positive number.
        RuntimeError
            If no thread can be started.
        """
        if not isinstance(time_limit, Deadline):
            Deadline(time_limit)  # Looks at the number; its clock does not matter.
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                job = _Job(self, key, compile_grammar, time_limit)
                job.begin()
                self._jobs[key] = job
            future = CompileFuture(job.leave)
            job.waiting.append(future)
        return future


class _Job:
    """One compile.  The lock is that of all jobs of the compiler."""

    def __init__(
        self,
        jobs: CompileJobs,
        key: Hashable,
        compile_grammar: Callable[[Deadline], CompiledGrammar],
        time_limit: float | Deadline | None,
    ) -> None:
        self.waiting: list[CompileFuture] = []
        self.work = Work(self.run)
        self._jobs, self._key, self._compile = jobs, key, compile_grammar
        self._time_limit = time_limit
        self._deadline: Deadline | None = None
        self._is_wanted = True

    def begin(self) -> None:
        """Hand it to the pool."""
        try:
            _threads.submit(self.work)
        except BaseException:
            # It may be in the queue though no thread could be started for it.
            self._is_wanted = False
            raise

    def leave(self, future: CompileFuture) -> None:
        """One does not wait any more; the last one stops the work."""
        with self._jobs._lock:
            if self._is_wanted and all(other.cancelled() for other in self.waiting):
                # Whoever cancels twice comes here twice.
                self._is_wanted = False
                self._end()
                if self.work.cancel():
                    # It will not run, so that nobody else tells those who wait for cancelled futures.
                    for other in self.waiting:
                        other.set_running_or_notify_cancel()
                elif self._deadline is not None and self._deadline is not self._time_limit:
                    self._deadline.cancel()

    def _end(self) -> None:
        """Let nobody join any more."""
        if self._jobs._jobs.get(self._key) is self:
            del self._jobs._jobs[self._key]

    def run(self) -> None:
        """Compile, in a thread of the pool, and tell all who wait."""
        with self._jobs._lock:
            limit = self._time_limit
            # The time in the queue is none of the limit, but what a Deadline of the caller's has counted is.
            self._deadline = limit if isinstance(limit, Deadline) else Deadline(limit)
            is_wanted = self._is_wanted
        compiled, error = None, None
        try:
            if is_wanted:
                compiled = self._compile(self._deadline)
        except BaseException as found:
            error = found
        with self._jobs._lock:
            self._end()
            waiting = self.waiting
        for future in waiting:
            if future.set_running_or_notify_cancel():
                if error is not None:
                    future.set_exception(error)
                elif compiled is not None:
                    future.set_result(compiled)
