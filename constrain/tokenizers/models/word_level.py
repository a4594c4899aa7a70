"""WordLevel: each piece is a token, or unknown."""

from __future__ import annotations

from copy import copy

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.models.piece_model import PieceModel, check_vocabulary, without_tokens
from constrain.tokenizers.models.wordpiece_kernels import encode_words
from constrain.tokenizers.trie_kernels import trie_of

_ANY_LENGTH = 2**31


class WordLevel(PieceModel):
    """A WordLevel model.

    ``tokens``: the vocabulary by id; ``unk``: the token of other pieces, -1: they are errors; ``fuse``: neighbouring
    unknown pieces become one token.
    """

    def __init__(self, tokens: dict[int, str], unk: int, fuse: bool = False) -> None:
        check_vocabulary(tokens)
        self._unk, self._fuse = unk, fuse
        self._units = trie_of((token.encode(), token_id) for token_id, token in tokens.items())

    def without(self, ids: npt.NDArray[np.int64]) -> WordLevel:
        other = copy(self)
        other._units = without_tokens(self._units, ids)
        return other

    def encode(self, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        out = np.empty((len(data), 3), dtype=np.int32)
        # Longest match without tokens within a word finds the whole word or nothing.
        count = encode_words(data, ends, self._units, -1, self._unk, _ANY_LENGTH, out)
        result: npt.NDArray[np.int32] = out[:count]
        missing = np.flatnonzero(result[:, 0] < 0)
        if len(missing):
            _, begin, end = result[missing[0]].tolist()
            piece = data[begin:end].tobytes().decode()
            raise TokenizerError(f"{piece!r} is no token, and the vocabulary has none for unknown ones")
        if self._fuse and len(result):
            unknown = result[:, 0] == self._unk
            first = ~unknown | ~np.concatenate(([False], unknown[:-1]))
            last = np.append(np.flatnonzero(first)[1:], len(result)) - 1
            result = np.column_stack((result[first, :2], result[last, 2]))
        return result
