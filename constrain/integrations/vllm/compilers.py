"""Compiles grammars for the requests of one model, which end with the stop tokens that they name."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NamedTuple

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.compiler import GrammarCompiler
from constrain.engine.vocabulary.vocabulary import NORMAL, Vocabulary
from constrain.errors import ConstrainError
from constrain.grammar.grammar import Grammar
from constrain.integrations.vllm.requests import JsonOptions, grammar_of
from constrain.limits import Deadline, limited
from constrain.tokenizers.adapters import adapt

_MOST_GRAMMARS, _LONGEST_SPEC = 128, 1 << 16
"""Grammars that are kept as they were read, and how many characters their texts may have.

The API server and the engine read a request's grammar one after the other, and most requests of a server are for one of
a few grammars.
"""


class Compiled(NamedTuple):
    """A grammar that is ready for a request.

    Attributes
    ----------
    grammar : CompiledGrammar
    ends : tuple of int or None
        The tokens that end the request, where they are others than the end tokens of the grammar's vocabulary.
    """

    grammar: CompiledGrammar
    ends: tuple[int, ...] | None


class Compilers:
    """Compiles grammars for a tokenizer; from any thread.

    Parameters
    ----------
    tokenizer
        Of ``transformers``, or what else :meth:`constrain.Vocabulary.from_huggingface` takes.
    size : int
        How many logits the model has.
    ends : set of int
        Tokens with which the model's requests end beside the tokenizer's own end tokens, where they are special ones.

    Raises
    ------
    ConstrainError
        If the tokens have no exact bytes, the library is not known, or there is no end token.
    """

    def __init__(self, tokenizer: Any, size: int, ends: Iterable[int] = ()) -> None:
        adapted = adapt(tokenizer)
        vocabulary = Vocabulary.from_tokenizer(adapted, size=size)
        more = {token for token in ends if vocabulary.kinds[token] != NORMAL} - set(vocabulary.eos_ids)
        if more:
            vocabulary = Vocabulary.from_tokenizer(adapted, sorted({*vocabulary.eos_ids, *more}), size=size)
        self._own = GrammarCompiler(vocabulary)
        self.vocabulary = vocabulary
        if not self.vocabulary.eos_ids:
            raise ConstrainError("the tokenizer has no end token, so that no text could end")
        self._grammars: OrderedDict[tuple[str, str, JsonOptions], Grammar] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, kind: str, spec: str, *, options: JsonOptions, deadline: Deadline) -> Grammar:
        """The grammar of a request, from those that have been read if it is there; as :func:`grammar_of`."""
        key = kind, spec, options
        with self._lock:
            known = self._grammars.get(key)
            if known is not None:
                self._grammars.move_to_end(key)
                return known
        grammar = grammar_of(kind, spec, options=options, deadline=deadline)
        if len(spec) <= _LONGEST_SPEC:
            with self._lock:
                self._grammars[key] = grammar
                while len(self._grammars) > _MOST_GRAMMARS:
                    self._grammars.popitem(last=False)
        return grammar

    def compile(self, grammar: Grammar, stops: Iterable[int] | None, deadline: Deadline) -> Compiled:
        """The grammar for a request that ends with any of ``stops``; None: with the tokenizer's own end tokens.

        Raises
        ------
        ConstrainError
            If the grammar matches no text, needs too much memory or time, or a stop token is out of range.
        """
        own = self.vocabulary
        ends = own.eos_ids if not stops else tuple(sorted({int(token) for token in stops}))
        if ends[0] < 0 or ends[-1] >= own.size:
            raise ConstrainError(f"stop token ids must be between 0 and {own.size - 1}, not {ends[0]} to {ends[-1]}")
        with limited(deadline):
            compiled = self._own.compile(grammar, time_limit=deadline).ending_with(ends)
        return Compiled(compiled, None if ends == compiled.vocabulary.eos_ids else ends)
