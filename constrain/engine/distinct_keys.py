"""Keys that must not come again: the part of JSON's grammar that is not context-free.

A grammar may name lexemes that are keys of objects and could match the same key twice (``GrammarIR.distinct_keys``).
When the first of them has ended in a text, the text is read once more, as JSON, and from then on beside the grammar:
which objects are open, and which keys each has.  A token is refused, and taken out of the mask, if it ends a key that
was there.  Texts without such keys, most of them, pay nothing but a look at a flag.

That is exact as long as another key is always possible.  Where keys can run out (only so many match a pattern, or only
so many go on from where the key is now), keys_left.py looks ahead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from constrain.engine.bitmask import Bitmask
from constrain.engine.key_status import FULL, IS_RISKY, MAY_REPEAT, MAY_RUN_OUT, REPEATED
from constrain.engine.object_keys import (
    BEGIN,
    CODE,
    DEPTH,
    ESCAPE,
    FRAMES,
    HIGH,
    IN_KEY,
    KEY_BYTES,
    KEYS,
    LONGEST_REST,
    MODE,
    N_BYTES,
    N_KEYS,
    N_RISKY,
    N_TABLES,
    RISKY_BYTES,
    RISKY_STARTS,
    RUNS_OUT,
    forbid_repeated,
    read_keys,
)
from constrain.engine.quote_tokens import QuoteTokens
from constrain.engine.tables import HEADER

if TYPE_CHECKING:
    from constrain.engine.cursor import Cursor
    from constrain.engine.vocabulary import Vocabulary

# What a cursor's text is read again from after some steps back: the memory as it was about so many steps ago.
_STEPS_BETWEEN_COPIES: Final = 64

# There has to be room for the keys in them.
_BYTES_AT_ONCE: Final = 1024

_GROWING = {FRAMES: np.int32, KEYS: np.int32, KEY_BYTES: np.uint8}
_ROOM = {FRAMES: 64, KEYS: 3 * 128, KEY_BYTES: 2048}


class ObjectKeys:
    """The keys of the objects that are open in a text.

    Parameters
    ----------
    quotes : QuoteTokens
        Of the vocabulary.
    can_run_out : bool
        Whether it has to be looked for new keys.

    Attributes
    ----------
    status : int
        A sum of MAY_REPEAT and its like (object_keys.py), or REPEATED.
    """

    def __init__(self, quotes: QuoteTokens, can_run_out: bool) -> None:
        self.quotes = quotes
        self.memory = np.zeros(HEADER + 3 * N_TABLES, np.int64)
        self._tables: dict[int, np.ndarray[Any, Any]] = {}
        for slot, size in _ROOM.items():
            self._install(slot, np.empty(size, _GROWING[slot]))
        starts = np.cumsum([0, *map(len, quotes.contents)], dtype=np.int32)
        self._install(RISKY_STARTS, starts)
        self._install(RISKY_BYTES, np.frombuffer(b"".join(quotes.contents) + b"\0", np.uint8))
        self.memory[LONGEST_REST] = quotes.longest_rest
        # A key may come twice within one token.
        self.memory[N_RISKY] = quotes.may_hold_two_keys
        self.memory[RUNS_OUT] = can_run_out
        self.status = (IS_RISKY if quotes.may_hold_two_keys else 0) | (MAY_RUN_OUT if can_run_out else 0)

    def _install(self, slot: int, table: np.ndarray[Any, Any]) -> None:
        self._tables[slot] = table
        self.memory[HEADER + 3 * slot] = table.__array_interface__["data"][0]
        self.memory[HEADER + 3 * slot + 1] = len(table)

    def copy(self) -> ObjectKeys:
        """One that goes its own way from here on."""
        twin = ObjectKeys.__new__(ObjectKeys)
        twin.quotes, twin.status = self.quotes, self.status
        twin.memory, twin._tables = self.memory.copy(), dict(self._tables)
        for slot in _GROWING:
            twin._install(slot, self._tables[slot].copy())
        return twin

    def make_room(self, size: int) -> None:
        """Make room for ``size`` bytes of text."""
        memory = self.memory
        for slot, used, each in ((FRAMES, DEPTH, 1), (KEYS, N_KEYS, 3), (KEY_BYTES, N_BYTES, 4)):
            n = int(memory[used]) * (1 if slot == KEY_BYTES else each)
            if n + each * size > len(self._tables[slot]):
                table = np.empty(2 * (n + each * size), _GROWING[slot])
                table[:n] = self._tables[slot][:n]
                self._install(slot, table)

    def read(self, data: bytes) -> None:
        """Read some bytes."""
        for begin in range(0, len(data), _BYTES_AT_ONCE):
            piece = np.frombuffer(data[begin : begin + _BYTES_AT_ONCE], np.uint8)
            self.status = read_keys(self.memory, piece, 0, len(piece))
            if self.status == FULL:
                self.make_room(len(piece))
                self.status = read_keys(self.memory, piece, 0, len(piece))
            if self.status == REPEATED:
                return

    def read_token(self, vocabulary: Vocabulary, token: int) -> None:
        """Read a token's bytes."""
        starts = vocabulary.starts
        self.status = read_keys(self.memory, vocabulary.data, starts[token], starts[token + 1])
        if self.status == FULL:
            self.read(vocabulary.tokens[token])

    def is_in_key(self) -> bool:
        """Whether a key is under way."""
        return bool(self.memory[MODE] == IN_KEY)

    def key_under_way(self) -> bytes:
        """What has been read of a key, spelled as it is if a character of it is not complete."""
        memory = self.memory
        rest = f"{memory[ESCAPE]} {memory[CODE]} {memory[HIGH]} {memory[MODE]} ".encode()
        return rest + self._tables[KEY_BYTES][memory[BEGIN] : memory[N_BYTES]].tobytes()

    def forbid(self, vocabulary: Vocabulary, out: Bitmask, index: int) -> None:
        """Take the tokens after which a key would be there twice out of row ``index`` of a mask."""
        quotes = self.quotes
        if self.status & MAY_REPEAT:
            texts = vocabulary.data, vocabulary.starts
            while forbid_repeated(self.memory, *texts, quotes.tokens, quotes.groups, out, index) == FULL:
                self.make_room(vocabulary.trie.depth)
        if self.status & IS_RISKY:
            row = out[index]
            for token in quotes.with_strings:
                if row[token >> 5] >> (token & 31) & 1:
                    ahead = self.copy()
                    ahead.read_token(vocabulary, token)
                    if ahead.status == REPEATED:
                        row[token >> 5] &= ~np.uint32(1 << (token & 31)).astype(np.int32)


