"""XGrammar, with one compiler for the vocabulary."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import Any

import xgrammar

from bench.maskbench.engines.base import Engine, Session
from bench.maskbench.jobs import Kind
from bench.maskbench.token_list import TokenList
from bench.maskbench.vocabulary import TokenTable

_CACHE_LIMIT_BYTES = 512 << 20


class XGrammar(Engine):
    """``xgrammar``.

    Parameters
    ----------
    options : dict
        For ``compile_json_schema``.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options

    @property
    def version(self) -> str:
        return version("xgrammar")

    def load(self, table: TokenTable | TokenList) -> None:
        info = xgrammar.TokenizerInfo(
            table.tokens, xgrammar.VocabType.RAW, vocab_size=table.size, stop_token_ids=table.end_ids
        )
        # Its cache also keeps parts that grammars share, so it is left on, as it is by default; only
        # bounded, since it would otherwise hold every schema of the run.
        self._compiler = xgrammar.GrammarCompiler(info, cache_limit_bytes=_CACHE_LIMIT_BYTES)
        self.mask = xgrammar.allocate_token_bitmask(1, table.size)
        self.words = memoryview(self.mask.numpy()[0])

    def compile(self, kind: Kind, grammar: str) -> Session:
        if kind is Kind.JSON_SCHEMA:
            compiled = self._compiler.compile_json_schema(grammar, **self._options)
        elif kind is Kind.LARK:
            compiled = self._compiler.compile_lark(grammar)
        elif kind is Kind.GBNF:
            compiled = self._compiler.compile_grammar(grammar)
        else:
            compiled = self._compiler.compile_regex(grammar)
        return _Session(compiled, self)


class _Session(Session):
    def __init__(self, compiled: Any, engine: XGrammar) -> None:
        self._compiled = compiled
        self._matcher = matcher = xgrammar.GrammarMatcher(compiled)
        self.fill = partial(matcher.fill_next_token_bitmask, engine.mask)
        self.accept = matcher.accept_token

    def restart(self) -> None:
        self._matcher.reset()

    def can_end(self) -> bool:
        return bool(self._matcher.is_completed())

    def table_bytes(self) -> int:
        return int(self._compiled.memory_size_bytes)
