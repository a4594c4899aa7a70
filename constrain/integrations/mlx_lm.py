"""Constrained decoding in ``mlx-lm``: a logits processor for ``generate``, ``stream_generate`` and ``generate_step``.

::

    processor = ConstrainLogitsProcessor(compiled_grammar, max_new_tokens=200)
    generate(model, tokenizer, prompt, max_tokens=200, logits_processors=[processor])

Generation ends with one of mlx-lm's own end tokens, ``tokenizer.eos_token_ids``, which the vocabulary should have.
"""

from __future__ import annotations

from typing import Any

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.errors import ConstrainError
from constrain.integrations.follower import Follower

try:
    import mlx.core as mx
except ImportError as error:
    raise ConstrainError("constrain.integrations.mlx_lm needs mlx: pip install mlx-lm") from error


class ConstrainLogitsProcessor:
    """Sets the logits of tokens that the grammar forbids to -inf, for one generation after the other.

    Parameters
    ----------
    compiled : CompiledGrammar
    max_new_tokens : int, optional
        How many tokens are made at most (``max_tokens`` of ``generate()``), so that the text is complete by then.

    Attributes
    ----------
    follower : Follower or None
        The generation under way; ``follower.matcher.is_accepting()`` says whether its text is complete.

    Raises
    ------
    ConstrainError
        If the vocabulary has no end token, or ``max_new_tokens`` are too few for any text.
    """

    def __init__(self, compiled: CompiledGrammar, *, max_new_tokens: int | None = None) -> None:
        self._compiled, self._max_new_tokens = compiled, max_new_tokens
        self.follower: Follower | None = None
        # What cannot be met is told here, and not in the middle of a generation.
        Follower(compiled, max_tokens=max_new_tokens)
        self._ids: list[int] = []

    def reset(self) -> None:
        """Begin anew with the next call; a call that does not go on from the last one does so by itself."""
        self.follower, self._ids = None, []

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """The logits, float[1, n], with -inf for what may not come next after ``tokens``, int[width].

        ``n`` is at least the size of the vocabulary; what lies behind it gets -inf.  After an end token all are as they
        were.

        Raises
        ------
        ConstrainError
            If a token is not what the grammar allows: somebody has changed the logits behind this processor.
        """
        ids = tokens.tolist()
        # A generation goes on by one token.
        if self.follower is None or ids[:-1] != self._ids:
            self.follower = Follower(self._compiled, max_tokens=self._max_new_tokens)
        self._ids = ids
        allowed = self.follower.allowed(ids, logits.shape[-1])
        return mx.where(mx.array(allowed), logits, -mx.inf)
