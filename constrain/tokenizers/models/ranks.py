"""The merges of vocabularies that come as ranks: rank files and SentencePiece's scores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from constrain.tokenizers.models.rank_kernels import find_pairs_of_ranks


def pairs_of_ranks(
    blob: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int32],
    ids: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The merges that ranks imply: any two tokens whose bytes together are a token.

    ``ids`` are the tokens; for the other arrays see :mod:`constrain.tokenizers.models.bpe_kernels`.

    Returns ``left << 32 | right`` and ``merged << 32 | merged`` for each merge, in the order of ``ids``: int64[k] each.
    """
    room = 4 * len(ids)
    while True:
        keys, values = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        count = find_pairs_of_ranks(blob, starts, ids, slots, keys, values, room)
        if count <= room:
            return keys[:count], values[:count]
        room = count
