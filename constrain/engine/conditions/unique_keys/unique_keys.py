"""Keys that must not come again: the part of JSON's grammar that is not context-free.

A grammar may name lexemes that are keys of objects and could match the same key twice (``GrammarIR.distinct_keys``).
When the first of them has ended in a text, the text is read once more, as JSON, and from then on beside the grammar:
which objects are open, and which keys each has.  A token is refused, and taken out of the mask, if it ends a key that
was there.  Texts without such keys, most of them, pay nothing but a look at a flag.

That is exact as long as another key is always possible.  Where keys can run out (only so many match a pattern, or only
so many go on from where the key is now), unique_keys/exhaustion.py looks ahead.
"""

from __future__ import annotations

from typing import Any, Final

from constrain.engine.conditions.protocol import Walk
from constrain.engine.conditions.unique_keys import exhaustion
from constrain.engine.conditions.unique_keys.memory import CALLS_LEFT, IS_LIMITED
from constrain.engine.conditions.unique_keys.object_keys import ObjectKeys
from constrain.engine.conditions.unique_keys.quote_tokens import quote_tokens
from constrain.engine.conditions.unique_keys.status import (
    HAS_TO_LOOK_AHEAD,
    IS_REPEATED,
    KEY_ENDED,
    LIMITED_KEY_ENDED,
    LOOK_AHEAD,
    MAY_RUN_OUT,
    NOT_FOLLOWED,
    NOT_READ,
)
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.parser.companions import ALWAYS_ASKS, NO_COMPANION, Int64Array, without_kernel
from constrain.engine.storage.statuses import REPEATED_KEY
from constrain.engine.vocabulary.bitmasks import Bitmask, is_allowed
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.grammar.ir import GrammarIR

# What a cursor's text is read again from after some steps back: the memory as it was about so many steps ago.
_STEPS_BETWEEN_COPIES: Final = 256

# Where no key has ended yet.
_NOT_FOLLOWED = without_kernel(NOT_FOLLOWED)


def prepare(ir: GrammarIR, vocabulary: Vocabulary) -> None:
    """Look for what takes some time: better when a grammar is compiled than within a mask."""
    if ir.limited_keys:
        _ = quote_tokens(vocabulary).to_limited_keys


def keys_at_start(compiled: GrammarTables) -> ObjectKeys:
    """The keys before any text.  The caller holds the lock of the compiled grammar."""
    return _keys_after(compiled, None, b"", is_limited=True)


def _keys_after(compiled: GrammarTables, keys: ObjectKeys | None, data: bytes, is_limited: bool) -> ObjectKeys:
    """A copy of some keys, or those at the start, after some bytes; keys that end there are taken for limited ones."""
    limited = exhaustion.limited_keys(compiled) if compiled.ir.limited_keys else None
    now = ObjectKeys(quote_tokens(compiled.vocabulary), limited) if keys is None else keys.copy()
    now.memory[IS_LIMITED] = limited is not None and is_limited
    now.read(data)
    now.memory[CALLS_LEFT], now.memory[IS_LIMITED] = _STEPS_BETWEEN_COPIES, 0
    return now


