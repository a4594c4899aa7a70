"""No garbage collection while a grammar is made."""

from __future__ import annotations

import gc
import threading
from threading import get_ident

from constrain.forking import call_in_child

_lock = threading.Lock()
_pauses: dict[int, int] = {}
"""How many pauses each thread is in."""
_resume = False


@call_in_child
def _forget_other_threads() -> None:
    """In a forked child there is one thread, and so no pause of another."""
    global _lock, _pauses
    was_paused = bool(_pauses) or _lock.locked()
    _lock = threading.Lock()
    here = get_ident()
    _pauses = {here: _pauses[here]} if here in _pauses else {}
    if was_paused and not _pauses and _resume:
        gc.enable()


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
        gc.freeze()
        gc.unfreeze()
        is_due = _unseen > _MOST_UNSEEN
        if is_due:
            _unseen = 0
    gc.enable()
    return is_due


class paused_collection:
    """Cyclic garbage is not looked for in here, in no thread; afterwards as before.

    Reading a schema, and loading a large grammar, makes one object after the other and drops none before the end.  The
    collector is called for every so many new objects and finds nothing: for a schema of 3 MB that is more than half of
    the time.
    """

    def __enter__(self) -> None:
        global _resume
        here = get_ident()
        # Calls in several threads overlap: the first one pauses, the last one resumes.
        with _lock:
            if not _pauses:
                _resume = gc.isenabled()
                gc.disable()
            _pauses[here] = _pauses.get(here, 0) + 1

    def __exit__(self, *_: object) -> None:
        here = get_ident()
        with _lock:
            pauses = _pauses.pop(here) - 1
            if pauses > 0:
                _pauses[here] = pauses
            is_due = not _pauses and _resume and _resume_collection()
        if is_due:
            # Without the lock, since finalizers run in here.
            gc.collect()
