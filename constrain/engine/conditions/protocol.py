"""What a condition is: something that a text must keep beside the grammar's rules.

A cursor holds a list of conditions and tells each of them about the steps of its text.  Kernels that take a token know
of none of them; but a condition may bring a companion (parser/companions.py), which reads tokens in the same call.

A cursor asks, in the order of its list, under the lock of the grammar:

- ``push`` before each step that a companion or a mark asks about; about every step if one of its conditions
  ``asks_always``;
- ``restrict`` for each mask while some condition has a ``note``;
- ``rewind`` when steps are taken back, and when a step that was pushed is not taken after all;
- ``copy`` for a fork, and before each call that may raise.

**Errors.**  A condition may leave any of these calls by any exception, at any place.  It need not clean up: the cursor
goes on with the copies that it made before the call, or, where a call is too frequent for copies, rewinds its
conditions to the steps there were before.  So after an exception everything is as before the call, provided that
``rewind`` needs nothing but the number of steps, and may follow on a ``push`` that was left half-way.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.parser.companions import Int64Array
from constrain.engine.vocabulary.bitmasks import Bitmask


class Walk(Place, Protocol):
    """What a condition sees of a cursor: a place and the text that led to it."""

    _steps: int
    _conditions: tuple[Any, ...]

    @property
    def compiled(self) -> GrammarTables:
        """Of which grammar."""

    def text(self, steps: int) -> bytes:
        """The bytes of the last ``steps`` steps."""

    def _heed(self) -> None:
        """Take note that a condition has another note or companion than before; not needed behind ``push``."""


Kind = TypeVar("Kind")


def condition_of(cursor: Walk, kind: type[Kind]) -> Kind | None:
    """The condition of a cursor that is of a kind, if it has one."""
    return next((each for each in cursor._conditions if isinstance(each, kind)), None)


class Condition(Protocol):
    """A condition on the text of one cursor.

    Attributes
    ----------
    asks_always : bool
        Whether it is pushed every step, and not only those that its companion or a mark asks about.
    """

    asks_always: bool

    @property
    def note(self) -> int:
        """What ``restrict`` has to do at this place, within NOTE_BITS; 0 for nothing."""

    @property
    def companion(self) -> Int64Array:
        """What reads the next token in its place; NO_COMPANION for nothing."""

    def push(self, cursor: Walk, step: int | bytes, behind: Place, word: int) -> bool:
        """Read a step that the cursor is about to take; False if it may not.

        Parameters
        ----------
        cursor : Walk
            Still before the step.
        step : int or bytes
            A token or bytes, which the grammar allows.
        behind : Place
            The place that the step leads to; its state may get another number here.  A condition may put another state
            there, with a step in ``behind``'s last link that knows how to do so again (history.py).
        word : int
            What the step came to (parser/companions.py).

        Returns
        -------
        bool
            If False, or if another condition says so, the step is not taken, and ``rewind`` follows.
        """

    def restrict(self, cursor: Walk, out: Bitmask, index: int) -> None:
        """Make row ``index`` of ``out`` (int32[batch, words]) the mask under the condition.

        It holds the mask of the grammar, less what conditions before this one forbid.
        """

    def rewind(self, steps: int) -> None:
        """Be as after the first ``steps`` steps of the text, of which there may have been more.

        It does not raise, and does not read: the cursor may have no state at the moment.
        """

    def copy(self) -> Any:
        """One for another cursor at the same place, in constant time; neither notices what the other is told."""
