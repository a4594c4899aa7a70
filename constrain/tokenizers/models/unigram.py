"""Unigram: the segmentation whose tokens have the highest sum of scores."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.models.piece_model import PieceModel, check_lengths, check_vocabulary, without_tokens
from constrain.tokenizers.models.unigram_kernels import encode_short, encode_unigram
from constrain.tokenizers.normalizing.charsmap import Charsmap
from constrain.tokenizers.scratch import scratch
from constrain.tokenizers.short.piece_frames import piece_kernel
from constrain.tokenizers.short.texts import ShortKernel
from constrain.tokenizers.trie_kernels import trie_of

_LONGEST_CHARACTER = 4


_LARGEST_SCORE = 1e30


class Unigram(PieceModel):
    """A Unigram model.

    Parameters
    ----------
    tokens : dict of int to str
        The tokens that text can become, by id: without control and byte tokens.
    scores : float64[vocab]
        Logarithms of probabilities, by id.
    unk, fuse, byte_ids
        As for :class:`~.symbol_bpe.SymbolBPE`.
    unknown_score : float
        The score of an unknown character; by custom ``UNKNOWN_PENALTY`` of piece_model.py below the worst token's.
    single : bool
        Sums are rounded as sentencepiece does it.
    whole_spans : bool
        Each byte token of neighbouring unknown characters covers all of them, as in ``tokenizers``.
    """

    def __init__(
        self,
        tokens: dict[int, str],
        scores: npt.NDArray[np.float64],
        *,
        unk: int,
        unknown_score: float,
        fuse: bool = True,
        byte_ids: npt.NDArray[np.int32] | None = None,
        single: bool = False,
        whole_spans: bool = False,
    ) -> None:
        check_vocabulary(tokens)
        check_lengths(tokens)
        self._scores = np.ascontiguousarray(scores, dtype=np.float64)
        # Infinite sums could not be compared.
        if not (np.abs(np.append(self._scores, unknown_score)) < _LARGEST_SCORE).all():
            raise TokenizerError("a score is not a finite number, or too large")
        self._unk, self._fuse, self._single = unk, fuse, single
        self._unk_score = float(unknown_score)
        self._byte_ids = np.full(256, -1, dtype=np.int32) if byte_ids is None else byte_ids
        self._whole_spans = whole_spans and byte_ids is not None
        self._units = trie_of((token.encode(), token_id) for token_id, token in tokens.items())

    def scores(self) -> list[float]:
        """The score of each token, by id."""
        scores: list[float] = self._scores.tolist()
        return scores

    def without(self, ids: npt.NDArray[np.int64]) -> Unigram:
        other = copy(self)
        other._units = without_tokens(self._units, ids)
        return other

    def encode(self, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        size = len(data)
        out = scratch("tokens", 3 * size, np.int32).reshape(size, 3)
        count = encode_unigram(
            data,
            ends,
            self._units,
            self._scores,
            self._unk,
            self._unk_score,
            self._single,
            self._fuse,
            self._byte_ids,
            scratch("sums", size + 1, np.float64),
            scratch("paths", 2 * size + 2, np.int32).reshape(size + 1, 2),
            out,
        )
        result: npt.NDArray[np.int32] = out[:count].copy()
        if self._whole_spans:
            self._join_spans(result, ends)
        return result

    def _join_spans(self, tokens: npt.NDArray[np.int32], ends: npt.NDArray[np.int32]) -> None:
        """Have neighbouring unknown characters of a piece cover each other."""
        # A byte token that the text spells is longer than a character.
        unknown = np.isin(tokens[:, 0], self._byte_ids) & (tokens[:, 2] - tokens[:, 1] <= _LONGEST_CHARACTER)
        begins = np.ones(len(tokens), dtype=np.bool_)
        begins[1:] = ~unknown[1:] | ~unknown[:-1] | (np.isin(tokens[1:, 1], ends) & (tokens[1:, 1] > tokens[:-1, 1]))
        runs = np.flatnonzero(begins)
        sizes = np.diff(np.append(runs, len(tokens)))
        lasts = runs + sizes - 1
        tokens[:, 1] = np.repeat(tokens[runs, 1], sizes)
        tokens[:, 2] = np.repeat(tokens[lasts, 2], sizes)

    def short(self, step: Charsmap) -> tuple[Sequence[Any], ShortKernel]:
        return piece_kernel(step, encode_short, encode_unigram, self._short_arguments)

    def _short_arguments(self, longest: int) -> dict[str, Any]:
        best, back = np.empty(longest + 1, dtype=np.float64), np.empty((longest + 1, 2), dtype=np.int32)
        return {
            "units": self._units,
            "scores": self._scores,
            "unk": self._unk,
            "unk_score": self._unk_score,
            "single": self._single,
            "fuse": self._fuse,
            "byte_ids": self._byte_ids,
            "best": best,
            "back": back,
        }
