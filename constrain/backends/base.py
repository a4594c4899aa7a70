"""What every backend is: a model behind one method, with its tokenizer, its cache and its limits."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from constrain.backends.kv_statistics import KVStatistics
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.forking import renew_in_child
from constrain.tokenizers.base import Tokenizer


class Backend(ABC):
    """A language model.  Threads may share one: they take turns.

    Attributes
    ----------
    name : str
        Of the kind of backend, as ``--backend`` has it.
    tokenizer : Tokenizer
    vocab_size : int
        How many logits there are; the tokenizer's, or more.
    max_seq_len : int or None
        The most tokens that prompt and output may have together; None: no limit.
    start_id : int or None
        The token that stands for a context without tokens; None: the model needs none, or has none.
    can_batch : bool
        Whether :meth:`logits_batch` answers for several sequences in one go, and remembers them all.
    """

    name: str
    tokenizer: Tokenizer
    vocab_size: int
    max_seq_len: int | None = None
    start_id: int | None = None
    can_batch: bool = False

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's vocabulary, for a :class:`constrain.GrammarCompiler`; made when first asked for."""
        return Vocabulary.from_tokenizer(self.tokenizer)

    @abstractmethod
    def logits(self, ids: Sequence[int]) -> Any:
        """Unnormalised log-probabilities of the token after ``ids``: float32[vocab_size].

        ``ids`` is everything so far.  What the backend remembers of the last call is used as far as ``ids`` begins the
        same, so going on, going back and starting anew are all right.  The array may be overwritten by
        the next call of the same thread.

        Raises
        ------
        ConstrainError
            There are more tokens than ``max_seq_len``, or the model needs at least one.
        """

    def logits_batch(self, contexts: Sequence[Sequence[int] | None]) -> Any:
        """float32[rows, vocab_size]: :meth:`logits` of each context.

        None stands for a row that is over; its logits are 0.  Only where :attr:`can_batch`.
        """
        raise NotImplementedError(f"the {self.name} backend answers for one sequence at a time")

    def kv_statistics(self) -> KVStatistics | None:
        """What is kept and was forgotten of the last text; None where the backend forgets nothing."""
        return None

    def close(self) -> None:
        """Give memory back now rather than when the object goes."""
        return None


class RememberingBackend(Backend):
    """A backend that keeps what it has computed for the last text, under a lock."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        renew_in_child(self)

    def _renew_after_fork(self) -> None:
        # Another thread may have been in the middle of a text.
        if self._turn.locked():
            self._let_go()
        self._turn = threading.Lock()

    @abstractmethod
    def _let_go(self) -> None:
        """Let go of the last text."""


def common_prefix(known: Sequence[int], wanted: Sequence[int]) -> int:
    """How many tokens two sequences begin with in common."""
    length = min(len(known), len(wanted))
    if known[:length] == wanted[:length]:
        return length
    low, high = 0, length
    # The first half of what is left is the same, or it is not.
    while high - low > 1:
        middle = (low + high) // 2
        if known[low:middle] == wanted[low:middle]:
            low = middle
        else:
            high = middle
    return low if known[low] != wanted[low] else low + 1
