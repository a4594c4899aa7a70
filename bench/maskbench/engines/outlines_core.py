"""outlines-core: the schema as a regex, the regex as an index over the whole vocabulary."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version

import numpy as np
from outlines_core import Guide, Index, Vocabulary
from outlines_core.json_schema import build_regex_from_schema

from bench.maskbench.engines.base import Engine, NotCompiled, Session
from bench.maskbench.jobs import Kind
from bench.maskbench.token_list import TokenList
from bench.maskbench.vocabulary import TokenTable


class OutlinesCore(Engine):
    """``outlines-core``."""

    @property
    def version(self) -> str:
        return version("outlines-core")

    def load(self, table: TokenTable | TokenList) -> None:
        # It knows one end token.
        ids: dict[bytes, list[int]] = {}
        without_text = {*table.special_ids, *table.end_ids}
        for index, token in enumerate(table.tokens):
            if token and index not in without_text:
                ids.setdefault(token, []).append(index)
        self._vocabulary = Vocabulary(table.end_ids[0], ids)
        self.mask = np.zeros((1, (table.size + 31) // 32), np.int32)
        self.words = memoryview(self.mask[0])

    def compile(self, kind: Kind, grammar: str) -> Session:
        if kind in (Kind.LARK, Kind.GBNF):
            raise NotCompiled("it knows regexes only")
        regex = build_regex_from_schema(grammar) if kind is Kind.JSON_SCHEMA else grammar
        return _Session(Guide(Index(regex, self._vocabulary)), self.mask)


class _Session(Session):
    def __init__(self, guide: Guide, mask: np.ndarray) -> None:
        self._guide = guide
        self._advance = guide.advance
        self.fill = partial(guide.write_mask_into, mask.ctypes.data, mask.size, mask.itemsize)
        self.accept = self._accept

    def _accept(self, token: int) -> bool:
        try:
            self._advance(token, False)
        except ValueError:
            return False
        return True

    def restart(self) -> None:
        self._guide.reset()

    def can_end(self) -> bool:
        return bool(self._guide.is_finished())
