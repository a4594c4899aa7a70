"""This engine, by its public names."""

from __future__ import annotations

from functools import partial

from bench.maskbench.engines.base import Engine, Session
from bench.maskbench.jobs import Kind
from bench.maskbench.token_list import TokenList
from bench.maskbench.vocabulary import TokenTable
from constrain import Grammar, GrammarCompiler, Matcher, Vocabulary, __version__, allocate_token_bitmask


class Constrain(Engine):
    """``constrain``."""

    @property
    def version(self) -> str:
        return __version__

    def load(self, table: TokenTable | TokenList) -> None:
        vocabulary = Vocabulary(table.tokens, eos_ids=table.end_ids, special_ids=table.special_ids)
        # Without the cache of whole grammars: a schema that comes twice is compiled twice.
        self._compiler = GrammarCompiler(vocabulary, cache_limit_bytes=0)
        self.mask = allocate_token_bitmask(1, vocabulary.size)
        self.words = memoryview(self.mask[0])

    def compile(self, kind: Kind, grammar: str) -> Session:
        if kind is Kind.JSON_SCHEMA:
            parsed = Grammar.from_json_schema(grammar)
        elif kind is Kind.LARK:
            parsed = Grammar.from_lark(grammar)
        elif kind is Kind.GBNF:
            parsed = Grammar.from_gbnf(grammar)
        else:
            parsed = Grammar.from_regex(grammar)
        return _Session(Matcher(self._compiler.compile(parsed)), self)


class _Session(Session):
    def __init__(self, matcher: Matcher, engine: Constrain) -> None:
        self._matcher = matcher
        self.fill = partial(matcher.fill_next_token_bitmask, engine.mask)
        self.accept = matcher.accept_token
        self.mark = self._state

    def _state(self) -> int:
        # Not a public name: masks are kept by state, and nothing public tells a first visit from a
        # repeated one without costing more than the repeat.
        return self._matcher._state

    def restart(self) -> None:
        self._matcher.reset()

    def can_end(self) -> bool:
        return self._matcher.is_accepting()

    def table_bytes(self) -> int:
        return self._matcher.compiled.nbytes
