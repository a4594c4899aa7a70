"""A model's tokens, as every engine gets them: a tiktoken rank file and the special tokens after it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

SPECIAL_TOKENS = 256
"""Llama-3's specials: they follow its 128,000 ranks."""

_END_OF_TEXT, _END_OF_TURN = 1, 9

_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class TokenTable:
    """The tokens of a rank file, and 256 special ones after them, as in Llama-3.

    Attributes
    ----------
    ranks : dict
        Bytes to id, for 0 .. n - 1 without a gap.
    """

    ranks: dict[bytes, int]

    @classmethod
    def read(cls, path: Path) -> TokenTable:
        """Read a file with a base64 token and its rank on each line."""
        lines = path.read_bytes().split(b"\n")
        pairs = (line.split() for line in lines if line)
        return cls({base64.b64decode(token): int(rank) for token, rank in pairs})

    @property
    def size(self) -> int:
        """Number of ids, special tokens included."""
        return len(self.ranks) + SPECIAL_TOKENS

    @property
    def special_ids(self) -> range:
        """Ids without text."""
        return range(len(self.ranks), self.size)

    @property
    def end_ids(self) -> list[int]:
        """Ids that end the text."""
        return [len(self.ranks) + _END_OF_TEXT, len(self.ranks) + _END_OF_TURN]

    @property
    def tokens(self) -> list[bytes]:
        """The bytes of each id; none for the special ones."""
        tokens = [b""] * self.size
        for token, rank in self.ranks.items():
            tokens[rank] = token
        return tokens

    @cached_property
    def encoding(self) -> tiktoken.Encoding:
        """The tokenizer."""
        import tiktoken

        special = {f"<|special_{i}|>": i for i in self.special_ids}
        return tiktoken.Encoding("maskbench", pat_str=_SPLIT, mergeable_ranks=self.ranks, special_tokens=special)

    def encode(self, text: str) -> list[int]:
        """The ids of a text.

        Raises
        ------
        UnicodeEncodeError
            If the text has a lone surrogate, which no UTF-8 text can hold.
        """
        text.encode()
        return self.encoding.encode(text, disallowed_special=())
