"""Penalties and biases: the few logits that they change, beside the row, which is never copied.

The tokens that they touch are taken out of a copy of the mask, and put in with their new logits by
the kernels that go through a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.sampling.kernels.jit import njit_entry
from constrain.sampling.kernels.layout import FREQUENCY, NOT_IN_THE_ROW, PRESENCE, REPETITION


@njit_entry(
    "int64(float32[::1], int32[::1], int32[::1], int32[::1], float64[::1], float64[::1], int32[::1], int32[::1],"
    " int32[::1], float32[::1])"
)
def touch(
    logits: Any,
    mask: Any,
    history: Any,
    bias_ids: Any,
    bias_values: Any,
    options: Any,
    place: Any,
    own_mask: Any,
    touched_ids: Any,
    touched_values: Any,
) -> Any:
    """The allowed tokens whose logits penalties and biases change, and their new logits.

    Parameters
    ----------
    logits, mask :
        As for :func:`~.rows.candidates`.
    history : int32[h]
        The tokens that count for penalties; a token may be there several times.
    bias_ids, bias_values : int32[b], float64[b]
        What is added to the logits of some tokens, each there once.
    options : float64[OPTIONS]
    place : int32[n]
        Scratch, all 0 before and after.
    own_mask : int32[words]
        Result: ``mask`` without the touched tokens.
    touched_ids, touched_values : int32[h + b], float32[h + b]
        Result.

    Returns
    -------
    int64
        Number of touched tokens, or NOT_IN_THE_ROW.
    """
    n = len(logits)
    for word in range(len(mask)):
        own_mask[word] = mask[word]
    for ids in (history, bias_ids):
        for token in ids:
            if token < 0 or token >= n:
                return NOT_IN_THE_ROW
    penalised = 0
    for token in history:
        if place[token] == 0:
            touched_ids[penalised] = token
            touched_values[penalised] = 0
            penalised += 1
            place[token] = penalised
        touched_values[place[token] - 1] += 1  # how often, until it is replaced by the logit
    for i in range(penalised):
        value = np.float64(logits[touched_ids[i]])
        value = value / options[REPETITION] if value > 0 else value * options[REPETITION]
        touched_values[i] = value - options[FREQUENCY] * touched_values[i] - options[PRESENCE]
    count = penalised
    for i in range(len(bias_ids)):
        token = bias_ids[i]
        at = place[token] - 1
        if at < 0:
            at = count
            count += 1
            touched_ids[at] = token
            touched_values[at] = logits[token]
        touched_values[at] += bias_values[i]
    kept = 0
    for i in range(count):
        token = touched_ids[i]
        place[token] = 0
        w = token >> 5
        bit = np.int64(1) << (token & 31)
        if w < len(mask) and np.int64(mask[w]) & bit:
            own_mask[w] = np.int32(np.int64(own_mask[w]) & ~bit)
            touched_ids[kept] = token
            touched_values[kept] = touched_values[i]
            kept += 1
    return kept
