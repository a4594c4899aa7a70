"""What is kept on disk about a vocabulary (cache_folder.py): its trie, and the lexer masks that grammars share.

Both are found by content: a hash of the tokens and of the engine's kernels, whose sources decide
what the arrays mean.  So nothing has to be invalidated; files that are no longer used go
(storage/disk_cache.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from constrain.cache_folder import find_in_caches, writable_cache_folder
from constrain.engine.storage import disk_cache
from constrain.engine.storage.packed_arrays import Array
from constrain.engine.vocabulary.trie import TokenTrie
from constrain.kernels.digests import tree_digest
from constrain.kernels.library import loaded

_FORMAT = b"3"
# Smaller vocabularies are built sooner than read.
_SMALLEST = 8192
# Of the lexer masks that a process comes upon, the first are the usual ones: the insides of strings and
# the like.  A limit leaves room for what later processes will find.
_MASKS_KEPT = 64
_ENGINE = Path(__file__).parents[1]


def kernels_digest() -> str:
    """A hash of the sources of the engine's kernels."""
    return tree_digest(_ENGINE) if loaded is None else loaded.digest


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
        self._names: dict[str, str] = {}
        if len(kinds) >= _SMALLEST:
            key = hashlib.blake2b(_FORMAT + kernels_digest().encode(), digest_size=16)
            # Starts are of a known length then, and say how long the others are.
            key.update(len(kinds).to_bytes(8, "little"))
            for array in (starts, data, kinds):
                key.update(array.data)
            self._names = {what: disk_cache.name_of(f"{what}-{key.hexdigest()}") for what in ("trie", "masks")}
        self._masks_loaded = 0

    def _read(self, what: str) -> dict[str, Array] | None:
        path = find_in_caches(self._names[what]) if self._names else None
        return None if path is None else disk_cache.read(path)

    def _write(self, what: str, arrays: Mapping[str, Array]) -> None:
        folder = writable_cache_folder() if self._names else None
        if folder is not None:
            disk_cache.write(folder / self._names[what], arrays)

    def load_trie(self) -> TokenTrie | None:
        """The trie, if it is there."""
        arrays = self._read("trie")
        return None if arrays is None else TokenTrie.from_arrays(arrays)

    def save_trie(self, trie: TokenTrie) -> None:
        """Keep the trie, if that is possible."""
        self._write("trie", trie.arrays())

    def load_masks(self, shared: Mapping[str, Array]) -> None:
        """Fill the vocabulary's tables of shared masks (shared_masks.py), still empty, with those that are there."""
        arrays = self._read("masks")
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
        if not self._names or count <= self._masks_loaded:
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
        self._write("masks", arrays)
