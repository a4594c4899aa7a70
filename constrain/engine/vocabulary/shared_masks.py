"""What the grammars of a vocabulary have in common: lexer masks, and the tokens of star closures by repetitions.

The vocabulary only keeps it, as long as it lives and on disk.  Those who write and read it know what it means
(masks/fast/shared_masks.py, masks/fast/repetitions.py).
"""

from __future__ import annotations

import threading
import weakref

import numpy as np

from constrain.engine.storage import schemas
from constrain.engine.storage.packed_arrays import Array
from constrain.engine.vocabulary.bitmasks import words_for
from constrain.engine.vocabulary.files import VocabularyFiles
from constrain.forking import renew_in_child

# By the names that they have on disk.
_KEPT = {
    "counts": schemas.SHARED_COUNTS,
    "prints": schemas.SHARED_PRINTS,
    "hints": schemas.SHARED_HINTS,
    "records": schemas.SHARED_MASKS,
    "dense": schemas.SHARED_DENSE,
    "boundaries": schemas.SHARED_BOUNDARIES,
}


class SharedMasks:
    """The lexer masks that the grammars of a vocabulary share.

    Parameters
    ----------
    size : int
        How many tokens there are.
    files : VocabularyFiles
        Where they are read from now, and written to when this goes, at the latest with the interpreter.

    Attributes
    ----------
    tables : dict
        Arrays by slot.  Their pages take memory when they are first written.
    lock : threading.Lock
        Of whoever adds something.  Nobody needs it for reading: what is there never changes.
    """

    def __init__(self, size: int, files: VocabularyFiles) -> None:
        words = words_for(size)
        self._counts = np.zeros(3, np.int64)
        self._counted = np.zeros(schemas.MOST_SHARED, np.int32)
        self.tables: dict[int, Array] = {
            schemas.SHARED_COUNTS: self._counts,
            schemas.SHARED_PRINTS: np.zeros(2 * schemas.MOST_SHARED, np.int64),
            schemas.SHARED_HINTS: np.zeros(schemas.MOST_SHARED, np.int64),
            schemas.SHARED_MASKS: np.zeros(2 * schemas.MOST_SHARED, np.int32),
            schemas.SHARED_DENSE: np.empty(schemas.MOST_SHARED * words, np.int32),
            schemas.SHARED_BOUNDARIES: np.empty(2 * schemas.MOST_SHARED_BOUNDARIES, np.int32),
            schemas.SHARED_COUNTED: self._counted,
            schemas.SHARED_BY_REPETITIONS: np.empty(schemas.COUNTED_CLOSURES * size, np.int32),
            schemas.SHARED_MORE_THAN: np.empty(schemas.COUNTED_CLOSURES * schemas.COUNTED_PLACES, np.int32),
        }
        self.lock = threading.Lock()
        renew_in_child(self)
        kept = {name: self.tables[slot] for name, slot in _KEPT.items()}
        files.load_masks(kept)
        weakref.finalize(self, files.save_masks, kept, words)

    def _renew_after_fork(self) -> None:
        # What another thread was adding is not counted yet, and so not there.
        self.lock = threading.Lock()

    def __len__(self) -> int:
        return int(self._counts[0])

    def add(self) -> None:
        """Let all see the lexer mask that has been written behind the others.  The caller holds the lock."""
        self._counts[0] += 1

    def clear(self) -> None:
        """Forget all, also what was read from disk.  No grammar that has read it may be used any more."""
        self._counts[:] = 0
        self._counted[:] = 0

    def can_count(self) -> bool:
        """Whether there is room for the tokens of another star closure, sorted by repetitions."""
        return bool(self._counts[2] < schemas.COUNTED_CLOSURES)

    def is_counted(self, entry: int) -> bool:
        """Whether the tokens of a shared star closure have been sorted, or cannot be."""
        return bool(self._counted[entry])

    def set_counted(self, entry: int, is_sorted: bool) -> None:
        """Let all see that the tokens of a star closure are sorted, or cannot be.  The caller holds the lock."""
        if is_sorted:
            self._counts[2] += 1
        self._counted[entry] = self._counts[2] if is_sorted else -1
