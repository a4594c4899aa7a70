"""llguidance by ``LLMatcher``, whose mask goes straight into memory."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version

import llguidance.numpy
import llguidance.tiktoken
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper

from bench.maskbench.engines.base import Engine, NotCompiled, Session
from bench.maskbench.jobs import Kind
from bench.maskbench.token_list import TokenList
from bench.maskbench.vocabulary import TokenTable


class LLGuidance(Engine):
    """``llguidance``.

    Parameters
    ----------
    max_items : int or None
        Of its parser in one step; None for its own limit.
    """

    def __init__(self, max_items: int | None = None) -> None:
        self.limits = None if max_items is None else LLParserLimits(step_max_items=max_items)

    @property
    def version(self) -> str:
        return version("llguidance")

    def load(self, table: TokenTable | TokenList) -> None:
        self.tokenizer: LLTokenizer
        if isinstance(table, TokenTable):
            self.tokenizer = llguidance.tiktoken.lltokenizer_from_encoding(
                table.encoding, n_vocab=table.size, eos_token=table.end_ids
            )
        else:
            file = table.source / "tokenizer.json" if table.source.is_dir() else table.source
            known = str(file) if file.suffix == ".json" and file.is_file() else TokenizerWrapper(_Tokens(table))
            self.tokenizer = LLTokenizer(known, n_vocab=table.size, eos_token=table.end_ids)
        mask = llguidance.numpy.allocate_token_bitmask(1, table.size)
        self._mask = mask
        # What llguidance.numpy.fill_next_token_bitmask computes anew at every call.
        self.address, self.bytes = mask.ctypes.data, mask.nbytes
        self.words = memoryview(mask[0])

    def compile(self, kind: Kind, grammar: str) -> Session:
        if kind is Kind.JSON_SCHEMA:
            text = LLMatcher.grammar_from_json_schema(grammar)
        elif kind is Kind.LARK:
            text = LLMatcher.grammar_from_lark(grammar)
        elif kind is Kind.GBNF:
            raise NotCompiled("it reads no GBNF")
        else:
            text = LLMatcher.grammar_from_regex(grammar)
        session = _Session(self, text)
        error = session.error()
        if error:
            raise NotCompiled(error)
        return session


class _Tokens:
    """A vocabulary as llguidance asks for it.

    Where only one text can follow, its masks allow just the first of the tokens that this text is encoded to.
    """

    bos_token_id = None

    def __init__(self, table: TokenList) -> None:
        self.tokens = table.tokens
        self.special_token_ids = sorted({*table.special_ids, *table.end_ids})
        self.eos_token_id = table.end_ids[0]
        self._encode = table.encode

    def __call__(self, text: str) -> list[int]:
        # Of bytes, which llguidance asks for first, it learns that they are not taken.
        if not isinstance(text, str):
            raise TypeError("only text is encoded")
        return self._encode(text)


class _Session(Session):
    def __init__(self, engine: LLGuidance, text: str) -> None:
        self._engine, self._text = engine, text
        self._begin()

    def _begin(self) -> None:
        # Silent: a rejected token would be a line on stderr.
        self._matcher = LLMatcher(self._engine.tokenizer, self._text, log_level=0, limits=self._engine.limits)
        self.fill = partial(self._matcher.unsafe_compute_mask_ptr, self._engine.address, self._engine.bytes)
        self.accept = self._matcher.consume_token

    def error(self) -> str:
        error: str = self._matcher.get_error()
        return error

    def fault(self) -> str:
        return self.error().partition("\n")[0]

    def restart(self) -> None:
        # A matcher never leaves the state of error, whose cause may be a limit.
        if self._matcher.is_error() or not self._matcher.reset():
            self._begin()

    def can_end(self) -> bool:
        return bool(self._matcher.is_accepting())