class UniqueKeys:
    """The condition (conditions/protocol.py) that no object has a key twice, and that keys do not run out.

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
        # Whether a token may end a first key and go on to where none is left.
        self._may_run_out_at_once = bool(self._quotes.to_next_key and compiled.ir.limited_keys)
        # The keys where the cursor is, if they have been read, and what they said when they were.
        self._now: ObjectKeys | None = None
        self._known_note = NOT_READ
        # As it was after so many steps, some time ago and longer ago.
        self._copies: list[tuple[int, ObjectKeys]] = []

    @property
    def is_followed(self) -> bool:
        """Whether a key has ended that must not come again, or the text is followed for another reason."""
        return self._since is not None

    @property
    def to_next_key(self) -> list[int]:
        """The tokens that may end the first key that must not come again and go on to where the next begins."""
        return self._quotes.to_next_key

    def follow_from_start(self) -> None:
        """Follow all of the text, from now on for good."""
        if self._since != -1:
            self.rewind(0)
            self._since = -1

    @property
    def note(self) -> int:
        """A sum of MAY_REPEAT and its like (unique_keys/status.py)."""
        if self._since is None:
            return NOT_FOLLOWED if self._may_run_out_at_once else 0
        return self._known_note if self._now is None else self._now.status

    @property
    def companion(self) -> Int64Array:
        """The memory of the keys, if they are there."""
        if self._since is None:
            return _NOT_FOLLOWED if self._may_run_out_at_once else NO_COMPANION
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
        """Read a step; False if a key comes again, or no other one is possible behind it."""
        if self._since is None:
            if not word & (KEY_ENDED | LIMITED_KEY_ENDED):
                return True
            self._since = cursor._steps
        if word & IS_REPEATED:
            return False
        keys = self.at(cursor)
        if not word & HAS_TO_LOOK_AHEAD:
            self._read(cursor, keys, step, word & LIMITED_KEY_ENDED)
        status = keys.status
        if status < 0:
            return False
        return not status & LOOK_AHEAD or bool(exhaustion.has_key_left(cursor.compiled, behind, keys))

    def _read(self, cursor: Walk, now: ObjectKeys, step: int | bytes, is_limited: int) -> None:
        """Read a step that the cursor has not gone yet; ``is_limited``: keys that end in it are (or may be) limited."""
        memory = now.memory
        if is_limited:
            memory[IS_LIMITED] = 1
        if isinstance(step, bytes):
            now.read(step)
        else:
            now.read_token(cursor.compiled.vocabulary, step)
        # Kernels read on if they know that none ends.
        memory[IS_LIMITED] = 0
        if memory[CALLS_LEFT] <= 0 and now.status != REPEATED_KEY:
            memory[CALLS_LEFT] = _STEPS_BETWEEN_COPIES
            self._copies = [*self._copies[-1:], (cursor._steps + 1, now.copy())]

    def at(self, cursor: Walk) -> ObjectKeys:
        """The keys where the cursor is."""
        if self._now is None:
            steps, keys = self._copies[-1] if self._copies else (0, None)
            # It is not known any more which of the keys that end from here on are limited.
            is_limited = cursor._steps > (-1 if self._since is None else self._since)
            now = _keys_after(cursor.compiled, keys, cursor.text(cursor._steps - steps), is_limited)
            if self._since is None:
                return now
            self._now = now
        return self._now

    def after(self, cursor: Walk, data: bytes) -> ObjectKeys:
        """The keys where the cursor would be after some bytes; its own stay as they are."""
        return _keys_after(cursor.compiled, self.at(cursor), data, is_limited=True)

    def restrict(self, cursor: Walk, out: Bitmask, index: int) -> None:
        """Take the tokens that bring a key again, or lead to where none is left, out of a mask."""
        if self._since is None:
            if not self._may_run_out_at_once:
                return
            row = out[index]
            if not any(is_allowed(row, token) for token in self._quotes.to_next_key):
                return
            if not exhaustion.limited_keys(cursor.compiled).is_risky:
                self._may_run_out_at_once = False
                cursor._heed()
                return
            self._since = -1
        was_read = self._now is not None
        keys = self.at(cursor)
        keys.forbid(cursor.compiled.vocabulary, out, index)
        if keys.status & MAY_RUN_OUT:
            exhaustion.forbid_dead_ends(cursor.compiled, cursor, keys, out, index)
        if not was_read:
            cursor._heed()


def unique_keys_of(cursor: Any) -> UniqueKeys | None:
    """The condition of a cursor that its keys are unique, if it has it."""
    return next((each for each in cursor._conditions if isinstance(each, UniqueKeys)), None)
