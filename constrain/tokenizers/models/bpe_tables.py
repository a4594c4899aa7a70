"""The tables of BPE in which kernels (bpe_kernels.py) look up tokens by their bytes, and merges by their pairs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from constrain.tokenizers.models.bpe_kernels import fill_merges, fill_tokens
from constrain.tokenizers.models.rank_kernels import find_pairs_of_ranks

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


def token_slots(blob: npt.NDArray[np.uint8], starts: Int32s, ids: Int32s) -> tuple[Int32s, int]:
    """The table of some tokens, whose bytes are ``blob[starts[i]:starts[i + 1]]``.

    Returns it, and the first id whose bytes another one before it has too; -1 for none.
    """
    slots = np.full(_table_size(len(ids)), -1, dtype=np.int32)
    return slots, fill_tokens(blob, starts, ids, slots)


def merge_table(keys: Int64s, values: Int64s) -> tuple[Int64s, Int64s]:
    """The table of merges: ``left << 32 | right``, -1 where it is free, and ``rank << 32 | merged``."""
    table = np.full(_table_size(len(keys)), -1, dtype=np.int64)
    table_values = np.zeros(len(table), dtype=np.int64)
    fill_merges(keys, values, table, table_values)
    return table, table_values


def pairs_of_ranks(blob: npt.NDArray[np.uint8], starts: Int32s, ids: Int32s, slots: Int32s) -> tuple[Int64s, Int64s]:
    """The merges that ranks imply, as in rank files: any two tokens whose bytes together are a token.

    ``ids`` are the tokens, and ``slots`` is their table.  Returns ``left << 32 | right`` and ``merged << 32 | merged``
    for each merge, in the order of ``ids``: int64[k] each.
    """
    room = 4 * len(ids)
    while True:
        keys, values = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        count = find_pairs_of_ranks(blob, starts, ids, slots, keys, values, room)
        if count <= room:
            return keys[:count], values[:count]
        room = count


def merges_in(table: Int64s, values: Int64s) -> Int64s:
    """The left and the right token of each merge of a table, lowest rank first: int64[merges, 2]."""
    used = table != -1
    keys = table[used][np.argsort(values[used] >> 32, kind="stable")]
    return np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1)


def slots_without(blob: npt.NDArray[np.uint8], starts: Int32s, slots: Int32s, gone: Int64s) -> Int32s:
    """The table of tokens without some of them."""
    kept = np.sort(slots[slots >= 0])
    return token_slots(blob, starts, kept[~np.isin(kept, gone)])[0]


def merges_without(table: Int64s, values: Int64s, gone: Int64s) -> tuple[Int64s, Int64s]:
    """The table of merges without those that make some tokens."""
    kept = (table != -1) & ~np.isin(values & 0xFFFFFFFF, gone)
    return merge_table(table[kept], values[kept])


def _table_size(count: int) -> int:
    """The smallest power of two that leaves at least a third of a table free."""
    return 1 << max(4, (count * 3 // 2).bit_length())
