"""One sequence of an inference engine that calls back with all token ids so far, as most of them do.

An engine's logits processor is called once per token with the ids and a row of logits.  What it is not told is which
of the ids are new, and where the prompt ends.  A :class:`Follower` keeps that, so that a hook for an engine is a few
lines (``docs/integrations.md`` has them).  It imports no engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.arguments import check_integer
from constrain.engine.compiled_grammar import CompiledGrammar, check_compiled
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.applying import apply_token_bitmask_inplace
from constrain.engine.vocabulary.bitmasks import Bitmask, allocate_token_bitmask
from constrain.errors import ConstrainError

_ANOTHER = "a sequence that goes back, or another one, needs a Follower of its own"


class Follower:
    """Follows one sequence from call to call.

    Parameters
    ----------
    compiled : CompiledGrammar
    prompt_tokens : int, optional
        How many of the ids are the prompt, about which the grammar says nothing.  By default as many as there are in
        the first call; 0 for an engine that hands over the generated ids alone.
    max_tokens : int, optional
        How many tokens the engine makes at most, so that the text is complete by then (``Matcher``).

    Attributes
    ----------
    matcher : Matcher
        Where the sequence is; ``matcher.is_accepting()`` says whether it is complete.
    error : ConstrainError or None
        The last one that :meth:`apply` has raised, for engines that go on after an exception.

    Raises
    ------
    ConstrainError
        If the vocabulary has no end token, so that no sequence could end, ``prompt_tokens`` is negative or no integer,
        or ``max_tokens`` are too few for any text.
    TypeError
        If ``compiled`` is no compiled grammar.
    """

    def __init__(
        self, compiled: CompiledGrammar, prompt_tokens: int | None = None, *, max_tokens: int | None = None
    ) -> None:
        check_compiled(compiled, "Follower()")
        if not compiled.vocabulary.eos_ids:
            raise ConstrainError("the vocabulary has no end token, so that no sequence could end")
        if prompt_tokens is not None and check_integer("prompt_tokens", prompt_tokens) < 0:
            raise ConstrainError(f"prompt_tokens must be 0 or more, not {prompt_tokens}")
        self.matcher = Matcher(compiled, max_tokens)
        self.error: ConstrainError | None = None
        self._mask = allocate_token_bitmask(1, compiled.vocabulary.size)
        self._begin = prompt_tokens
        # What was accepted.
        self._seen: list[int] = []

    def fork(self) -> Follower:
        """Another one at the same place, which goes its own way from there."""
        other = copy(self)
        other.matcher = self.matcher.fork()
        other._mask = self._mask.copy()
        other._seen = self._seen.copy()
        return other

    def mask(self, ids: Sequence[int] | NDArray[np.integer]) -> Bitmask | None:
        """The tokens that may come next: int32[1, words], written over by the next call; None after an end token.

        Parameters
        ----------
        ids : sequence of int
            All ids so far, not only the new ones.

        Raises
        ------
        ConstrainError
            If a new id is not what the grammar allows (the engine did not apply the mask), generated ids that were
            there are gone, or others, or there is a row of ids in place of an id.  The sequence stays where it was.
        """
        if getattr(ids, "ndim", 1) != 1 or (len(ids) and np.ndim(ids[0])):
            raise ConstrainError("the ids must be those of one sequence, without a dimension for a batch")
        if self._begin is None:
            self._begin = len(ids)
        count = self._begin + len(self._seen)
        if len(ids) < count:
            raise ConstrainError(f"there were {count} ids and now there are {len(ids)}: {_ANOTHER}")
        before = ids[self._begin : count]
        before = before.tolist() if isinstance(before, np.ndarray) else list(before)
        if before != self._seen:
            place = next(i for i, token in enumerate(before) if token != self._seen[i])
            raise ConstrainError(
                f"generated token {place} was {self._seen[place]} and now it is {before[place]}: {_ANOTHER}"
            )
        self._accept([check_integer("a token id", token) for token in ids[count:]])
        if self.matcher.is_terminated():
            return None
        self.matcher.fill_next_token_bitmask(self._mask)
        return self._mask

    def _accept(self, tokens: list[int]) -> None:
        """Go on with new tokens, as far as the first end token."""
        begin = len(self._seen)
        try:
            for token in tokens:
                if self.matcher.is_terminated():
                    break
                if not self.matcher.accept_token(token):
                    raise ConstrainError(
                        f"generated token {len(self._seen)} has the id {token}, which the grammar does not allow there"
                    )
                self._seen.append(token)
        except BaseException:
            self.matcher.rollback(len(self._seen) - begin)
            del self._seen[begin:]
            raise

    def apply(self, ids: Sequence[int] | NDArray[np.integer], logits: Any) -> Any:
        """Set the logits of what may not come next to -inf, in place, and return them.

        ``logits`` is a numpy array or torch tensor, float[vocab] or float[1, vocab], on any device.  After an end
        token they stay as they are: what comes then is padding.  Errors are those of :meth:`mask`, and one of more than
        one row, or of fewer logits than there are tokens.  After an error only the end tokens are left, since
        llama-cpp-python prints what a processor raises and goes on with the logits as they are.
        """
        try:
            return self._apply(ids, logits)
        except BaseException as error:
            self.error = error if isinstance(error, ConstrainError) else None
            self._leave_the_end(logits)
            raise

    def _leave_the_end(self, logits: Any) -> None:
        shape = tuple(getattr(logits, "shape", ()))
        if shape:
            logits[...] = -np.inf
            logits[..., [token for token in self.matcher.compiled.vocabulary.eos_ids if token < shape[-1]]] = 0.0

    def _apply(self, ids: Sequence[int] | NDArray[np.integer], logits: Any) -> Any:
        shape = tuple(getattr(logits, "shape", ()))
        if len(shape) == 2 and shape[0] != 1:
            raise ConstrainError(f"the logits must be those of one sequence, not of {shape[0]} rows")
        if shape:
            self._check_width(int(shape[-1]))
        mask = self.mask(ids)
        if mask is not None:
            apply_token_bitmask_inplace(logits, mask)
        return logits

    def allowed(self, ids: Sequence[int] | NDArray[np.integer], width: int) -> NDArray[np.bool_]:
        """The same as booleans, for arrays of other frameworks: bool[width], all True after an end token.

        ``width`` is that of the logits; what lies behind the vocabulary is not allowed.  Errors are those of
        :meth:`mask`, and one of a width below the size of the vocabulary.
        """
        self._check_width(width)
        mask = self.mask(ids)
        if mask is None:
            return np.ones(width, np.bool_)
        bits = np.unpackbits(mask[0].astype("<i4").view(np.uint8), bitorder="little")
        size = self.matcher.compiled.vocabulary.size
        allowed = np.zeros(width, np.bool_)
        allowed[:size] = bits[:size]
        return allowed

    def _check_width(self, width: int) -> None:
        size = self.matcher.compiled.vocabulary.size
        if width < size:
            raise ConstrainError(f"the model has logits for {width} tokens, but the vocabulary has {size}")
