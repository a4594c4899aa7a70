"""BPE word by word in Python, for what the kernels lack.

A character may be spelled by its place in the word: ``##b`` within it (``continuing_subword_prefix``), ``c</w>`` at its
end (``end_of_word_suffix``).  And a character without a token may be dropped, so that its neighbours meet.  Such
vocabularies are old and their texts short (CLIP's have 77 tokens), so each word is merged once and remembered.

The algorithm is that of Sennrich et al., "Neural machine translation of rare words with subword units" (2016), with the
order of merges of ``tokenizers``: lowest rank first, leftmost first among equals.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from constrain.tokenizers.models.piece_model import PieceModel, check_vocabulary

_REMEMBERED = 20_000
_LONGEST_REMEMBERED = 64

Symbol = tuple[int, int]
"""A token and how many bytes of the word it covers."""


class SpelledBPE(PieceModel):
    """BPE whose first symbols are characters with a prefix or a suffix.

    Parameters
    ----------
    tokens : dict of int to str
        The vocabulary by id.
    merges : mapping of (int, int) to (int, int)
        For a pair of ids its rank and the id of what it becomes.
    prefix, suffix : str
        What the vocabulary writes in front of a character within a word, and behind the last one.
    unk, fuse, byte_ids
        As for :class:`~.symbol_bpe.SymbolBPE`.
    whole : bool
        A word that is a token becomes that token whatever the merges say.
    """

    def __init__(
        self,
        tokens: dict[int, str],
        merges: Mapping[tuple[int, int], tuple[int, int]],
        *,
        prefix: str = "",
        suffix: str = "",
        unk: int = -1,
        fuse: bool = False,
        byte_ids: npt.NDArray[np.int32] | None = None,
        whole: bool = False,
    ) -> None:
        check_vocabulary(tokens)
        self._ids = {text: token_id for token_id, text in tokens.items()}
        self._merges = dict(merges)
        self._prefix, self._suffix = prefix, suffix
        self._unk, self._fuse, self._whole = unk, fuse, whole
        self._byte_ids: list[int] | None = None if byte_ids is None else byte_ids.tolist()
        self._known: dict[bytes, list[tuple[int, int, int]]] = {}

    def merges(self) -> list[tuple[int, int]]:
        """The left and the right token of each merge, lowest rank first."""
        return sorted(self._merges, key=lambda pair: self._merges[pair][0])

    def without(self, ids: npt.NDArray[np.int64]) -> SpelledBPE:
        gone = frozenset(ids.tolist())
        other = copy(self)
        other._ids = {text: token_id for text, token_id in self._ids.items() if token_id not in gone}
        other._merges = {
            pair: made for pair, made in self._merges.items() if gone.isdisjoint(pair) and made[1] not in gone
        }
        other._known = {}
        return other

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_known": {}}

    def encode(self, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        raw = data.tobytes()
        rows: list[tuple[int, int, int]] = []
        begin = 0
        for end in ends.tolist():
            word = raw[begin:end]
            found = self._known.get(word)
            if found is None:
                found = self._tokens_of(word.decode())
                if len(word) <= _LONGEST_REMEMBERED:
                    if len(self._known) >= _REMEMBERED:
                        self._known.clear()
                    self._known[word] = found
            rows += [(token, begin + first, begin + last) for token, first, last in found]
            begin = end
        return np.array(rows, dtype=np.int32).reshape(-1, 3)

    def _tokens_of(self, word: str) -> list[tuple[int, int, int]]:
        """Id, begin and end in bytes of the tokens of one word."""
        size = len(word.encode())
        if self._whole and word in self._ids:
            return [(self._ids[word], 0, size)]
        found: list[tuple[int, int, int]] = []
        place = 0
        for token, length in self._merged(self._symbols(word)):
            # What a prefix or a suffix adds covers nothing of the word.
            found.append((token, min(place, size - 1), min(place + length, size)))
            place += length
        return found

    def _symbols(self, word: str) -> list[Symbol]:
        symbols: list[Symbol] = []
        unknown = 0
        for place, char in enumerate(word):
            spelled = self._prefix + char if place else char
            if place == len(word) - 1:
                spelled += self._suffix
            token = self._ids.get(spelled)
            if token is not None:
                if unknown:
                    symbols.append((self._unk, unknown))
                    unknown = 0
                symbols.append((token, len(char.encode())))
            elif self._byte_ids is not None and min(self._byte_ids[byte] for byte in spelled.encode()) >= 0:
                symbols += [(self._byte_ids[byte], 1) for byte in spelled.encode()]
            elif self._unk >= 0:
                if unknown and not self._fuse:
                    symbols.append((self._unk, unknown))
                    unknown = 0
                unknown += len(char.encode())
        if unknown:
            symbols.append((self._unk, unknown))
        return symbols

    def _merged(self, symbols: list[Symbol]) -> list[Symbol]:
        ids = [token for token, _ in symbols]
        lengths = [length for _, length in symbols]
        after = [*range(1, len(ids)), -1]
        before = list(range(-1, len(ids) - 1))
        waiting: list[tuple[int, int, int]] = []

        def offer(left: int) -> None:
            right = after[left] if left >= 0 else -1
            made = self._merges.get((ids[left], ids[right])) if right >= 0 else None
            if made is not None:
                waiting.append((made[0], left, made[1]))

        for left in range(len(ids) - 1):
            offer(left)
        heapify(waiting)
        gone = [False] * len(ids)
        while waiting:
            _, left, merged = heappop(waiting)
            right = -1 if gone[left] else after[left]
            if right < 0:
                continue
            made = self._merges.get((ids[left], ids[right]))
            if made is None or made[1] != merged:  # a pair that is there no more
                continue
            ids[left] = merged
            lengths[left] += lengths[right]
            gone[right] = True
            after[left] = after[right]
            if after[left] >= 0:
                before[after[left]] = left
            for place in (before[left], left):
                size = len(waiting)
                offer(place)
                if len(waiting) > size:
                    heappush(waiting, waiting.pop())
        return [(ids[place], lengths[place]) for place in range(len(ids)) if not gone[place]]
