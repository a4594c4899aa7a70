"""Keys that must not come again: the part of JSON's grammar that is not context-free.

A grammar may name lexemes that are keys of objects and could match the same key twice (``GrammarIR.distinct_keys``).
When the first of them has ended in a text, the text is read once more, as JSON, and from then on beside the grammar:
which objects are open, and which keys each has.  A token is refused, and taken out of the mask, if it ends a key that
was there.  Texts without such keys, most of them, pay nothing but a look at a flag.

That is exact as long as another key is always possible.  Where keys can run out, the grammar's rules see to it that
one is left (``text_dependent/unique_members.py`` of JSON Schema).
"""

from __future__ import annotations

from typing import Final

from constrain.engine.conditions.protocol import Walk
from constrain.engine.conditions.unique_keys.memory import CALLS_LEFT, IS_REPEATED, N_KEYS, NOT_READ
from constrain.engine.conditions.unique_keys.object_keys import ObjectKeys
from constrain.engine.conditions.unique_keys.quote_tokens import quote_tokens
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.parser.companions import ALWAYS_ASKS, MARK_ENDED, NO_COMPANION, Int64Array
from constrain.engine.storage.statuses import REPEATED_KEY
from constrain.engine.vocabulary.bitmasks import Bitmask

# What a cursor's text is read again from after some steps back: the memory as it was about so many steps ago.
_STEPS_BETWEEN_COPIES: Final = 256


def keys_after(compiled: GrammarTables, keys: ObjectKeys | None, data: bytes) -> ObjectKeys:
    """A copy of some keys, or those at the start, after some bytes.  The caller holds the compiled grammar's lock."""
    now = ObjectKeys(quote_tokens(compiled.vocabulary)) if keys is None else keys.copy()
    now.read(data)
    now.memory[CALLS_LEFT] = _STEPS_BETWEEN_COPIES
    return now


class UniqueKeys:
    """The condition (conditions/protocol.py) that no object has a key twice.

    It follows the text of its cursor from where the first key has ended that must not come again.

    Parameters
    ----------
    compiled : GrammarTables
        Of the cursor.
    """

    asks_always = False

    def __init__(self, compiled: GrammarTables) -> None:
        self._quotes = quote_tokens(compiled.vocabulary)
        # How many steps there were before the first that is followed, -1 if all of them are; None if there is none yet.
        # It begins at once if a single token may be enough for a key to come again.
        self._since: int | None = -1 if self._quotes.may_hold_two_keys else None
        # The keys where the cursor is, if they have been read, and what they said when they were.
        self._now: ObjectKeys | None = None
        self._known_note = NOT_READ
        # As it was after so many steps, some time ago and longer ago.
        self._copies: list[tuple[int, ObjectKeys]] = []

    @property
    def is_followed(self) -> bool:
        """Whether a key has ended that must not come again, or the text is followed for another reason."""
        return self._since is not None

    def follow_from_start(self) -> None:
        """Follow all of the text, from now on for good."""
        if self._since != -1:
            self.rewind(0)
            self._since = -1

    @property
    def note(self) -> int:
        """A sum of MAY_REPEAT and its like (unique_keys/memory.py)."""
        if self._since is None:
            return 0
        return self._known_note if self._now is None else self._now.status

    @property
    def companion(self) -> Int64Array:
        """The memory of the keys, if they are there."""
        if self._since is None:
            return NO_COMPANION
        return ALWAYS_ASKS if self._now is None else self._now.memory

    def copy(self) -> UniqueKeys:
        """One for a cursor at the same place."""
        twin = UniqueKeys.__new__(UniqueKeys)
        twin.__dict__.update(self.__dict__)
        twin._now, twin._known_note = None, self.note if self._since is not None else NOT_READ
        return twin

    @property
    def keys(self) -> ObjectKeys | None:
        """The keys where the cursor is, if they have been read."""
        return self._now if self._since is not None else None

    def rewind(self, steps: int) -> None:
        """See the protocol; a first key that has not ended any more is not followed."""
        if self._since is not None and 0 <= steps <= self._since:
            self._since = None
        self._copies = [copy for copy in self._copies if copy[0] <= steps]
        self._now, self._known_note = None, NOT_READ

    def push(self, cursor: Walk, step: int | bytes, behind: Place, word: int) -> bool:
        """Read a step; False if a key comes again."""
        if self._since is None:
            if not word & MARK_ENDED:
                return True
            self._since = cursor._steps
        if word & IS_REPEATED:
            return False
        keys = self.at(cursor)
        if isinstance(step, bytes):
            keys.read(step)
        else:
            keys.read_token(cursor.compiled.vocabulary, step)
        if keys.status == REPEATED_KEY:
            return False
        if keys.memory[CALLS_LEFT] <= 0:
            keys.memory[CALLS_LEFT] = _STEPS_BETWEEN_COPIES
            self._copies = [*self._copies[-1:], (cursor._steps + 1, keys.copy())]
        return True

    def at(self, cursor: Walk) -> ObjectKeys:
        """The keys where the cursor is."""
        if self._now is None:
            steps, keys = self._copies[-1] if self._copies else (0, None)
            now = keys_after(cursor.compiled, keys, cursor.text(cursor._steps - steps))
            if self._since is None:
                return now
            self._now = now
        return self._now

    def n_keys(self, cursor: Walk) -> int:
        """How many keys the objects have that are open where the cursor is."""
        return int(self.at(cursor).memory[N_KEYS])

    def after(self, cursor: Walk, data: bytes) -> ObjectKeys:
        """The keys where the cursor would be after some bytes; its own stay as they are."""
        return keys_after(cursor.compiled, self.at(cursor), data)

    def restrict(self, cursor: Walk, out: Bitmask, index: int) -> None:
        """Take the tokens that bring a key again out of a mask."""
        if self._since is None:
            return
        was_read = self._now is not None
        self.at(cursor).forbid(cursor.compiled.vocabulary, out, index)
        if not was_read:
            cursor._heed()
