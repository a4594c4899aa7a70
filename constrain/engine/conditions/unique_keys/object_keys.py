"""The keys of the objects that are open in a text: the memory of unique_keys/reading.py, as Python sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from constrain.engine.conditions.unique_keys import memory as m
from constrain.engine.conditions.unique_keys.quote_tokens import QuoteTokens
from constrain.engine.conditions.unique_keys.reading import forbid_repeated, read_keys
from constrain.engine.parser.companions import KERNEL, Int64Array
from constrain.engine.storage.header import HEADER, MOST_ELEMENTS
from constrain.engine.storage.links import F_READ_ALONG, addresses
from constrain.engine.storage.statuses import KEYS_FULL, REPEATED_KEY
from constrain.engine.storage.tables import array_address
from constrain.engine.vocabulary.bitmasks import Bitmask, forbid, is_allowed
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.errors import LimitError
from constrain.kernels.jit import without_dispatch

# There has to be room for the keys in them.
_BYTES_AT_ONCE: Final = 1024


_NO_BYTES, _NO_PIECES = np.zeros(1, np.uint8), np.zeros(2, np.int64)

# Calls that many tokens, and many masks, take.
_read_keys: Callable[..., int] = without_dispatch(read_keys)
_forbid_repeated: Callable[..., int] = without_dispatch(forbid_repeated)

# What the tables have room for at first, which lies behind the header and all in one piece: there is one for each text.
_ROOM = {m.FRAMES: 64, m.KEYS: 3 * 128, m.KEY_BYTES: 2048}
_TYPES: dict[int, Any] = {m.FRAMES: np.int32, m.KEYS: np.int32, m.KEY_BYTES: np.uint8}
# In the header, addresses and sizes of the tables of unique_keys/reading.py take up to 16 numbers.
_BEGIN = 8 * (HEADER + 16)
_BEGINS = {m.FRAMES: _BEGIN, m.KEYS: _BEGIN + 256, m.KEY_BYTES: _BEGIN + 1792}
_BYTES_OF_MEMORY = _BEGIN + 3840


class ObjectKeys:
    """The keys of the objects that are open in a text.

    Parameters
    ----------
    quotes : QuoteTokens
        Of the vocabulary.

    Attributes
    ----------
    memory : int64[...]
        For the kernels of unique_keys/reading.py.
    """

    def __init__(self, quotes: QuoteTokens) -> None:
        if quotes.empty_keys is None:
            quotes.empty_keys = _empty_memory(quotes)
        self.quotes = quotes
        self.memory = quotes.empty_keys.copy()
        # Those that have become too small, and are elsewhere.
        self._moved: dict[int, np.ndarray[Any, Any]] = {}
        self._place_tables()

    def _place_tables(self) -> None:
        """Note where the tables are that lie behind the header."""
        memory = self.memory
        address = array_address(memory)
        for slot, begin in _BEGINS.items():
            if slot not in self._moved:
                memory[HEADER + 3 * slot] = address + begin

    def _table(self, slot: int) -> np.ndarray[Any, Any]:
        moved = self._moved.get(slot)
        if moved is not None:
            return moved
        begin, dtype = _BEGINS[slot], _TYPES[slot]
        return np.frombuffer(self.memory, dtype, _ROOM[slot], begin)

    @property
    def status(self) -> int:
        """A sum of MAY_REPEAT and its like (unique_keys/memory.py), or REPEATED_KEY."""
        return int(self.memory[m.STATUS])

    def copy(self) -> ObjectKeys:
        """One that goes its own way from here on."""
        twin = ObjectKeys.__new__(ObjectKeys)
        twin.quotes = self.quotes
        twin.memory, twin._moved = self.memory.copy(), {}
        for slot, table in self._moved.items():
            twin._move(slot, table.copy())
        twin._place_tables()
        return twin

    @property
    def is_small(self) -> bool:
        """Whether all of it is in one piece, so that :func:`copies_of` can copy it."""
        return not self._moved

    def _move(self, slot: int, table: np.ndarray[Any, Any]) -> None:
        self._moved[slot] = table
        _install(self.memory, slot, table)

    def make_room(self, size: int) -> None:
        """Make room for ``size`` bytes of text."""
        memory = self.memory
        for slot, used, each in ((m.FRAMES, m.DEPTH, 1), (m.KEYS, m.N_KEYS, 3), (m.KEY_BYTES, m.N_BYTES, 4)):
            n = int(memory[used]) * (1 if slot == m.KEY_BYTES else each)
            if n + each * size > memory[HEADER + 3 * slot + 1]:
                if n + each * size > MOST_ELEMENTS:
                    raise LimitError("the keys of the objects that are open take more than 2 GB; close some of them")
                table = np.empty(2 * (n + each * size), _TYPES[slot])
                there = self._table(slot)[:n]
                table[: len(there)] = there
                self._move(slot, table)

    def read(self, data: bytes) -> None:
        """Read some bytes."""
        for begin in range(0, len(data) or 1, _BYTES_AT_ONCE):
            piece = np.frombuffer(data[begin : begin + _BYTES_AT_ONCE], np.uint8)
            ends = np.array([0, len(piece)])
            if _read_keys(self.memory, piece, ends, 0) == KEYS_FULL:
                self.make_room(len(piece))
                _read_keys(self.memory, piece, ends, 0)
            if self.status == REPEATED_KEY:
                return

    def read_token(self, vocabulary: Vocabulary, token: int) -> None:
        """Read a token's bytes."""
        status = _read_keys(self.memory, vocabulary.data, vocabulary.starts, token)
        if status == KEYS_FULL:
            self.read(vocabulary.tokens[token])

    def records(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The keys of all open objects, as a view: int32[n, 3], see unique_keys/reading.py."""
        return self._table(m.KEYS)[: 3 * int(self.memory[m.N_KEYS])].reshape(-1, 3)

    def text(self, begin: int, end: int) -> bytes:
        """A part of the bytes that the keys are in."""
        return self._table(m.KEY_BYTES)[begin:end].tobytes()

    def is_in_key(self) -> bool:
        """Whether a key is under way."""
        return bool(self.memory[m.MODE] == m.IN_KEY)

    def key_under_way(self) -> bytes:
        """What has been read of a key, spelled as it is if a character of it is not complete."""
        memory = self.memory
        rest = f"{memory[m.ESCAPE]} {memory[m.CODE]} {memory[m.HIGH]} {memory[m.MODE]} ".encode()
        return rest + self._table(m.KEY_BYTES)[memory[m.BEGIN] : memory[m.N_BYTES]].tobytes()

    def signature(self) -> bytes:
        """What all of it comes to: the same for two texts that go on in the same ways."""
        memory = self.memory
        scalars: bytes = memory[m.MODE : m.N_RISKY + 1].tobytes()
        frames: bytes = self._table(m.FRAMES)[: memory[m.DEPTH]].tobytes()
        return scalars + frames + self.records()[:, :2].tobytes() + self.text(0, int(memory[m.N_BYTES]))

    def may_be_repeated(self) -> list[bytes]:
        """How the key under way, or the one to come, would go on to be one that is there.

        Where an escape is under way, those that begin like what was read before it.
        """
        memory = self.memory
        is_in_key = self.is_in_key()
        if not is_in_key and not (memory[m.MODE] == m.OUTSIDE and memory[m.EXPECTS_KEY]):
            return []
        data = self._table(m.KEY_BYTES)
        key = data[memory[m.BEGIN] : memory[m.N_BYTES]].tobytes() if is_in_key else b""
        first = int(self._table(m.FRAMES)[memory[m.DEPTH] - 1])
        keys = self._table(m.KEYS)[3 * first : 3 * int(memory[m.N_KEYS])].reshape(-1, 3).tolist()
        texts = [data[begin:end].tobytes() for begin, end, _ in keys]
        return [text[len(key) :] for text in texts if text.startswith(key)]

    def is_in_escape(self) -> bool:
        """Whether an escape is under way in a key."""
        return bool(self.is_in_key() and (self.memory[m.ESCAPE] or self.memory[m.HIGH]))

    def forbid(self, vocabulary: Vocabulary, out: Bitmask, index: int) -> None:
        """Take the tokens after which a key would be there twice out of row ``index`` of a mask."""
        quotes = self.quotes
        if self.status & m.MAY_REPEAT:
            texts = vocabulary.data, vocabulary.starts
            while _forbid_repeated(self.memory, *texts, quotes.tokens, quotes.groups, out, index) == KEYS_FULL:
                self.make_room(vocabulary.trie.depth)
        if self.status & m.IS_RISKY:
            row = out[index]
            for token in quotes.with_strings:
                if is_allowed(row, token):
                    ahead = self.copy()
                    ahead.read_token(vocabulary, token)
                    if ahead.status == REPEATED_KEY:
                        forbid(row, token)


def copies_of(keys: list[ObjectKeys]) -> tuple[Int64Array, Int64Array]:
    """Copies of the memories of some keys, all small, which the caller keeps alive; and their addresses (int64[n])."""
    block = np.concatenate([each.memory for each in keys]).reshape(len(keys), -1)
    addresses_of = np.arange(len(keys)) * block.strides[0] + array_address(block)
    for slot, begin in _BEGINS.items():
        block[:, HEADER + 3 * slot] = addresses_of + begin
    return block, addresses_of


def _install(memory: Int64Array, slot: int, table: np.ndarray[Any, Any]) -> None:
    memory[HEADER + 3 * slot] = array_address(table)
    memory[HEADER + 3 * slot + 1] = len(table)


def _empty_memory(quotes: QuoteTokens) -> Int64Array:
    """The memory at the start of a text, but for where tables are that it holds."""
    memory = np.zeros(_BYTES_OF_MEMORY // 8, np.int64)
    memory[KERNEL] = addresses[F_READ_ALONG]
    for slot, size in _ROOM.items():
        memory[HEADER + 3 * slot + 1] = size
    _install(memory, m.RISKY_STARTS, quotes.content_starts)
    _install(memory, m.RISKY_BYTES, quotes.content_bytes)
    memory[m.LONGEST_REST] = quotes.longest_rest
    # A key may come twice within one token.
    memory[m.N_RISKY] = quotes.may_hold_two_keys
    _read_keys(memory, _NO_BYTES, _NO_PIECES, 0)
    return memory
