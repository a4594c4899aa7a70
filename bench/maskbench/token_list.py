"""The tokens of any tokenizer file: read once by this package's tokenizers, handed on to every engine as bytes and ids.

An engine's process reads a plain list, so that it does not carry a tokenizer that is not its own.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
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
    tokenizer : Tokenizer or None
        None in the processes of the engines, which do not encode.
    """

    tokens: list[bytes]
    special_ids: list[int]
    end_ids: list[int]
    tokenizer: Tokenizer | None = None

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
        from constrain import load_tokenizer

        tokenizer = load_tokenizer(path)
        tokens = tokenizer.tokens_as_bytes()
        end_ids = sorted(tokenizer.eos_ids)
        if not end_ids:
            raise NoEnd(f"{path}: no token of it is known to end a text")
        special = [index for index, token in enumerate(tokens) if token is None]
        return cls([token or b"" for token in tokens], special, end_ids, tokenizer)

    @property
    def size(self) -> int:
        """Number of ids, special tokens included."""
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        """The ids of a text.

        Raises
        ------
        UnicodeEncodeError
            If the text has a lone surrogate, which no UTF-8 text can hold.
        """
        text.encode()
        assert self.tokenizer is not None
        return self.tokenizer.encode(text).ids

    def save(self, path: Path) -> None:
        """Write the list, for :func:`read_table`."""
        path.write_bytes(pickle.dumps((self.tokens, self.special_ids, self.end_ids)))


def read_table(path: Path) -> TokenTable | TokenList:
    """The tokens in a rank file or a saved list."""
    if path.suffix == SUFFIX:
        return TokenList(*pickle.loads(path.read_bytes()))
    return TokenTable.read(path)
