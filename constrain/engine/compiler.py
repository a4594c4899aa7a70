"""GrammarCompiler: compiles grammars for one vocabulary and keeps the recent ones."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Hashable
from functools import partial
from typing import Any

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.grammar_tables import DEFAULT_LIMIT_BYTES, DEFAULT_MASK_LIMIT_BYTES
from constrain.engine.masks.accelerators import names_in_use
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.forking import renew_in_child
from constrain.grammar.grammar import Grammar
from constrain.limits import Deadline, limited

DEFAULT_CACHE_LIMIT_BYTES = 512 << 20

# With fewer tokens a first mask is quick anyway.
_LARGE = 8192


class GrammarCompiler:
    """Compiles grammars; the same grammar again is the same :class:`CompiledGrammar`.

    Parameters
    ----------
    vocabulary : Vocabulary
    cache_limit_bytes : int
        The least recently used compiled grammars are let go when the tables of all of them together
        take more than this (a grammar still held by a matcher lives on; one is always kept).  0
        keeps none.
    limit_bytes, mask_limit_bytes : int
        Limits of each compiled grammar; see :class:`CompiledGrammar`.
    accelerators : collection of str, optional
        The accelerators of each compiled grammar; see :class:`CompiledGrammar`.  Results do not change.

    Raises
    ------
    ValueError
        If there is no accelerator of a name.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        cache_limit_bytes: int = DEFAULT_CACHE_LIMIT_BYTES,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        mask_limit_bytes: int = DEFAULT_MASK_LIMIT_BYTES,
        accelerators: Collection[str] | None = None,
    ) -> None:
        self.accelerators = names_in_use(accelerators)
        self.vocabulary = vocabulary
        self.cache_limit_bytes = cache_limit_bytes
        self.limit_bytes = limit_bytes
        self.mask_limit_bytes = mask_limit_bytes
        self._lock = threading.Lock()
        self._cache: OrderedDict[Hashable, CompiledGrammar] = OrderedDict()
        renew_in_child(self)
        self._share_usual_masks(vocabulary)

    def __repr__(self) -> str:
        with self._lock:
            count = len(self._cache)
        grammars = "grammar" if count == 1 else "grammars"
        return f"<GrammarCompiler: {self.vocabulary.size:,} tokens, {count:,} {grammars} kept>"

    def _renew_after_fork(self) -> None:
        if self._lock.locked():
            self._cache = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        # What it has compiled stays here.
        options: dict[str, Any] = {
            "cache_limit_bytes": self.cache_limit_bytes,
            "limit_bytes": self.limit_bytes,
            "mask_limit_bytes": self.mask_limit_bytes,
            "accelerators": self.accelerators,
        }
        return partial(GrammarCompiler, self.vocabulary, **options), ()

    def _share_usual_masks(self, vocabulary: Vocabulary) -> None:
        """Find out which tokens stay inside a JSON string, for all grammars: here, and not within a first mask."""
        if vocabulary.size < _LARGE or len(vocabulary.shared) or "shared_masks" not in self.accelerators:
            return
        mask = allocate_token_bitmask(1, vocabulary.size)
        for _ in range(2):  # a grammar publishes one thing at a time: the closure, then the string itself
            string = Grammar.from_json_schema({"type": "string"})
            compiled = CompiledGrammar(string.ir, vocabulary, accelerators=self.accelerators)
            matcher = Matcher(compiled)
            matcher.accept_bytes(b'"')
            matcher.fill_next_token_bitmask(mask)

    def compile(self, grammar: Grammar, *, time_limit: float | Deadline | None = None) -> CompiledGrammar:
        """The compiled grammar, from the cache if it is there.

        Parameters
        ----------
        grammar : Grammar
        time_limit : float or Deadline, optional
            Seconds that this may take; a :class:`~constrain.limits.Deadline` can be shared with the making of the
            grammar, and cancelled from another thread.  After the error the compiler is as it was.

        Raises
        ------
        GrammarError, SchemaError
            If the grammar matches no text at all.
        LimitError
            If it needs more memory than ``limit_bytes``, or more time than ``time_limit``.
        """
        if not isinstance(grammar, Grammar):
            raise TypeError(f"compile() takes a Grammar, not {type(grammar).__name__}: use one of Grammar.from_...")
        key = grammar.key
        with self._lock:
            compiled = self._cache.get(key)
            if compiled is not None:
                self._cache.move_to_end(key)
                return compiled
        with limited(time_limit):
            compiled = CompiledGrammar(
                grammar.ir,
                self.vocabulary,
                limit_bytes=self.limit_bytes,
                mask_limit_bytes=self.mask_limit_bytes,
                accelerators=self.accelerators,
            )
        if grammar.ir.token_lexemes and grammar.ir.stock is not None:
            # It has JSON in it, and a vocabulary of its own (token_terminals.py).
            self._share_usual_masks(compiled.vocabulary)
        with self._lock:
            if self.cache_limit_bytes > 0:
                compiled = self._cache.setdefault(key, compiled)
                self._cache.move_to_end(key)
                self._evict()
        return compiled

    def _evict(self) -> None:
        total = sum(compiled.nbytes for compiled in self._cache.values())
        while total > self.cache_limit_bytes and len(self._cache) > 1:
            _, oldest = self._cache.popitem(last=False)
            total -= oldest.nbytes

    @property
    def nbytes(self) -> int:
        """Memory of the compiled grammars in the cache, in bytes."""
        with self._lock:
            return sum(compiled.nbytes for compiled in self._cache.values())

    def clear(self) -> None:
        """Let go of every compiled grammar."""
        with self._lock:
            self._cache.clear()
