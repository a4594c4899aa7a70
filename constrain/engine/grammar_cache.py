"""The compiled grammars that a compiler keeps, within a limit of memory.

A grammar grows while it is used, by anyone and without a word.  To weigh all of thousands would take longer than the
compile that they are weighed for, so each time some are, in turn: those that have not been for the longest time.  Few
are as long as there is much room left: all that belongs to them has to come from far away in memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from constrain.engine.compiled_grammar import CompiledGrammar

_WEIGHED, _WEIGHED_WITH_ROOM = 16, 2
"""How many are weighed each time, and how many if they take less than half of what they may."""


class GrammarCache:
    """Compiled grammars by key, the least recently used first.  The caller holds a lock."""

    def __init__(self) -> None:
        self._grammars: OrderedDict[Hashable, CompiledGrammar] = OrderedDict()
        # Their sizes, in the order in which they were weighed.  An exception may leave some of what is no more.
        self._sizes: OrderedDict[Hashable, int] = OrderedDict()
        # Their sum; None while they change, and where an exception came then.
        self._total: int | None = 0

    def __len__(self) -> int:
        return len(self._grammars)

    def grammars(self) -> list[CompiledGrammar]:
        """All of them, the least recently used one first."""
        return list(self._grammars.values())

    @property
    def nbytes(self) -> int:
        """Memory of all of them, in bytes, as they were last weighed."""
        return sum(self._sizes.values())

    def get(self, key: Hashable) -> CompiledGrammar | None:
        """The grammar under a key, which is the most recently used one now."""
        compiled = self._grammars.get(key)
        if compiled is not None:
            self._grammars.move_to_end(key)
        return compiled

    def keep(self, key: Hashable, compiled: CompiledGrammar, limit_bytes: int) -> CompiledGrammar:
        """Keep a grammar, and let go of those that are too many then, but not of this one.

        Returns
        -------
        CompiledGrammar
            What is under the key now: this one, or what was there before.
        """
        total = self.nbytes if self._total is None else self._total
        self._total = None
        self._sizes.setdefault(key, 0)
        self._sizes.move_to_end(key, last=False)
        compiled = self._grammars.setdefault(key, compiled)
        self._grammars.move_to_end(key)
        count = _WEIGHED if 2 * total > limit_bytes else _WEIGHED_WITH_ROOM
        for _ in range(min(count, len(self._sizes))):
            total += self._weigh(next(iter(self._sizes)))
        while total > limit_bytes and len(self._grammars) > 1:
            oldest, _ = self._grammars.popitem(last=False)
            total -= self._sizes.pop(oldest)
        self._total = total
        return compiled

    def _weigh(self, key: Hashable) -> int:
        """Weigh a grammar; returns by how much it has grown."""
        compiled = self._grammars.get(key)
        if compiled is None:
            return -self._sizes.pop(key)
        before, now = self._sizes[key], compiled.nbytes
        self._sizes[key] = now
        self._sizes.move_to_end(key)
        return now - before
