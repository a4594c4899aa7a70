"""Limits for libraries whose loops know nothing of :func:`constrain.limits.spend`."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from constrain.errors import LimitError
from constrain.limits import OverError, deadlines

MOST_SECONDS = 10.0
"""How much processor time a library may take."""

_EVERY = 0.02

_AGAIN = 0.2
"""After so much more processor time in which the caller has not left, it is told to leave once more."""

_Result = TypeVar("_Result")


class _LeaveError(BaseException):
    """Ends what is being done; no library catches it."""


def watched(work: Callable[[], _Result]) -> _Result:
    """What ``work`` returns, unless it takes more than MOST_SECONDS, or than a deadline around it allows.

    A second thread looks at the time, and has the interpreter raise an exception in this one
    (``PyThreadState_SetAsyncExc``), which the work does not notice until then.  Where it comes in a finalizer or in a
    callback of a weak reference, Python drops it; so it is raised again until the work has ended.  Python's hooks for
    profilers and debuggers could do the same, but make what is watched take up to twice the time.

    Raises
    ------
    OverError
        If it takes too long; the outermost :class:`constrain.limits.limited` raises a LimitError then.  Outside of
        these nothing is limited.
    """
    look = deadlines()
    if look is None:
        return work()
    watch = _Watch(look)
    # From here on the exception may come at any place, and has to find its handler.
    try:
        try:
            watch.start()
            return work()
        finally:
            watch.end()
            if watch.over is not None:
                raise _LeaveError
    except BaseException as error:
        # It, or an interrupt, may have come in place of the call above.
        watch.end()
        if isinstance(error, _LeaveError) and watch.over is not None:
            raise OverError(watch.over) from None
        raise


class _Watch:
    def __init__(self, look: Callable[[], None]) -> None:
        self.over: LimitError | None = None
        self._look = look
        self._caller = threading.get_ident()
        # The processor time of the caller, where systems have a clock of it for other threads.
        self._clock = time.monotonic
        if hasattr(time, "pthread_getcpuclockid"):
            self._clock = partial(time.clock_gettime, time.pthread_getcpuclockid(self._caller))
        self._end = self._clock() + MOST_SECONDS
        self._is_over = threading.Event()
        self._lock = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self._run, name="constrain-watch", daemon=True).start()

    def end(self) -> None:
        """Raise nothing more in the thread that is watched, which is the one that calls this."""
        while True:
            try:
                with self._lock:
                    self._is_over.set()
                if self.over is None:
                    return
                # One may be on its way.  Another one takes its place, and is waited for.  To take it back (with a null
                # pointer) leaves the interpreter looking for it at every check, and 3.11 hangs under a profiler then.
                while True:
                    _raise_in(self._caller)
            except _LeaveError:
                if self._is_over.is_set():
                    return

    def _run(self) -> None:
        over: LimitError | None = None
        due = 0.0
        while not self._is_over.wait(_EVERY):
            over = over or self._exceeded()
            if over is None or self._clock() < due:
                continue
            with self._lock:
                if not self._is_over.is_set():
                    self.over = over
                    _raise_in(self._caller)
            due = self._clock() + _AGAIN

    def _exceeded(self) -> LimitError | None:
        """What is said of a limit that is exceeded."""
        try:
            self._look()
        except LimitError as error:
            return error
        if self._clock() > self._end:
            return LimitError(f"the grammar is too large: it takes more than {MOST_SECONDS:g} s to read; simplify it")
        return None


def _raise_in(thread: int) -> None:
    """Have the exception raised in a thread, in place of one that has not been raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_LeaveError))
