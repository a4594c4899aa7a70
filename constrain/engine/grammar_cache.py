"""The compiled grammars that a compiler keeps, within a limit of memory.

A grammar grows while it is used, by anyone and without a word.  To weigh all of thousands would take longer than the
compile that they are weighed for, so each time some are, in turn: those that have not been for the longest time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from constrain.engine.compiled_grammar import CompiledGrammar

_WEIGHED = 16
"""How many are weighed each time."""


class GrammarCache:
    """Compiled grammars by key, the least recently used first.  The caller holds a lock."""

    def __init__(self) -> None:
        self._grammars: OrderedDict[Hashable, CompiledGrammar] = OrderedDict()
        # Their sizes, in the order in which they were weighed.  An exception may leave some of what is no more.
        self._sizes: OrderedDict[Hashable, int] = OrderedDict()

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
        self._sizes.setdefault(key, 0)
        self._sizes.move_to_end(key, last=False)
        compiled = self._grammars.setdefault(key, compiled)
        self._grammars.move_to_end(key)
        for _ in range(min(_WEIGHED, len(self._sizes))):
            self._weigh(next(iter(self._sizes)))
        total = self.nbytes
        while total > limit_bytes and len(self._grammars) > 1:
            oldest, _ = self._grammars.popitem(last=False)
            total -= self._sizes.pop(oldest)
        return compiled

    def _weigh(self, key: Hashable) -> None:
        compiled = self._grammars.get(key)
        if compiled is None:
            del self._sizes[key]
            return
        self._sizes[key] = compiled.nbytes
        self._sizes.move_to_end(key)
