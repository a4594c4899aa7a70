"""What may come next at a matcher, in tokens: how many, which, and which of them a model likes best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask, ids_in_mask
from constrain.errors import ConstrainError
from constrain.tokenizers.base import Tokenizer

Ids = NDArray[np.int64]
Probabilities = NDArray[np.float64]


@dataclass(frozen=True)
class RankedToken:
    """A token that is allowed, and its probability among those that are (None without a model)."""

    id: int
    probability: float | None = None


def first_ids(tokenizer: Tokenizer) -> list[int]:
    """What stands in front of a text for a model: its beginning-of-text token, or where it has none an end token."""
    return tokenizer.encode("", add_special_tokens=True).ids[:1] or list(tokenizer.eos_ids[:1])


def allowed_tokens(matcher: Matcher) -> Ids:
    """The tokens that may come next: int64[n], increasing."""
    mask = allocate_token_bitmask(1, matcher.compiled.vocabulary.size)
    matcher.fill_next_token_bitmask(mask)
    return ids_in_mask(mask[0])


def probabilities(ids: Ids, logits: Any) -> Probabilities:
    """What a model gives each of some tokens, among them alone: float64[n].

    Parameters
    ----------
    ids : int64[n]
        The tokens that are allowed, increasing.
    logits : float[vocab_size]
        What the model says of every token; only the allowed ones count.

    Raises
    ------
    ConstrainError
        If there are fewer logits than tokens, or none of them is finite.
    """
    scores = np.asarray(logits, np.float64)
    if scores.ndim != 1 or (len(ids) and len(scores) <= ids[-1]):
        raise ConstrainError(f"the model has logits for {scores.size} tokens, which are too few for this vocabulary")
    scores = scores[ids]
    if len(ids) and not np.isfinite(scores.max()):
        raise ConstrainError("the model rules out all tokens that are allowed here")
    weights = np.exp(scores - scores.max(initial=-np.inf))
    return cast(Probabilities, weights / weights.sum())


def rank(ids: Ids, shares: Probabilities | None, most: int) -> list[RankedToken]:
    """The first ``most`` of some tokens: the most likely first (equal ones by id), or by id if ``shares`` is None."""
    if shares is None:
        return [RankedToken(int(token)) for token in ids[:most]]
    order = np.argsort(-shares, kind="stable")[:most]
    return [RankedToken(int(ids[i]), float(shares[i])) for i in order]
