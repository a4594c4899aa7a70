"""Calls that happen or do not: after an exception everything is as before the call.

An exception can come from anywhere in a call: a limit that is met, memory that runs out, a signal handler between two
bytecodes.  The engine does not try to leave each of its steps so that the next call can go on from there.  It relies on
two things that are cheap and certain instead:

- The tables of a compiled grammar are a cache of what its IR and the texts of its matchers say.  If an exception leaves
  a call, other than a refusal, they are *dropped*, by one store: ``ctx`` becomes a context without tables, in which no
  state is known.  The next call makes new ones and reads the text of its own matcher again.  Other matchers find their
  places when they are used.
- What a matcher knows beside them is small, and is put back as it was.

A grammar whose tables are full is no different: the call is tried once more with new tables, which hold only what its
own text needs.  If they are too small even for that, there is a :class:`~constrain.errors.LimitError`.

Signal handlers run where CPython looks for them: after a call, at the beginning of a function, at a jump back.  So a
few assignments in a row happen together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.recovery import find, make_ready
from constrain.engine.storage.tables import NO_TABLES, TablesFullError, TextTooLargeError
from constrain.errors import ConstrainError, LimitError

Result = TypeVar("Result")


class Restorable(Place, Protocol):
    """A place that can be put back where it was."""

    @property
    def compiled(self) -> GrammarTables:
        """Of which grammar."""

    def _save(self) -> Any:
        """What :meth:`_restore` puts back."""

    def _restore(self, saved: Any) -> None:
        """Be where it was, after an exception that may have come from anywhere."""


def transact(cursor: Restorable, operation: Callable[..., Result], *args: Any, finds: bool = True) -> Result:
    """Run an operation on a cursor under the lock of its grammar, all or nothing.

    ``finds``: whether the operation needs the state that the cursor is in.
    """
    compiled = cursor.compiled
    is_last = False
    while True:
        saved = cursor._save()
        try:
            with compiled.lock:
                try:
                    make_ready(compiled)
                    if finds:
                        find(compiled, cursor)
                    return operation(*args)
                except BaseException as error:
                    # First of all, so that a second exception cannot come between.
                    ctx, compiled.ctx = compiled.ctx, NO_TABLES
                    if is_refusal(error):
                        compiled.ctx = ctx
                    raise
        except BaseException as error:
            cursor._restore(saved)
            if is_last or not isinstance(error, TablesFullError) or isinstance(error, TextTooLargeError):
                raise
        is_last = True


def is_refusal(error: BaseException) -> bool:
    """Whether an exception says that something is not possible, which leaves the tables whole."""
    return isinstance(error, ConstrainError) and not isinstance(error, LimitError)


def abandon(cursor: Restorable, saved: Any, error: BaseException) -> None:
    """The same for a call that takes the lock with ``acquire``, as its ``except`` clause has to do it for ``error``.

    It returns where the tables are full, since the call is worth another try then; else it raises the exception again.
    """
    compiled = cursor.compiled
    if compiled.lock._is_owned():
        try:
            ctx, compiled.ctx = compiled.ctx, NO_TABLES
            if is_refusal(error):
                compiled.ctx = ctx
        finally:
            compiled.lock.release()
    cursor._restore(saved)
    if not isinstance(error, TablesFullError):
        raise
