"""WordPiece: the longest token first, as in BERT."""

from __future__ import annotations

from copy import copy

import numpy as np
import numpy.typing as npt

from constrain.tokenizers.models.piece_model import PieceModel, check_lengths, check_vocabulary, without_tokens
from constrain.tokenizers.models.wordpiece_kernels import encode_words
from constrain.tokenizers.trie_kernels import trie_of, walk


class WordPiece(PieceModel):
    """A WordPiece model.

    Parameters
    ----------
    tokens : dict of int to str
        The vocabulary by id; tokens within a word begin with ``prefix``, or, with ``marks_begin``, those that
        begin a word do.
    unk : int
        The token of a word that cannot be covered.
    most_chars : int
        A word with more characters is unknown.
    """

    def __init__(
        self, tokens: dict[int, str], unk: int, prefix: str = "##", most_chars: int = 100, marks_begin: bool = False
    ) -> None:
        check_vocabulary(tokens)
        check_lengths(tokens)
        self._unk, self._most_chars = unk, most_chars
        if marks_begin:
            tokens = {
                token_id: token.removeprefix(prefix) if token.startswith(prefix) else "\0" + token
                for token_id, token in tokens.items()
            }
            prefix = "\0"
        self._units = trie_of((token.encode(), token_id) for token_id, token in tokens.items())
        self._inner = walk(self._units, prefix.encode())

    def without(self, ids: npt.NDArray[np.int64]) -> WordPiece:
        other = copy(self)
        other._units = without_tokens(self._units, ids)
        return other

    def encode(self, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        out = np.empty((len(data), 3), dtype=np.int32)
        count = encode_words(data, ends, self._units, self._inner, self._unk, self._most_chars, out)
        result: npt.NDArray[np.int32] = out[:count]
        return result
