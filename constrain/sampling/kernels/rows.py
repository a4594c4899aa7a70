"""The jitted half of the sampler: from rows of logits and masks to candidates, and to one token each.

Nothing is sorted as a whole: top-k keeps a heap of ``k`` candidates, top-p takes candidates off a
heap until it has enough.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from constrain.sampling.kernels.arithmetic import exp_not_positive, uniform
from constrain.sampling.kernels.best_tokens import collect
from constrain.sampling.kernels.heaps import heapify, sift_down
from constrain.sampling.kernels.jit import njit_entry, njit_inner
from constrain.sampling.kernels.layout import MIN_P, TEMPERATURE, TOP_K, TOP_P, TYPICAL
from constrain.sampling.kernels.nucleus import leave_out_tail, weigh
from constrain.sampling.kernels.penalties import touch
from constrain.sampling.kernels.typical import keep_typical
from constrain.sampling.kernels.whole_row import draw_of_all

# Below that a heap of all candidates costs less than finding out which are needed.
_LONG = 512


@njit_entry(
    "int64(float32[::1], int32[::1], float64[::1], int32[::1], float32[::1], float32[::1], int32[::1], int32[::1],"
    " float64[::1])"
)
def candidates(
    logits: Any,
    mask: Any,
    options: Any,
    touched_ids: Any,
    touched_values: Any,
    values: Any,
    ids: Any,
    kept_ids: Any,
    kept_weights: Any,
) -> Any:
    """The tokens that may be drawn and how likely each is, relative to the others.

    Parameters
    ----------
    logits : float32[n]
        Read only.
    mask : int32[words]
        Bit ``i % 32`` of word ``i // 32`` allows token ``i``.  Tokens past its end are not allowed.
    options : float64[OPTIONS]
        As :class:`~constrain.sampling.sampler.Sampler` has them, checked.
    touched_ids, touched_values : int32[t], float32[t]
        The result of :func:`touch`; ``mask`` is then its ``own_mask``.
    values, ids : float32[m], int32[m]
        Scratch.  ``m`` is ``top_k`` if that is set, 1 at temperature 0, else at least ``n``.
    kept_ids, kept_weights : int32[m], float64[m]
        Result: token ids and their weights (positive or 0, not normalised).  With typical: the most typical first.
        Else best first, equal logits by id, if top-k or top-p is set.  Else by id, the touched ones last.

    Returns
    -------
    int64
        Number of candidates, or one of the negative statuses above.
    """
    temperature = options[TEMPERATURE]
    top_k = np.int64(options[TOP_K])
    top_p = options[TOP_P]
    if temperature == 0.0:
        count = collect(logits, mask, 1, values, ids, touched_ids, touched_values)
        if count > 0:
            kept_ids[0] = ids[0]
            kept_weights[0] = 1.0
        return count
    ordered = top_k > 0 or top_p < 1.0
    k = top_k if 0 < top_k < len(logits) else len(logits)
    count = collect(logits, mask, k, values, ids, touched_ids, touched_values)
    if count <= 0:
        return count

    highest = values[0]
    for i in range(1, count):
        if values[i] > highest:
            highest = values[i]
    best = np.float64(highest)
    if ordered:
        total = 0.0
        if top_p < 1.0:
            total = weigh(values[:count], best, temperature, kept_weights[:count])
            if count > _LONG:
                count = leave_out_tail(values[:count], ids[:count], kept_weights[:count], top_p * total)
        heapify(values, ids, count, True)
        end = count
        kept = 0
        mass = 0.0
        while end > 0 and (top_p == 1.0 or mass < top_p * total or kept == 0):
            kept_ids[kept] = ids[0]
            kept_weights[kept] = exp_not_positive((np.float64(values[0]) - best) / temperature)
            if kept_weights[kept] < options[MIN_P]:
                break  # and so are all that follow
            mass += kept_weights[kept]
            kept += 1
            end -= 1
            values[0] = values[end]
            ids[0] = ids[end]
            sift_down(values, ids, 0, end, True)
    elif options[MIN_P] == 0.0:
        # All of them stay, and vector instructions weigh them.
        weigh(values[:count], best, temperature, kept_weights[:count])
        for i in range(count):
            kept_ids[i] = ids[i]
        kept = count
    else:
        kept = 0
        # A bound that is surely low enough, so that most exponentials need not be worked out.
        floor = -np.inf
        if options[MIN_P] > 0.0:
            floor = best + temperature * (math.log(options[MIN_P]) - 1e-6)
        for i in range(count):
            if values[i] < floor:
                continue
            weight = exp_not_positive((np.float64(values[i]) - best) / temperature)
            if weight >= options[MIN_P]:
                kept_ids[kept] = ids[i]
                kept_weights[kept] = weight
                kept += 1
    if options[TYPICAL] < 1.0:
        logarithms = np.empty(kept, dtype=np.float64)
        if not ordered and options[MIN_P] == 0.0:
            for i in range(kept):
                logarithms[i] = (np.float64(values[i]) - best) / temperature
        else:
            for i in range(kept):
                logarithms[i] = math.log(kept_weights[i]) if kept_weights[i] > 0.0 else -np.inf
        return keep_typical(kept, kept_ids, kept_weights, logarithms, options[TYPICAL])
    return kept


@njit_inner("int64(int64, int32[::1], float64[::1], uint64[::1])")
def draw(count: Any, kept_ids: Any, kept_weights: Any, state: Any) -> Any:
    """One of the first ``count`` ids, each as likely as its weight (the result of :func:`candidates`)."""
    if count == 1:
        return kept_ids[0]
    total = 0.0
    for i in range(count):
        total += kept_weights[i]
    target = uniform(state) * total
    mass = 0.0
    chosen = 0
    for i in range(count):
        if kept_weights[i] > 0.0:
            chosen = i
            mass += kept_weights[i]
            if target < mass:
                break
    return kept_ids[chosen]


@njit_entry(
    "int64(float32[:, ::1], int32[:, ::1], int32[::1], int64[::1], int32[::1], float64[::1], float64[::1], int32[::1],"
    " int32[::1], int32[::1], float32[::1], float32[::1], int32[::1], int32[::1], float64[::1],"
    " uint64[::1], int64[::1])"
)
def sample_rows(
    logits: Any,
    masks: Any,
    history: Any,
    history_starts: Any,
    bias_ids: Any,
    bias_values: Any,
    options: Any,
    place: Any,
    own_mask: Any,
    touched_ids: Any,
    touched_values: Any,
    values: Any,
    ids: Any,
    kept_ids: Any,
    kept_weights: Any,
    states: Any,
    out: Any,
) -> Any:
    """One token for each row.

    Parameters
    ----------
    logits : float32[rows, n]
    masks : int32[rows, words] or int32[1, words]
        One row for all, or one for each.
    history, history_starts : int32[], int64[rows + 1]
        Row ``r`` has ``history[history_starts[r]:history_starts[r + 1]]``.
    states : uint64[rows]
        The random streams, advanced in place.
    out : int64[rows]
        Result: token ids.  In a row that fails, the status.

    The others are those of :func:`touch` and :func:`candidates`.

    Returns
    -------
    int64
        The number of rows done; fewer than there are if one fails.
    """
    nothing_cut = (
        options[TEMPERATURE] > 0.0
        and options[TOP_K] == 0.0
        and options[TOP_P] == 1.0
        and options[MIN_P] == 0.0
        and options[TYPICAL] == 1.0
    )
    for row in range(len(logits)):
        mask = masks[row if len(masks) > 1 else 0]
        window = history[history_starts[row] : history_starts[row + 1]]
        touched = 0
        if len(window) > 0 or len(bias_ids) > 0:
            touched = touch(
                logits[row],
                mask,
                window,
                bias_ids,
                bias_values,
                options,
                place,
                own_mask,
                touched_ids,
                touched_values,
            )
            if touched < 0:
                out[row] = touched
                return row
            mask = own_mask
        if nothing_cut:
            drawn = draw_of_all(
                logits[row],
                mask,
                options[TEMPERATURE],
                touched_ids[:touched],
                touched_values[:touched],
                states[row : row + 1],
            )
            out[row] = drawn
            if drawn < 0:
                return row
            continue
        count = candidates(
            logits[row],
            mask,
            options,
            touched_ids[:touched],
            touched_values[:touched],
            values,
            ids,
            kept_ids,
            kept_weights,
        )
        if count < 0:
            out[row] = count
            return row
        out[row] = draw(count, kept_ids, kept_weights, states[row : row + 1])
    return len(logits)
