"""What is known of a grammar's limited keys: those of which there are only so many, or from some beginning on.

For each of them that is in an object, it is worked out how far its beginning may be that goes on in no more ways than
there are keys (dead_ends.py).  Only there can keys run out, so nearly everywhere a text need not be looked at.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from constrain.engine.conditions.unique_keys import dead_ends as key_dead_ends
from constrain.engine.conditions.unique_keys import masks as key_masks
from constrain.engine.conditions.unique_keys import memory as m
from constrain.engine.conditions.unique_keys.dead_ends import DEAD_SHIFT, HELD_KNOWN, HELD_SHIFT
from constrain.engine.conditions.unique_keys.object_keys import ObjectKeys
from constrain.engine.conditions.unique_keys.quote_tokens import quote_tokens
from constrain.engine.conditions.unique_keys.ways import WORK_SIZE
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.storage.statuses import UNSURE
from constrain.engine.vocabulary.bitmasks import Bitmask
from constrain.kernels.jit import without_dispatch

Int32Array = np.ndarray[Any, np.dtype[np.int32]]

_find_dead_ends: Callable[..., int] = without_dispatch(key_dead_ends.find_dead_ends)
_forbid_dead_ends: Callable[..., int] = without_dispatch(key_masks.forbid_dead_ends)

_NO_MASK = np.zeros((1, 1), np.int32)


class LimitedKeys:
    """The limited keys of a compiled grammar.

    Its lock is held by whoever calls a method.

    Attributes
    ----------
    work : int64[WORK_SIZE]
        For kernels.
    is_risky : bool
        Whether keys that begin, or end, within a token may be the last ones even where there are no others.
    """

    def __init__(self, compiled: GrammarTables) -> None:
        self._compiled = weakref.ref(compiled)
        self.work = np.empty(WORK_SIZE, np.int64)
        self._generation = -1
        # Where the texts of those begin, as lexer states, that one object may have.
        self._bodies = np.empty(len(compiled.ir.limited_keys), np.int32)
        self._count = 0
        self._is_known = True
        quotes = quote_tokens(compiled.vocabulary)
        self._tokens = quotes.to_limited_keys
        # For kernels: the keys ahead of where a mask is, and tokens that were found.
        self._ahead = ObjectKeys(quotes, None)
        self._found = np.empty(compiled.vocabulary.size, np.int32)
        self._find_bodies(compiled)
        single = compiled._run(_find_dead_ends, self._ahead.memory, self._bodies, self._count, 0, self.work)
        self.is_risky = not self._is_known or single > 0 or quotes.begins_next_key or quotes.may_hold_two_keys

    def _find_bodies(self, compiled: GrammarTables) -> None:
        self._generation, self._count = compiled.generation, 0
        for lexemes in compiled.ir.limited_keys:
            body = compiled._run(key_dead_ends.find_body, np.array(lexemes, np.int32))
            if body == UNSURE:
                self._is_known = False
            elif body:
                self._bodies[self._count] = body
                self._count += 1

    def find_dead_ends(self, keys: ObjectKeys) -> None:
        """Find out where keys can run out, in the memory of some keys."""
        memory = keys.memory
        n_limited = int(memory[m.N_LIMITED])
        memory[m.DEAD_END] = m.NO_DEAD_END
        held = 0
        if n_limited:
            compiled = self._compiled()
            assert compiled is not None
            if self._generation != compiled.generation:
                self._find_bodies(compiled)
            if n_limited >= keys.most_ways:
                keys.most_ways = 2 * n_limited + 1
                keys.records()[:, 2] &= m.RISKY | m.LIMITED
            new = compiled._run(_find_dead_ends, memory, self._bodies, self._count, keys.most_ways, self.work)
            held = int(memory[m.DEAD_IN_TOKEN])
            if new:
                held |= self._look_into_tokens(keys, new)
            if not self._is_known:
                memory[m.DEAD_END] = 0
        memory[m.DEAD_IN_TOKEN] = 3 if self.is_risky else held

    def forbid(self, place: Place, keys: ObjectKeys, out: Bitmask, index: int) -> list[int]:
        """Take the tokens behind which no new key is left out of a mask: and those, returned, where it is not clear."""
        compiled = self._compiled()
        assert compiled is not None
        self._ahead.make_room_for(keys, compiled.vocabulary.trie.depth)
        count = self._look_ahead(compiled, place, keys, out, index)
        unsure: list[int] = self._found[:count].tolist()
        return unsure

    def is_left(self, place: Place, keys: ObjectKeys) -> bool | None:
        """Whether the object at a place can get a key that it does not have; None if that is not clear."""
        compiled = self._compiled()
        assert compiled is not None
        result = self._look_ahead(compiled, place, keys, _NO_MASK, -1)
        return None if result == UNSURE else result > 0

    def _look_ahead(self, compiled: GrammarTables, place: Place, keys: ObjectKeys, out: Bitmask, index: int) -> int:
        vocabulary, trie = compiled.vocabulary, compiled.vocabulary.trie
        return compiled.run_at(
            place,
            _forbid_dead_ends,
            *(keys.memory, self._ahead.memory, vocabulary.data, vocabulary.starts, *self._tokens),
            *(trie.node, trie.size, trie.token, trie.same, out, index, self._found, self.work),
        )

    def _look_into_tokens(self, keys: ObjectKeys, new: int) -> int:
        """DEAD_IN_TOKEN by the last ``new`` keys with a dead end."""
        held_by_any = 0
        records = keys.records()
        for key in range(int(keys.memory[m.N_KEYS]) - 1, -1, -1):
            if new == 0:
                break
            begin, _, kind = records[key].tolist()
            length = (kind >> DEAD_SHIFT) - 1
            if kind & HELD_KNOWN or not 0 <= length < m.NO_DEAD_END:
                continue
            held = keys.quotes.may_begin(keys.text(begin, begin + length)) if length else 3
            records[key, 2] = kind | HELD_KNOWN | held << HELD_SHIFT
            held_by_any |= held
            new -= 1
        return held_by_any
