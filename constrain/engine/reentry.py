"""Functions of a user's that run in the middle of a call, and must not use the grammar that waits for them.

The lock of a compiled grammar may be taken again by the thread that has it, since calls of the engine are made of
others.  While a user's function runs, tables are half changed, and a call from within would find or drop them so.
Then this lock stands in place of the grammar's own: other threads wait as ever, the calling one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from constrain.errors import ConstrainError

Result = TypeVar("Result")


class ReentryError(ConstrainError):
    """A call from within a function that another call of the same grammar waits for; it has done nothing."""


class _Locked(Protocol):
    lock: Any
    """An RLock."""


def call_out(owner: _Locked, function: Callable[..., Result], *args: Any) -> Result:
    """What a user's function returns, or one that calls it; meanwhile this thread cannot take the owner's lock.

    The caller holds the lock, or is the only one that knows its owner.
    """
    lock = owner.lock
    refusing = _RefusingLock(lock)
    try:
        owner.lock = refusing
        return function(*args)
    finally:
        owner.lock = lock


class _RefusingLock:
    """What other threads may wait for, and the one that has it may not take again."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def acquire(self, blocking: bool = True) -> bool:
        if not self._lock._is_owned():
            return self._lock.acquire(blocking)  # type: ignore[no-any-return]
        if not blocking:
            return False
        raise ReentryError(
            "a function given to narrow used a matcher, recognizer or compiled grammar that waits for what it returns"
        )

    def release(self) -> None:
        self._lock.release()

    def _is_owned(self) -> bool:
        # Whoever asks wants to know whether to release it, and who has it now does that elsewhere.
        return False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()
