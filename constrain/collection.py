"""No garbage collection while a grammar is made."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import ParamSpec, TypeVar

from constrain.forking import call_in_child

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# Reentrant: a signal handler or a finalizer that makes a grammar may come in at any place.
_lock = threading.RLock()
_pauses: set[_Pause] = set()
"""Those that have begun and are not over."""
_resume = False
"""Whether collection was on before the first of them, and is not yet on again."""


def _resume_behind_last() -> bool:
    """Let it go on if no pause is left; whether everything is to be looked at now."""
    global _resume
    is_due = not _pauses and _resume and _resume_collection()
    if not _pauses:
        _resume = False
    return is_due


@call_in_child
def _forget_other_threads() -> None:
    """In a forked child there is one thread, and so no pause of another."""
    global _lock, _pauses
    _lock = threading.RLock()
    here = get_ident()
    _pauses = {pause for pause in _pauses if pause.thread == here}
    _resume_behind_last()


# More new objects than that are not looked at at once when collection goes on.
_MANY = 200_000

# But when so many have not been looked at, everything is.
_MOST_UNSEEN = 5_000_000

_unseen = 0


def _resume_collection() -> bool:
    """Let it go on; whether everything is to be looked at now."""
    global _unseen
    is_due = False
    new = gc.get_count()[0]
    # Who has frozen objects would find them no longer frozen.
    if new > _MANY and not gc.get_freeze_count():
        # The collector would go over all of them at the very next object that is made, for nothing: what was made is
        # in use.  Frozen and released again they are among the oldest ones, without a look at any of them.
        _unseen += new
        try:
            gc.freeze()
        finally:
            gc.unfreeze()
        is_due = _unseen > _MOST_UNSEEN
        if is_due:
            _unseen = 0
    gc.enable()
    return is_due


def _need_frames(count: int) -> None:
    """Raise RecursionError unless so many calls within each other are possible here."""
    if count > 1:
        _need_frames(count - 1)


class _Pause:
    """Collection is paused from :meth:`begin` to :meth:`end`, which may be called again."""

    def __init__(self) -> None:
        self.thread = get_ident()
        self._has_begun = self._is_over = False

    def begin(self) -> None:
        global _resume
        # Those of the end, which could not end it otherwise.
        _need_frames(3)
        # Calls in several threads overlap: the first one pauses, the last one resumes.
        with _lock:
            self._has_begun = True
            _pauses.add(self)
            # Within another pause it is off, and the other one has seen to this.
            if gc.isenabled():
                _resume = True
            gc.disable()

    def end(self) -> None:
        is_due = False
        if self._has_begun and not self._is_over:
            with _lock:
                _pauses.discard(self)
                is_due = _resume_behind_last()
                self._is_over = True
        if is_due:
            # Without the lock, since finalizers run in here.
            gc.collect()


def without_collection(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Cyclic garbage is not looked for while a function runs, in no thread; afterwards as before (a decorator).

    Reading a schema, and loading a large grammar or a tokenizer, makes one object after the other and drops none before
    the end.  The collector is called for every so many new objects and finds nothing: for a schema of 3 MB that is more
    than half of the time.
    """

    @wraps(function)
    def call(*args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        pause = _Pause()
        try:
            try:
                pause.begin()
                return function(*args, **options)
            finally:
                pause.end()
        finally:
            # An interrupt may have come in place of the first one.
            pause.end()

    return call
