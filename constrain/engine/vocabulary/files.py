"""What is kept on disk about a vocabulary, beside numba's cache: its trie, and the lexer masks that grammars share.

Both are found by content: a hash of the tokens and of the engine's kernels, whose sources decide
what the arrays mean.  So nothing has to be invalidated; files that are no longer used go
(storage/disk_cache.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from constrain.engine.storage import disk_cache
from constrain.engine.storage.disk_cache import Array
from constrain.engine.vocabulary.trie import TokenTrie
from constrain.kernel_cache import cache_folder, tree_digest

_FORMAT = b"3"
# Smaller vocabularies are built sooner than read.
_SMALLEST = 8192
# Of the lexer masks that a process comes upon, the first are the usual ones: the insides of strings and
# the like.  A limit leaves room for what later processes will find.
_MASKS_KEPT = 64
_ENGINE = Path(__file__).parents[1]


class VocabularyFiles:
    """The files of one vocabulary.

    Parameters
    ----------
    data, starts : uint8[n_bytes], int64[n_tokens + 1]
        Token ``i`` is ``data[starts[i]:starts[i + 1]]``.
    kinds : uint8[n_tokens]
        Which tokens are special, and which end a text.
    """

    def __init__(self, data: Array, starts: Array, kinds: Array) -> None:
        self._trie: Path | None = None
        self._masks: Path | None = None
        folder = cache_folder(_ENGINE) if len(kinds) >= _SMALLEST else None
        if folder is not None:
            key = hashlib.blake2b(_FORMAT + tree_digest(_ENGINE).encode(), digest_size=16)
            # Starts are of a known length then, and say how long the others are.
            key.update(len(kinds).to_bytes(8, "little"))
            for array in (starts, data, kinds):
                key.update(array.data)
            self._trie = disk_cache.path_of(folder, f"trie-{key.hexdigest()}")
            self._masks = disk_cache.path_of(folder, f"masks-{key.hexdigest()}")
        self._masks_loaded = 0

    def load_trie(self) -> TokenTrie | None:
        """The trie, if it is there."""
        arrays = disk_cache.read(self._trie) if self._trie is not None else None
        return None if arrays is None else TokenTrie.from_arrays(arrays)

    def save_trie(self, trie: TokenTrie) -> None:
        """Keep the trie, if that is possible."""
        if self._trie is not None:
            disk_cache.write(self._trie, trie.arrays())

    def load_masks(self, shared: Mapping[str, Array], words: int) -> None:
        """Fill the vocabulary's tables of shared masks (shared_masks.py), still empty, with those that are there."""
        arrays = disk_cache.read(self._masks) if self._masks is not None else None
        if arrays is None or arrays.keys() != shared.keys():
            return
        if any(len(array) > len(shared[name]) for name, array in arrays.items()):
            return
        for name, array in arrays.items():
            shared[name][: len(array)] = array
        self._masks_loaded = int(shared["counts"][0])

    def save_masks(self, shared: Mapping[str, Array], words: int) -> None:
        """Keep the first of the shared masks, if there are more of them than were loaded."""
        count = min(int(shared["counts"][0]), _MASKS_KEPT)
        if self._masks is None or count <= self._masks_loaded:
            return
        records = shared["records"][: 2 * count]
        boundaries = int(records[-2] + records[-1])
        counts = shared["counts"].copy()
        counts[:] = count, boundaries, 0
        arrays = {
            "counts": counts,
            "prints": shared["prints"][: 2 * count],
            "hints": shared["hints"][:count],
            "records": records,
            "dense": shared["dense"][: count * words],
            "boundaries": shared["boundaries"][: 2 * boundaries],
        }
        disk_cache.write(self._masks, arrays)
