"""What the models over pieces of text have in common: BPE over characters, Unigram, WordPiece and WordLevel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.arguments import check_token_ids
from constrain.tokenizers.normalizing.charsmap import Charsmap
from constrain.tokenizers.short.texts import ShortKernel
from constrain.tokenizers.trie_kernels import TOKEN

MARKER = "\u2581"
"""How vocabularies write a space."""

_LONGEST_TOKEN = 1024

UNKNOWN_PENALTY = 10.0
"""How much more than the worst token of a Unigram vocabulary an unknown character costs."""


class PieceModel(ABC):
    """Turns pieces of normalized text into ids.  Immutable, picklable, shared by threads."""

    @abstractmethod
    def encode(self, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """int32[k, 3]: id, begin and end in ``data`` (well-formed UTF-8) of each token; ``ends``: of the pieces."""

    @abstractmethod
    def without(self, ids: npt.NDArray[np.int64]) -> PieceModel:
        """The model as if it had never had these tokens; what is unknown stays so."""

    def short(self, step: Charsmap) -> tuple[Sequence[Any], ShortKernel] | None:
        """For one thread the kernel for short texts after this normalization; None if the model has none.

        Returns the arrays that have to be kept alive, and the kernel.
        """
        return None


def without_tokens(units: npt.NDArray[np.int32], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """A copy of a trie in which these tokens end nowhere."""
    copy: npt.NDArray[np.int32] = units.copy()
    copy[np.isin(copy[:, TOKEN], ids), TOKEN] = -1
    return copy


def byte_tokens(ids: dict[str, int]) -> npt.NDArray[np.int32] | None:
    """int32[256]: the tokens ``<0x00>`` to ``<0xFF>``; None if one is missing that may be needed.

    The byte of a character of ASCII that is a token itself is never needed, and may be -1.  The first may not: it says
    whether there are any.
    """
    found = [ids.get(f"<0x{byte:02X}>", -1) for byte in range(256)]
    needed = (token < 0 and not (0 < byte < 0x80 and chr(byte) in ids) for byte, token in enumerate(found))
    return None if any(needed) else np.array(found, dtype=np.int32)


def byte_of_token(token: str) -> int | None:
    """The byte that a token of the form ``<0x41>`` stands for."""
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        digits = token[3:5]
        if all(digit in "0123456789ABCDEF" for digit in digits):
            return int(digits, 16)
    return None


def check_lengths(tokens: dict[int, str]) -> None:
    """No token is so long that a text, read from each of its places on as far as a token goes, would take for ever."""
    longest = max(map(len, tokens.values()), default=0)
    if longest > _LONGEST_TOKEN:
        raise TokenizerError(f"a token has {longest:,} characters; the limit is {_LONGEST_TOKEN:,}")


def check_vocabulary(tokens: dict[int, str]) -> None:
    """Ids within bounds, and no token twice."""
    check_token_ids(tokens)
    try:
        "".join(tokens.values()).encode()
    except UnicodeEncodeError:
        raise TokenizerError("a token has a lone surrogate, which has no UTF-8") from None
    if len(set(tokens.values())) != len(tokens):
        seen: set[str] = set()
        for token_id, token in tokens.items():
            if token in seen:
                raise TokenizerError(f"token {token!r} is in the vocabulary twice, the second time as id {token_id}")
            seen.add(token)
