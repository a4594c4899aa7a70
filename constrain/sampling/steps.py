"""Each step of the chain alone: from a row of logits to a row of logits, float32[n] as a new array.

What a step rules out becomes -inf.  :class:`~constrain.sampling.sampler.Sampler` does the same in one
pass over the row, or over the allowed tokens; these are for looking at one step, for other orders,
and for other samplers.  They run the sampler's own kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.arguments import check_integer
from constrain.errors import ConstrainError
from constrain.sampling.arrays import as_doubles, as_floats
from constrain.sampling.sampler import Sampler

Row = NDArray[np.float32]


def repetition_penalty(logits: Any, history: Sequence[int], penalty: float, window: int = 0) -> Row:
    """``x / penalty`` if ``x > 0``, else ``x * penalty``, for the last ``window`` tokens (0: all) of ``history``.

    Keskar et al., "CTRL: A conditional transformer language model" (2019); the two cases are transformers'.
    """
    sampler = Sampler(1.0, 0, 1.0, 0, repetition_penalty=penalty, repetition_window=window)
    return sampler.adjusted_logits(logits, history)


def frequency_presence_penalty(
    logits: Any, history: Sequence[int], frequency: float = 0.0, presence: float = 0.0, window: int = 0
) -> Row:
    """``x - frequency * times - presence`` for the tokens of the last ``window`` (0: all) of ``history``."""
    sampler = Sampler(1.0, 0, 1.0, 0, frequency_penalty=frequency, presence_penalty=presence, repetition_window=window)
    return sampler.adjusted_logits(logits, history)


def logit_bias(logits: Any, bias: Mapping[int, float]) -> Row:
    """``x + bias[token]``."""
    return Sampler(1.0, 0, 1.0, 0, logit_bias=bias).adjusted_logits(logits)


def temperature(logits: Any, temperature: float) -> Row:
    """``x / temperature``; at 0 only the highest logit stays, the first one among equals."""
    if temperature == 0:
        return _survivors(logits, Sampler(0.0, 0, 1.0, 0))
    Sampler(temperature, 0, 1.0, 0)  # checks the range
    row = as_floats(logits)
    with np.errstate(over="ignore"):
        out: Row = (row.astype(np.float64) / temperature).astype(np.float32)
        if not np.isfinite(row.max()) or np.isfinite(out.max()):
            return out
        # Out of range: the highest is taken as 0, which leaves the probabilities as they are.
        out = ((row.astype(np.float64) - row.max()) / temperature).astype(np.float32)
    return out


def top_k(logits: Any, k: int) -> Row:
    """The ``k`` highest stay, among equals those with lower ids; 0: all.

    (transformers keeps all that equal the ``k``-th.)
    """
    return _survivors(logits, Sampler(1.0, k, 1.0, 0))


def top_p(logits: Any, p: float) -> Row:
    """The fewest tokens stay, most likely first, whose probabilities add up to at least ``p``.

    Holtzman et al., "The curious case of neural text degeneration" (2020).
    """
    return _survivors(logits, Sampler(1.0, 0, p, 0))


def min_p(logits: Any, p: float) -> Row:
    """The tokens stay that are at least ``p`` times as likely as the most likely one.

    Nguyen et al., "Turning up the heat: min-p sampling" (2024).
    """
    return _survivors(logits, Sampler(1.0, 0, 1.0, 0, min_p=p))


def typical(logits: Any, mass: float) -> Row:
    """The fewest tokens stay, those with ``-log p`` nearest to the entropy first, that add up to ``mass``.

    Meister et al., "Locally typical sampling" (2023).
    """
    return _survivors(logits, Sampler(1.0, 0, 1.0, 0, typical=mass))


def softmax(logits: Any) -> NDArray[np.float64]:
    """``exp(x - max) / sum``: probabilities, float64[n]."""
    row = as_floats(logits)
    ids, probabilities = Sampler(1.0, 0, 1.0, 0).distribution(row)
    out = np.zeros(row.shape, dtype=np.float64)
    out[ids] = probabilities
    return out


def multinomial(probabilities: Any, seed: int, draws: int = 1) -> NDArray[np.int64]:
    """Draw ids in proportion to ``probabilities`` (any positive scale), with replacement: int64[draws]."""
    if check_integer("draws", draws) < 0:
        raise ConstrainError(f"draws must be 0 or more, not {draws}")
    weights = as_doubles(probabilities)
    if weights.ndim != 1 or not (weights >= 0).all() or not np.isfinite(weights).all():
        raise ConstrainError("probabilities must be one row of finite numbers from 0 up")
    with np.errstate(divide="ignore"):
        logits = np.log(weights)
    sampler = Sampler(1.0, 0, 1.0, seed)
    return np.array([sampler.sample(logits) for _ in range(draws)], dtype=np.int64)


def _survivors(logits: Any, sampler: Sampler) -> Row:
    row = as_floats(logits)
    ids, _ = sampler.distribution(row)
    out = np.full(row.shape, -np.inf, dtype=np.float32)
    out[ids] = row[ids]
    return out
