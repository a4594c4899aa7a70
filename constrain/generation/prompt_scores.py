"""How likely a model finds each token of a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from constrain.arguments import check_integer
from constrain.errors import ConstrainError
from constrain.generation.interfaces import Encoder, Model
from constrain.generation.prompts import encode_prompt
from constrain.sampling.arrays import as_floats


@dataclass(frozen=True)
class PromptToken:
    """One token of a prompt.

    Attributes
    ----------
    token_id : int
    log_probability : float or None
        Natural logarithm of the model's probability of this token behind those before it, among all tokens.  None for
        the first token, which nothing precedes.
    top : tuple of (int, float)
        The most likely tokens there and their log-probabilities.
    """

    token_id: int
    log_probability: float | None
    top: tuple[tuple[int, float], ...] = ()


def prompt_log_probabilities(
    model: Model, tokenizer: Encoder, prompt: str | Sequence[int], *, top: int = 0
) -> list[PromptToken]:
    """The log-probabilities of a prompt's tokens, as ``echo`` with ``logprobs`` gives them elsewhere.

    A model with a method ``prompt_logits(ids)`` answers for all places at once (float[len(ids), n], row ``i`` for the
    token after ``ids[: i + 1]``); another one is asked token by token.

    Parameters
    ----------
    model, tokenizer, prompt
        As for :func:`~.loop.generate`.
    top : int
        Give so many of the most likely tokens for each place.

    Raises
    ------
    ConstrainError
        The model's logits are no numbers, are too few, or a token has none.
    """
    if check_integer("top", top) < 0:
        raise ConstrainError(f"top must be 0 or more, not {top}")
    ids = encode_prompt(tokenizer, prompt)
    found = [PromptToken(ids[0], None)] if ids else []
    if len(ids) < 2:
        return found
    several = getattr(model, "prompt_logits", None)
    table = None if several is None else as_floats(several(ids[:-1]))
    for place in range(1, len(ids)):
        row = as_floats(model.logits(ids[:place])) if table is None else table[place - 1]
        found.append(_scored(row.astype(np.float64), ids[place], top))
    return found


def _scored(row: np.ndarray[tuple[int], np.dtype[np.float64]], token: int, top: int) -> PromptToken:
    if row.ndim != 1 or not 0 <= token < len(row):
        raise ConstrainError(f"the model has logits of shape {row.shape}, and the prompt has the token {token}")
    highest = row.max()
    if not np.isfinite(highest):
        raise ConstrainError("the model's logits contain NaN or +inf, or all are -inf")
    values = row - highest - np.log(np.exp(row - highest).sum())
    best = np.argsort(-values, kind="stable")[:top].tolist()
    return PromptToken(token, float(values[token]), tuple((place, float(values[place])) for place in best))
