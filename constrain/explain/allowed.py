"""What may come next at a matcher, in tokens: how many, which, and which of them a model likes best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.engine.bitmask import allocate_token_bitmask
from constrain.engine.matcher import Matcher
from constrain.errors import ConstrainError
from constrain.tokenizers.base import Tokenizer

Ids = NDArray[np.int64]


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


def ids_in_mask(row: NDArray[np.int32]) -> Ids:
    """The tokens of one row of a bitmask: int64[n], increasing."""
    return np.flatnonzero(np.unpackbits(row.astype("<i4").view(np.uint8), bitorder="little"))


def rank(ids: Ids, logits: Any, most: int) -> list[RankedToken]:
    """The first ``most`` of some tokens: the most likely first, or by id if ``logits`` is None.

    Parameters
    ----------
    ids : int64[n]
        The tokens that are allowed.
    logits : float[vocab_size] or None
        What a model says of every token; only the allowed ones count.

    Raises
    ------
    ConstrainError
        If there are fewer logits than tokens, or none of them is finite.
    """
    if logits is None or not len(ids):
        return [RankedToken(int(token)) for token in ids[:most]]
    scores = np.asarray(logits, np.float64)
    if scores.ndim != 1 or len(scores) <= ids[-1]:
        raise ConstrainError(f"the model has logits for {scores.size} tokens, which are too few for this vocabulary")
    scores = scores[ids]
    if not np.isfinite(scores.max()):
        raise ConstrainError("the model rules out all tokens that are allowed here")
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    # Equal ones by id.
    order = np.argsort(-weights, kind="stable")[:most]
    return [RankedToken(int(ids[i]), float(weights[i])) for i in order]
