"""The kernel of masks/batches.py, which writes the masks of many sequences; in a file that imports kernels only."""

from __future__ import annotations

from constrain.engine.masks.state_masks import write_mask
from constrain.engine.parser.configurations import ENDED, NO_MASK
from constrain.engine.storage.access import context_at, used
from constrain.engine.storage.jit import njit_entry
from constrain.engine.storage.schemas import STATE_HASHES, state_masks
from constrain.kernels.language import int32, int64, uint64


@njit_entry(int64(int64[::1], int64[::1], int64[::1], int32[:, ::1], int64[::1]))
def write_known_masks(contexts, states, rows, out, missing):  # type: ignore[no-untyped-def]
    """Write the masks that are known.

    Parameters
    ----------
    contexts : int64[n]
        Address of each sequence's ``ctx``, whose lock the caller holds.
    states : int64[n]
        State of each sequence; ENDED after an end token, where nothing is allowed.
    rows : int64[n]
        The row of ``out`` for each sequence.
    out : int32[batch, words]
    missing : int64[n]
        Output: the positions whose mask has yet to be computed.

    Returns
    -------
    How many are missing.
    """
    count = 0
    for i in range(len(states)):
        row = out[rows[i]]
        if states[i] == ENDED:
            for j in range(len(row)):
                row[j] = 0
            continue
        ctx = context_at(contexts[i])
        is_lost = uint64(states[i]) >= uint64(used(ctx, STATE_HASHES))
        if is_lost or state_masks(ctx)[states[i]].dense == NO_MASK:
            missing[count] = i
            count += 1
        elif write_mask(ctx, states[i], out, rows[i]) != 0:
            # Part of it depends on the text.
            missing[count] = i
            count += 1
    return count
