"""From a row of logits to the next step: a token is drawn, and drawn again if the budget has no room for it."""

from __future__ import annotations

from contextlib import nullcontext
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.errors import ConstrainError
from constrain.generation.row import Row, Step
from constrain.sampling import Sampler


def draw(
    row: Row, logits: Any, mask: NDArray[np.int32] | None, sampler: Sampler, log_probabilities: int | None
) -> Step | None:
    """Draw a token and go on with it; None where that was the end and nothing was held back.

    ``mask``, int32[words], is what the grammar allows, the same for every budget; it may be overwritten.  The budget is
    asked about the token that was drawn.  One that it refuses is drawn again from the mask of the budget, so that the
    chance of each token is what it would have been with that mask from the start (but for top-k and top-p, which first
    cut among more tokens).  Where the grammar gives a temperature, that is drawn with.

    Raises
    ------
    ConstrainError
        There are too few logits, or no token can be drawn from them.
    """
    if np.ndim(logits) == 1 and len(logits) < row.vocabulary_size:
        raise ConstrainError(
            f"the model has logits for {len(logits)} tokens, but the vocabulary has {row.vocabulary_size}"
        )
    temperature = None if row.scout is None else row.scout.temperature
    log_probability: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    while True:
        with nullcontext() if temperature is None else sampler.at_temperature(temperature):
            if log_probabilities is None:
                token = sampler.sample(logits, mask, row.context)
            else:
                sample = sampler.sample_with_log_probabilities(logits, mask, row.context, log_probabilities)
                token, log_probability, top = sample.token_id, sample.log_probability, sample.top
        if row.accept(token):
            return row.step(token, log_probability, top)
        assert mask is not None
        before = mask.copy()
        start = perf_counter()
        row.fill_budget_mask(mask.reshape(1, -1))
        seconds = perf_counter() - start
        # The caller takes all the time that passes here for drawing.
        row.statistics.mask_seconds += seconds
        row.statistics.sample_seconds -= seconds
        if np.array_equal(mask, before):
            raise AssertionError(f"the mask allows token {token}, but the matcher refuses it")
