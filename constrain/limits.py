"""Limits on the work and the time that making a grammar takes.

Whatever reads a grammar calls :func:`spend` in each of its loops that can be long.  So no input, however small and
hostile, takes more than a fixed number of steps, and a :class:`Deadline` holds in every part of a front-end without
being handed through all of them.  Outside of :func:`limited` it costs a look at a context variable and does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from numbers import Real

from constrain.errors import ConstrainError, LimitError

MAX_STEPS = 8_000_000
"""Steps that one grammar may take, each of about a microsecond; ordinary ones take some thousand."""

# The clock is read once in so many steps.
_SLICE = 128


class OverError(BaseException):
    """A call has no time or no work left.

    Within :func:`limited` it takes the place of the LimitError, which the outermost one raises for its callers.  A
    search catches the LimitError of its own bounds, and what it says then may be kept for good: a deadline, which has
    nothing to do with what is searched for, must not become such an answer.
    """

    def __init__(self, limit: LimitError) -> None:
        super().__init__(*limit.args)
        self.limit = limit


class Deadline:
    """A limit on time that another thread may bring forward.

    The clock starts when it is made.  It can be given as ``time_limit`` to several calls, which then share the time.

    Parameters
    ----------
    seconds : float, optional
        None for no limit but :meth:`cancel`.

    Raises
    ------
    ConstrainError
        ``seconds`` is no positive number.
    """

    def __init__(self, seconds: float | None = None) -> None:
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds > 0):
            raise ConstrainError(f"a time limit must be a positive number of seconds, not {seconds!r}")
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + float(min(seconds, 1e9))
        self._is_cancelled = False

    def cancel(self) -> None:
        """End the calls that have this deadline with a LimitError, soon; from any thread."""
        self._is_cancelled = True

    def check(self) -> None:
        """Raise LimitError if it was cancelled, or if time is up."""
        if self._is_cancelled:
            raise LimitError("the work on this grammar was cancelled")
        if self._end is not None and time.monotonic() > self._end:
            assert self.seconds is not None
            raise LimitError(
                f"the grammar takes longer than {float(self.seconds):g} s (time_limit): allow more or simplify the "
                "grammar"
            )


class _Work:
    """What is left to one call, and until when."""

    __slots__ = ("deadline", "left", "outer", "until_look", "what")

    def __init__(self, deadline: Deadline | None, outer: _Work | None, what: str) -> None:
        self.deadline = deadline
        self.what = what
        self.outer = outer
        self.left = MAX_STEPS
        self.until_look = _SLICE

    def look(self) -> None:
        """Check all limits."""
        self.left -= _SLICE - self.until_look
        self.until_look = _SLICE
        if self.left < 0:
            raise OverError(
                LimitError(f"the grammar is too large: {self.what} takes more than {MAX_STEPS:,} steps; simplify it")
            )
        try:
            self.look_at_time()
        except LimitError as limit:
            raise OverError(limit) from None

    def look_at_time(self) -> None:
        """Check the deadlines: raises LimitError."""
        work: _Work | None = self
        while work is not None:
            if work.deadline is not None:
                work.deadline.check()
            work = work.outer


_current: ContextVar[_Work | None] = ContextVar("constrain_work", default=None)


def spend(steps: int = 1) -> None:
    """Take note of some steps of work.  Raises OverError if they are too many, or take too long."""
    work = _current.get()
    if work is not None:
        work.until_look -= steps
        if work.until_look < 0:
            work.look()


def check() -> None:
    """Look at the limits now, before and after what is long by itself.  Raises OverError as :func:`spend` does."""
    work = _current.get()
    if work is not None:
        work.look()


def has_deadline() -> bool:
    """Whether the time of this call is limited, or may be."""
    work = _current.get()
    while work is not None:
        if work.deadline is not None:
            return True
        work = work.outer
    return False


class limited:
    """In here :func:`spend` counts, and ``time_limit`` (seconds, or a deadline) holds beside those around it.

    ``what`` is done in here, for the message of the LimitError that the outermost of these raises.
    """

    __slots__ = ("_token", "_work")
    _token: Token[_Work | None]

    def __init__(self, time_limit: float | Deadline | None, what: str = "reading it") -> None:
        deadline = time_limit if time_limit is None or isinstance(time_limit, Deadline) else Deadline(time_limit)
        outer = _current.get()
        self._work = _Work(deadline, outer, what) if deadline is not None or outer is None else None

    def __enter__(self) -> None:
        if self._work is not None:
            self._token = _current.set(self._work)
            if self._work.deadline is not None:
                try:
                    self._work.look()
                except OverError as error:
                    self.__exit__(OverError, error, error.__traceback__)
                    raise

    def __exit__(self, *reason: object) -> None:
        if self._work is not None:
            _current.reset(self._token)
            error = reason[1]
            if self._work.outer is None and isinstance(error, OverError):
                raise error.limit.with_traceback(error.__traceback__) from None


def deadlines() -> Callable[[], None] | None:
    """What raises LimitError once the work of this thread takes too long, for any thread; None without limits."""
    work = _current.get()
    return None if work is None else work.look_at_time