class DistinctKeys:
    """Follows the text of one cursor from where the first key has ended that must not come again.

    Parameters
    ----------
    quotes, can_run_out
        As for :class:`ObjectKeys`.
    since : int
        How many steps of the cursor there were before that; -1 if its whole text is followed.
    """

    def __init__(self, quotes: QuoteTokens, can_run_out: bool, since: int) -> None:
        self._quotes = quotes
        self._can_run_out = can_run_out
        self._since = since
        self._now: ObjectKeys | None = None
        # As it was after so many steps, some time ago and longer ago.
        self._copies: list[tuple[int, ObjectKeys]] = []

    def copy(self) -> DistinctKeys:
        """One for a cursor at the same place."""
        twin = DistinctKeys(self._quotes, self._can_run_out, self._since)
        twin._copies = list(self._copies)
        return twin

    def read(self, cursor: Cursor, step: int | bytes) -> int:
        """Read a step that the cursor has not gone yet: the status behind it."""
        now = self.at(cursor)
        if isinstance(step, bytes):
            now.read(step)
        else:
            now.read_token(cursor.compiled.vocabulary, step)
        if now.status == REPEATED:
            self._now = None
        elif cursor._steps + 1 >= _STEPS_BETWEEN_COPIES + (self._copies[-1][0] if self._copies else 0):
            self._copies = [*self._copies[-1:], (cursor._steps + 1, now.copy())]
        return now.status

    def forget(self) -> None:
        """The cursor is not where it was."""
        self._now = None

    def after_going_back(self, cursor: Cursor) -> DistinctKeys | None:
        """What follows the cursor, which has gone back; None if nothing has to any more."""
        if cursor._steps <= self._since:
            return None
        self._now = None
        return self

    def at(self, cursor: Cursor) -> ObjectKeys:
        """The keys where the cursor is."""
        if self._now is None:
            while self._copies and self._copies[-1][0] > cursor._steps:
                self._copies.pop()
            steps, keys = self._copies[-1] if self._copies else (0, ObjectKeys(self._quotes, self._can_run_out))
            self._now = keys.copy()
            self._now.read(cursor.text(cursor._steps - steps))
        return self._now
