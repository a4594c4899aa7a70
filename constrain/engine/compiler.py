"""GrammarCompiler: compiles grammars for one vocabulary and keeps the recent ones."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Hashable
from concurrent.futures import Future
from functools import partial
from typing import Any

from constrain.arguments import check_bytes
from constrain.engine.compile_jobs import CompileJobs
from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.grammar_cache import GrammarCache
from constrain.engine.grammar_tables import DEFAULT_LIMIT_BYTES, DEFAULT_MASK_LIMIT_BYTES
from constrain.engine.masks.accelerators import names_in_use
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask
from constrain.engine.vocabulary.vocabulary import Vocabulary, check_vocabulary
from constrain.errors import ConstrainError
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
        The least recently used compiled grammars are let go when the tables of all of them together take more than
        this (a grammar still held by a matcher lives on; one is always kept).  0 keeps none.  How much a grammar has
        grown while it was used is looked at now and then, as others are compiled.
    limit_bytes, mask_limit_bytes : int
        Limits of each compiled grammar; see :class:`CompiledGrammar`.
    accelerators : collection of str, optional
        The accelerators of each compiled grammar; see :class:`CompiledGrammar`.  Results do not change.

    Raises
    ------
    TypeError
        If ``vocabulary`` is something else, such as a tokenizer.
    ValueError
        If there is no accelerator of a name, or a limit is no number.
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
        check_vocabulary(vocabulary, "GrammarCompiler()")
        self.accelerators = names_in_use(accelerators)
        self.vocabulary = vocabulary
        self.cache_limit_bytes = check_bytes("cache_limit_bytes", cache_limit_bytes)
        self.limit_bytes = check_bytes("limit_bytes", limit_bytes)
        self.mask_limit_bytes = check_bytes("mask_limit_bytes", mask_limit_bytes)
        self._lock = threading.Lock()
        self._cache = GrammarCache()
        self._jobs = CompileJobs()
        renew_in_child(self)
        self._share_usual_masks(vocabulary)

    def __repr__(self) -> str:
        with self._lock:
            count = len(self._cache)
        grammars = "grammar" if count == 1 else "grammars"
        return f"<GrammarCompiler: {self.vocabulary.size:,} tokens, {count:,} {grammars} kept>"

    def _renew_after_fork(self) -> None:
        if self._lock.locked():
            self._cache = GrammarCache()
        self._lock = threading.Lock()
        # Nobody compiles in the child what was asked for in the parent.
        self._jobs = CompileJobs()

    def __reduce__(self) -> Any:
        options = {"cache_limit_bytes": self.cache_limit_bytes, **self._options()}
        with self._lock:
            kept = self._cache.grammars()
        written = []
        for compiled in kept:
            # Others are compiled where they are needed.
            with contextlib.suppress(ConstrainError):
                written.append(compiled.to_bytes())
        return partial(_compiler_with, **options), (self.vocabulary, written)

    def _options(self) -> dict[str, Any]:
        """Those of its compiled grammars."""
        return {
            "limit_bytes": self.limit_bytes,
            "mask_limit_bytes": self.mask_limit_bytes,
            "accelerators": self.accelerators,
        }

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
        ConstrainError
            If ``time_limit`` is no positive number.
        """
        # What is no limit is an error whether the cache has the grammar or not.
        limits = limited(time_limit)
        compiled = self._known(grammar, "compile()")
        if compiled is not None:
            return compiled
        with limits:
            compiled = CompiledGrammar(grammar.ir, self.vocabulary, source=grammar.key, **self._options())
        return self._keep(grammar.key, compiled)

    def _keep(self, key: Hashable, compiled: CompiledGrammar) -> CompiledGrammar:
        """What the cache has under a key now: that, or what was there before."""
        if compiled.ir.token_lexemes and compiled.ir.stock is not None:
            # It has JSON in it, and a vocabulary of its own (token_terminals.py).
            self._share_usual_masks(compiled.vocabulary)
        with self._lock:
            if self.cache_limit_bytes > 0:
                compiled = self._cache.keep(key, compiled, self.cache_limit_bytes)
        return compiled

    def load(self, data: bytes, *, time_limit: float | Deadline | None = None) -> CompiledGrammar:
        """The compiled grammar that :meth:`CompiledGrammar.to_bytes` has written; :meth:`compile` finds it then.

        If the cache has the grammar already, it is that one, with what it has learned itself.

        Raises
        ------
        ConstrainError
            As :meth:`CompiledGrammar.from_bytes`.
        """
        compiled = CompiledGrammar.from_bytes(data, self.vocabulary, time_limit=time_limit, **self._options())
        return self._keep(compiled.source, compiled)

    def _known(self, grammar: Grammar, method: str) -> CompiledGrammar | None:
        """What the cache has of a grammar."""
        if not isinstance(grammar, Grammar):
            raise TypeError(f"{method} takes a Grammar, not {type(grammar).__name__}: use one of Grammar.from_...")
        with self._lock:
            return self._cache.get(grammar.key)

    def submit(self, grammar: Grammar, *, time_limit: float | Deadline | None = None) -> Future[CompiledGrammar]:
        """Compile in the background, in one of a few threads that all compilers of the process share.

        Equal grammars with equal limits that are asked for at once are compiled once.  ``asyncio.wrap_future`` makes
        the future awaitable.

        Parameters
        ----------
        grammar : Grammar
        time_limit : float or Deadline, optional
            Seconds that the compile may take once it has begun; a :class:`~constrain.limits.Deadline` has a clock of
            its own.

        Returns
        -------
        concurrent.futures.Future
            With the compiled grammar, or the error that :meth:`compile` would raise.  It can be cancelled until then; a
            compile that nobody waits for any more ends soon.

        Raises
        ------
        ConstrainError
            If ``time_limit`` is no positive number.
        RuntimeError
            If no thread can be started.
        """
        compiled = self._known(grammar, "submit()")
        if compiled is not None:
            future: Future[CompiledGrammar] = Future()
            future.set_result(compiled)
            return future
        key = grammar.key, time_limit
        return self._jobs.submit(key, lambda deadline: self.compile(grammar, time_limit=deadline), time_limit)

    @property
    def nbytes(self) -> int:
        """Memory of the compiled grammars in the cache, in bytes."""
        with self._lock:
            return sum(compiled.nbytes for compiled in self._cache.grammars())

    def clear(self) -> None:
        """Let go of every compiled grammar."""
        with self._lock:
            self._cache = GrammarCache()


def _compiler_with(vocabulary: Vocabulary, written: list[bytes], **options: Any) -> GrammarCompiler:
    """A compiler that knows some grammars."""
    compiler = GrammarCompiler(vocabulary, **options)
    for data in written:
        compiler.load(data)
    return compiler
