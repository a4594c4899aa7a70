"""Constrained decoding in ``mlx-lm``: a logits processor for ``generate``, ``stream_generate`` and ``generate_step``.

::

    processor = ConstrainLogitsProcessor(compiled_grammar, max_new_tokens=200)
    generate(model, tokenizer, prompt, max_tokens=200, logits_processors=[processor])

Generation ends with one of mlx-lm's own end tokens, ``tokenizer.eos_token_ids``, which the vocabulary should have.

mlx-lm hands a processor the tokens so far, and nothing about whose they are.  With a draft model they go back to where
a draft differed, and the rows of a batch share the processors.  So what is kept is kept by the tokens themselves: the
place after them is one token further than that after all but the last of them.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import Any

import numpy as np

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.errors import ConstrainError
from constrain.integrations.follower import Follower

try:
    import mlx.core as mx
except ImportError as error:
    raise ConstrainError("constrain.integrations.mlx_lm needs mlx: pip install mlx-lm") from error


_KEPT = 512
"""Places that are kept: as many as a batch has rows, or a draft tokens, and more."""

_DROPPED = 16 * _KEPT
"""Digests of places that were dropped, so that the next token of one is not taken for a new text."""


class ConstrainLogitsProcessor:
    """Sets the logits of tokens that the grammar forbids to -inf: for one generation after the other, for all rows of a
    batch of at most 512, and with a draft model.

    Give a prompt that goes on from another one (by one token, or by what was generated there) a processor of its own,
    or call :meth:`reset` in front of it: its end would be taken for what is generated.

    Parameters
    ----------
    compiled : CompiledGrammar
    max_new_tokens : int, optional
        How many tokens are made at most (``max_tokens`` of ``generate()``), so that the text is complete by then.

    Attributes
    ----------
    follower : Follower or None
        Where the last call was; ``follower.matcher.is_accepting()`` says whether its text is complete.

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
        # By a digest of the tokens, so that long prompts take no room; what was used last comes last.
        self._places: OrderedDict[bytes, Follower] = OrderedDict()
        self._dropped: OrderedDict[bytes, None] = OrderedDict()

    def reset(self) -> None:
        """Begin anew with the next call; a call that does not go on from an earlier one does so by itself."""
        self.follower = None
        self._places.clear()
        self._dropped.clear()

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """The logits, float[1, n], with -inf for what may not come next after ``tokens``, int[width].

        ``n`` is at least the size of the vocabulary; what lies behind it gets -inf.  After an end token all are as they
        were.

        Raises
        ------
        ConstrainError
            If a token is not what the grammar allows: somebody has changed the logits behind this processor.  And if
            there are more texts at a time than it follows.
        """
        ids = tokens.tolist()
        digest = blake2b(np.array(ids[:-1], np.int64).tobytes(), digest_size=16)
        behind = digest.digest()
        before = self._places.get(behind)
        digest.update(np.array(ids[-1:], np.int64).tobytes())
        here = digest.digest()
        follower = self._places.get(here)
        if follower is None and before is None and behind in self._dropped:
            raise ConstrainError(
                f"more than {_KEPT} texts at a time, or a prompt that goes on from an earlier text: give each batch "
                "or prompt a processor of its own"
            )
        if follower is None:
            follower = Follower(self._compiled, max_tokens=self._max_new_tokens) if before is None else before.fork()
        allowed = follower.allowed(ids, logits.shape[-1])
        self.follower = self._places[here] = follower
        self._places.move_to_end(here)
        while len(self._places) > _KEPT:
            self._dropped[self._places.popitem(last=False)[0]] = None
        while len(self._dropped) > _DROPPED:
            self._dropped.popitem(last=False)
        return mx.where(mx.array(allowed), logits, -mx.inf)
