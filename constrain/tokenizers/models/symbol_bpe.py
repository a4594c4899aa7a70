"""BPE over characters: SentencePiece's, which ranks tokens by score, and that of ``tokenizer.json``, by merges."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from constrain.errors import TokenizerError
from constrain.tokenizers.models import symbol_kernels, whole_pieces
from constrain.tokenizers.models.bpe_tables import (
    merge_table,
    merges_in,
    merges_without,
    pairs_of_ranks,
    slots_without,
    token_slots,
)
from constrain.tokenizers.models.piece_model import PieceModel, check_lengths, check_vocabulary
from constrain.tokenizers.normalizing.charsmap import Charsmap
from constrain.tokenizers.scratch import scratch
from constrain.tokenizers.short.piece_frames import piece_kernel
from constrain.tokenizers.short.texts import ShortKernel
from constrain.tokenizers.trie_kernels import trie_of

Merges = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Left ids, right ids, ranks and merged ids."""


class SymbolBPE(PieceModel):
    """BPE whose first symbols are characters.

    Parameters
    ----------
    tokens : dict of int to str
        The tokens that text can become, by id: without control and byte tokens.
    merges : (left, right, merged) or None
        Ids, lowest rank first; None: any two symbols that make a token are merged, highest score first.
    scores : float32[vocab] or None
        Where ``merges`` is None.
    unk : int
        The token of a character without one; -1: such a character is dropped.
    fuse : bool
        Neighbouring unknown characters become one token.
    byte_ids : int32[256] or None
        The tokens of the bytes of an unknown character, instead of ``unk``.
    fixed : dict of str to int
        User-defined symbols: found before anything is merged.
    whole : int
        Which pieces that are tokens become these whatever the merges say: ``NEVER``, ``ALWAYS`` or
        ``NEWLINES`` of :mod:`constrain.tokenizers.models.whole_pieces`.
    """

    def __init__(
        self,
        tokens: dict[int, str],
        merges: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None,
        scores: npt.NDArray[np.float32] | None = None,
        *,
        unk: int = -1,
        fuse: bool = True,
        byte_ids: npt.NDArray[np.int32] | None = None,
        fixed: dict[str, int] | None = None,
        whole: int = whole_pieces.NEVER,
    ) -> None:
        check_vocabulary(tokens)
        self._vocab = max(tokens) + 1
        self._unk, self._fuse, self._whole = unk, fuse, whole
        self._byte_ids = np.full(256, -1, dtype=np.int32) if byte_ids is None else byte_ids
        self._fixed = np.empty((0, 4), dtype=np.int32)
        if fixed:
            self._fixed = trie_of((text.encode(), token_id) for text, token_id in fixed.items())
        # Everything as one text: a step of Python for each token takes longer than the rest.
        texts, ids = list(tokens.values()), np.fromiter(tokens, dtype=np.int64, count=len(tokens))
        codes = np.frombuffer(bytearray("".join(texts).encode("utf-32-le")), dtype=np.int32)
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        extra = self._index_characters(codes, lengths, ids)
        self._index_tokens({**tokens, **extra})
        self._index_neighbours(codes, lengths)
        if merges is not None:
            left, right, merged = merges
            ranks = np.arange(len(left), dtype=np.int64)
        else:
            assert scores is not None, "either merges or scores"
            left, right, ranks, merged = self._merges_of_scores(tokens, scores)
        self._keys, self._values = merge_table(left << 32 | right, ranks << 32 | merged)
        self._direct = np.zeros(len(self._starts), dtype=np.uint8)

    def merges(self) -> list[tuple[int, int]]:
        """The left and the right token of each merge, lowest rank first."""
        return [(left, right) for left, right in merges_in(self._keys, self._values).tolist()]

    def without(self, ids: npt.NDArray[np.int64]) -> SymbolBPE:
        other = copy(self)
        other._slots = slots_without(self._blob, self._starts, self._slots, ids)
        other._keys, other._values = merges_without(self._keys, self._values, ids)
        other._char_ids = np.where(np.isin(self._char_ids, ids), -1, self._char_ids).astype(np.int32)
        other._direct = np.zeros(len(self._starts), dtype=np.uint8)
        return other

    def encode(self, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        size = len(data)
        out = scratch("tokens", 3 * size, np.int32).reshape(size, 3)
        count = symbol_kernels.encode_symbols(
            data,
            ends,
            self._whole,
            self._char_blocks,
            self._char_ids,
            self._neighbours,
            self._fixed,
            self._blob,
            self._starts,
            self._slots,
            self._direct,
            self._keys,
            self._values,
            self._vocab,
            self._unk,
            self._fuse,
            self._byte_ids,
            scratch("symbols", size, np.int32),
            out,
        )
        result: npt.NDArray[np.int32] = out[:count].copy()
        return result

    def short(self, step: Charsmap) -> tuple[Sequence[Any], ShortKernel]:
        return piece_kernel(step, symbol_kernels.encode_short, symbol_kernels.encode_symbols, self._short_arguments)

    def _short_arguments(self, longest: int) -> dict[str, Any]:
        tables = {"blob": self._blob, "starts": self._starts, "slots": self._slots, "direct": self._direct}
        return {
            "char_blocks": self._char_blocks,
            "char_ids": self._char_ids,
            "neighbours": self._neighbours,
            **tables,
            "keys": self._keys,
            "values": self._values,
            "fixed": self._fixed,
            "whole": self._whole,
            "vocab": self._vocab,
            "unk": self._unk,
            "fuse": self._fuse,
            "byte_ids": self._byte_ids,
            "symbols": np.empty(longest, dtype=np.int32),
        }

    def _index_characters(
        self, codes: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]
    ) -> dict[int, str]:
        """Characters of tokens that are no tokens get ids too, and are returned."""
        id_of = np.full(0x110000, -1, dtype=np.int32)
        id_of[codes] = -2
        alone = np.flatnonzero(lengths == 1)
        id_of[codes[np.cumsum(lengths)[alone] - 1]] = ids[alone]
        others = np.flatnonzero(id_of == -2)
        id_of[others] = np.arange(self._vocab, self._vocab + len(others))
        rows = id_of.reshape(-1, 256)
        used = np.flatnonzero((rows >= 0).any(axis=1))
        self._char_blocks = np.zeros(0x1100, dtype=np.int32)
        self._char_blocks[used] = np.arange(1, len(used) + 1)
        self._char_ids = np.full((len(used) + 1) * 256, -1, dtype=np.int32)
        self._char_ids[256:] = rows[used].reshape(-1)
        return {self._vocab + place: chr(code) for place, code in enumerate(others.tolist())}

    def _index_tokens(self, everything: dict[int, str]) -> None:
        size = max(everything) + 1
        texts = [""] * size
        for token_id, token in everything.items():
            texts[token_id] = token
        self._blob = np.frombuffer(bytearray("".join(texts).encode()), dtype=np.uint8)
        if len(self._blob) >= 2**31:
            raise TokenizerError("the vocabulary is too large")
        # Where each character begins, and after how many of them each token ends.
        characters = np.append(np.flatnonzero((self._blob & 0xC0) != 0x80), len(self._blob))
        ends = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=size))
        self._starts = characters[np.concatenate(([0], ends))].astype(np.int32)
        ids = np.flatnonzero(np.diff(self._starts)).astype(np.int32)
        self._slots, _ = token_slots(self._blob, self._starts, ids)
        self._ids = ids

    def _index_neighbours(self, codes: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64]) -> None:
        joined = np.ones(len(codes), dtype=np.bool_)
        ends = np.cumsum(lengths)
        joined[ends[ends > 0] - 1] = False
        self._neighbours = np.zeros(1 << (symbol_kernels.NEIGHBOUR_BITS - 5), dtype=np.uint32)
        symbol_kernels.fill_neighbours(codes, joined, self._neighbours)

    def _merges_of_scores(self, tokens: dict[int, str], scores: npt.NDArray[np.float32]) -> Merges:
        # Each token is tried at every cut, so its length has to be bounded.
        check_lengths(tokens)
        if not np.isfinite(scores).all():
            raise TokenizerError("a score is not a finite number")
        ids = self._ids[self._ids < self._vocab]
        keys, values = pairs_of_ranks(self._blob, self._starts, ids, self._slots)
        merged = values & 0xFFFFFFFF
        # Tokens of equal score have equal rank: the one further left is merged first.
        _, rank_of = np.unique(-scores, return_inverse=True)
        return keys >> 32, keys & 0xFFFFFFFF, rank_of[merged].astype(np.int64), merged
