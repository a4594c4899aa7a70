"""What the loop asks of a model and of a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from constrain.engine.vocabulary.encoder import Encoder

__all__ = ["BatchModel", "Encoder", "Model"]


class Model(Protocol):
    """Anything that says how likely each token is to come next.

    A model may have more attributes: ``max_seq_len``, the most tokens that prompt and output may have together (None:
    no limit); ``start_id``, the token that stands for an empty prompt; ``logits_batch`` (see :class:`BatchModel`), with
    ``can_batch`` to say that it is not to be used.
    """

    def logits(self, ids: Sequence[int]) -> Any:
        """Unnormalised log-probabilities, float[n], of the token after ``ids``.

        ``n`` is at least the size of the vocabulary; what is beyond it is never drawn.  What is returned
        may be overwritten by the next call.  ``ids`` may grow afterwards, so a model that remembers them copies them.
        """
        ...


class BatchModel(Model, Protocol):
    """A model that answers for several sequences at once."""

    def logits_batch(self, contexts: Sequence[Sequence[int] | None]) -> Any:
        """float[rows, n]: :meth:`Model.logits` of each context; None stands for a row that is over, of any logits."""
        ...
