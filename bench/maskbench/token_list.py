"""The tokens of any tokenizer file: read once by this package's tokenizers, handed on to every engine as bytes and ids.

An engine's process reads a plain list.  Only one that has to encode, too, carries a tokenizer that is not its own.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bench.maskbench.vocabulary import TokenTable

if TYPE_CHECKING:
    from constrain.tokenizers.base import Tokenizer

SUFFIX = ".tokens"


class NoEnd(Exception):
    """A tokenizer that does not say which token ends a text."""


@dataclass(frozen=True)
class TokenList:
    """What :class:`~.vocabulary.TokenTable` is, for a file that is no rank file.

    Attributes
    ----------
    tokens : list of bytes
        The bytes of each id; none for the special ones.
    special_ids, end_ids : list of int
        Ids without text, and ids that end the text.
    source : Path
        The tokenizer's file or folder.
    """

    tokens: list[bytes]
    special_ids: list[int]
    end_ids: list[int]
    source: Path

    @classmethod
    def of_tokenizer(cls, path: Path) -> TokenList:
        """Read whatever :func:`constrain.load_tokenizer` reads.

        Raises
        ------
        ConstrainError
            If it cannot be read.
        NoEnd
            If no token ends a text.
        """
        tokenizer = _load(path)
        tokens = tokenizer.tokens_as_bytes()
        end_ids = sorted(tokenizer.eos_ids)
        if not end_ids:
            raise NoEnd(f"{path}: no token of it is known to end a text")
        special = [index for index, token in enumerate(tokens) if token is None]
        return cls([token or b"" for token in tokens], special, end_ids, path.absolute())

    @property
    def size(self) -> int:
        """Number of ids, special tokens included."""
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, whose bytes are just the text's.

        Raises
        ------
        ValueError
            If the text has a lone surrogate, which no UTF-8 text can hold, or the tokenizer changes it.
        """
        data = text.encode()
        ids = self._tokenizer.encode(text).ids
        if not ids or b"".join(self.tokens[i] for i in ids) == data:
            return ids
        # SentencePiece puts a blank before a text; what is left of the first token without it is spelled anew.
        first, rest = self.tokens[ids[0]], ids[1:]
        if first[:1] == b" " and first[1:] + b"".join(self.tokens[i] for i in rest) == data:
            return self._longest_tokens(first[1:]) + rest
        raise ValueError(f"{self.source}: the tokenizer changes the text {text[:40]!r}")

    def _longest_tokens(self, data: bytes) -> list[int]:
        ids = []
        while data:
            end = next(end for end in range(len(data), -1, -1) if end == 0 or data[:end] in self._ids)
            if end == 0:
                raise ValueError(f"{self.source}: no token begins {data!r}")
            ids.append(self._ids[data[:end]])
            data = data[end:]
        return ids

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        without_text = {*self.special_ids, *self.end_ids}
        return {token: index for index, token in enumerate(self.tokens) if token and index not in without_text}

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return _load(self.source)

    def save(self, path: Path) -> None:
        """Write the list, for :func:`read_table`."""
        path.write_bytes(pickle.dumps((self.tokens, self.special_ids, self.end_ids, self.source)))


def _load(path: Path) -> Tokenizer:
    from constrain import load_tokenizer

    return load_tokenizer(path)


def read_table(path: Path) -> TokenTable | TokenList:
    """The tokens in a rank file or a saved list."""
    if path.suffix == SUFFIX:
        return TokenList(*pickle.loads(path.read_bytes()))
    return TokenTable.read(path)
