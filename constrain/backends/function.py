"""Any function from tokens to logits as a backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from constrain.backends.base import Backend
from constrain.backends.options import BackendOptions, refuse
from constrain.errors import ConstrainError
from constrain.tokenizers import load_tokenizer
from constrain.tokenizers.base import Tokenizer


class CallableBackend(Backend):
    """A function behind the interface of a backend.

    Parameters
    ----------
    function : callable
        From a list of token ids to float[n], anything that numpy can read.  It gets everything so far, and keeps
        what it likes of earlier calls.
    tokenizer : Tokenizer, or one of another library
    options : BackendOptions, optional
        Only ``max_seq_len``.

    Raises
    ------
    ConstrainError
        ``function`` cannot be called, or another option is set.  In :meth:`logits`: what it returns is no
        row of at least as many numbers as the tokenizer has tokens.
    """

    name = "callable"

    def __init__(
        self, function: Callable[[list[int]], Any], tokenizer: Tokenizer | Any, options: BackendOptions | None = None
    ) -> None:
        options = options or BackendOptions()
        refuse(self.name, options, ("max_seq_len",))
        if not callable(function):
            raise ConstrainError(f"a function is needed, not {type(function).__name__}")
        self.tokenizer = tokenizer if isinstance(tokenizer, Tokenizer) else load_tokenizer(tokenizer)
        self.vocab_size = self.tokenizer.vocab_size
        self.max_seq_len = options.max_seq_len
        self._function = function

    def logits(self, ids: Sequence[int]) -> Any:
        row = np.asarray(self._function(list(ids)))
        if row.ndim != 1 or len(row) < self.vocab_size:
            raise ConstrainError(
                f"the model has logits of shape {row.shape}, but the vocabulary has {self.vocab_size} tokens"
            )
        return row
