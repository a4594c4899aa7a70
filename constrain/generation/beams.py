"""Beam search: the texts of a grammar that a model finds most likely, as far as a beam sees.

Each step takes the most likely continuations of all beams together, exactly, among the tokens that the grammar allows.
The algorithm is that of transformers (``num_beams``), after Graves, "Sequence transduction with recurrent neural
networks" (2012): texts that end are set apart, and the search is over when none of those in progress can beat them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from constrain.arguments import check_integer
from constrain.engine.compiled_grammar import CompiledGrammar, check_compiled
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask
from constrain.errors import ConstrainError
from constrain.generation.interfaces import Encoder, Model
from constrain.generation.output import VocabularyDecoder
from constrain.generation.prompts import context_of
from constrain.generation.statistics import FinishReason
from constrain.sampling.arrays import as_floats
from constrain.sampling.options import MOST_BEAMS, check_length_penalty
from constrain.tokenizers.base import Decoder, Tokenizer

EarlyStopping = bool | Literal["never"]


@dataclass(frozen=True)
class Beam:
    """One text that was found.

    Attributes
    ----------
    token_ids : tuple of int
        Without the prompt and an end-of-sequence token.
    text : str
    log_probability : float
        Natural logarithm of the model's own probability of the text, its end included.
    score : float
        What texts are compared by: ``log_probability / tokens ** length_penalty``; an end-of-sequence token counts.
    finish_reason : "complete" or "length"
        Whether the text is whole, or ``max_tokens`` were made.
    """

    token_ids: tuple[int, ...]
    text: str
    log_probability: float
    score: float
    finish_reason: FinishReason


@dataclass(frozen=True)
class _Running:
    """A text in progress."""

    ids: tuple[int, ...]
    log_probability: float
    matcher: Matcher | None


def beam_search(
    model: Model,
    tokenizer: Encoder,
    compiled_grammar: CompiledGrammar | None,
    *,
    prompt: str | Sequence[int] = "",
    beams: int = 4,
    max_tokens: int = 256,
    length_penalty: float = 1.0,
    early_stopping: EarlyStopping = False,
    budget: bool = True,
) -> list[Beam]:
    """The most likely texts that a beam search finds, the best first.

    Parameters
    ----------
    model, tokenizer, compiled_grammar, prompt, max_tokens, budget
        As for :func:`~.loop.generate`.  With a budget every text is complete within ``max_tokens``.
    beams : int
        How many texts are in progress at once, and at most how many are returned; 1 is greedy.  Up to 1,000.
    length_penalty : float
        Scores are divided by the number of tokens to this power: above 0 long texts are preferred, below 0 short ones,
        and 0 compares log-probabilities.  Between -40 and 40.
    early_stopping : bool or "never"
        True: as soon as ``beams`` texts are complete.  False: when no text in progress beats the worst of them at its
        present length.  "never": when none could at any length.

    Raises
    ------
    ConstrainError
        As :func:`~.loop.generate`, or an option is out of range.
    """
    if not 1 <= check_integer("beams", beams) <= MOST_BEAMS:
        raise ConstrainError(f"beams must be from 1 to {MOST_BEAMS:,}, not {beams}")
    if check_integer("max_tokens", max_tokens) < 1:
        raise ConstrainError(f"max_tokens must be at least 1, not {max_tokens}")
    check_length_penalty(length_penalty)
    if early_stopping not in (True, False, "never"):
        raise ConstrainError(f'early_stopping must be True, False or "never", not {early_stopping!r}')
    context = context_of(model, tokenizer, prompt)
    limit = getattr(model, "max_seq_len", None)
    if limit is not None:
        if len(context) >= limit:
            raise ConstrainError(
                f"the prompt has {len(context)} tokens, and the model's context, {limit}, has no room for more"
            )
        max_tokens = min(max_tokens, limit - len(context))
    search = _Search(model, tokenizer, compiled_grammar, context, beams, length_penalty)
    return search.run(max_tokens, early_stopping, budget)


class _Search:
    def __init__(
        self,
        model: Model,
        tokenizer: Encoder,
        compiled_grammar: CompiledGrammar | None,
        context: list[int],
        beams: int,
        length_penalty: float,
    ) -> None:
        self._model, self._context, self._beams, self._penalty = model, context, beams, length_penalty
        self._compiled = compiled_grammar
        self._decoder: Decoder
        if compiled_grammar is not None:
            check_compiled(compiled_grammar, "beam_search()")
            vocabulary = compiled_grammar.vocabulary
            self._size = vocabulary.size
            self._ends = frozenset(vocabulary.eos_ids) - vocabulary.spelled_ids
            self._decoder = VocabularyDecoder(vocabulary)
        elif isinstance(tokenizer, Tokenizer):
            self._size, self._ends, self._decoder = tokenizer.vocab_size, frozenset(tokenizer.eos_ids), tokenizer
        else:
            raise ConstrainError("free text, without a grammar, needs a whole tokenizer: one that decodes too")
        self._mask = allocate_token_bitmask(1, self._size)
        self._finished: list[Beam] = []

    def run(self, max_tokens: int, early_stopping: EarlyStopping, budget: bool) -> list[Beam]:
        matcher = None
        if self._compiled is not None:
            matcher = Matcher(self._compiled, max_tokens if budget else None)
        running = [_Running((), 0.0, matcher)]
        for length in range(1, max_tokens + 1):
            running = self._step(running, length, length == max_tokens)
            if not running or not self._may_improve(running, length, max_tokens, early_stopping):
                break
        return sorted(self._finished, key=lambda beam: -beam.score)

    def _step(self, running: list[_Running], length: int, is_last: bool) -> list[_Running]:
        """The texts in progress with one more token; those that end are set apart."""
        losses: list[NDArray[np.float64]] = []
        tokens: list[NDArray[np.int64]] = []
        # As many as there can be beside all that end.
        most = (1 + max(1, len(self._ends))) * self._beams
        for beam in running:
            ids, values = self._allowed(beam)
            best = np.argsort(-values, kind="stable")[:most]
            losses.append(-(values[best] + beam.log_probability))
            tokens.append(ids[best])
        beams = np.repeat(np.arange(len(running)), list(map(len, tokens)))
        all_losses, all_tokens = np.concatenate(losses), np.concatenate(tokens)
        found = np.argsort(all_losses, kind="stable")[:most]
        follow: list[_Running] = []
        for rank, place in enumerate(found.tolist()):
            beam, loss, token = running[beams[place]], float(all_losses[place]), int(all_tokens[place])
            matcher = None if beam.matcher is None else beam.matcher.fork()
            if matcher is not None and not matcher.accept_token(token):
                raise AssertionError(f"the mask allows token {token}, but the matcher refuses it")
            ends = token in self._ends if matcher is None else matcher.is_terminated()
            ids_so_far = beam.ids if ends else (*beam.ids, token)
            if not ends and not is_last:
                if len(follow) < self._beams:
                    follow.append(_Running(ids_so_far, -loss, matcher))
            # A text that ends counts only where it is among the best: a likely one in progress is not to be missed.
            elif rank < self._beams:
                whole = ends or (matcher is not None and matcher.is_accepting())
                self._set_apart(ids_so_far, -loss, length, "complete" if whole else "length")
        return follow

    def _allowed(self, beam: _Running) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The tokens that may follow, and the model's log-probabilities of them among all tokens."""
        row = as_floats(self._model.logits([*self._context, *beam.ids]))
        if row.ndim != 1 or len(row) < self._size:
            raise ConstrainError(f"the model has logits of shape {row.shape} for {self._size} tokens")
        logits = row.astype(np.float64)
        highest = logits.max()
        if not np.isfinite(highest):
            raise ConstrainError("the model's logits contain NaN or +inf, or all are -inf")
        values = (logits - highest - np.log(np.exp(logits - highest).sum()))[: self._size]
        if beam.matcher is None:
            ids = np.flatnonzero(values > -np.inf)
            return ids, values[ids]
        beam.matcher.fill_next_token_bitmask(self._mask)
        bits = np.unpackbits(self._mask[0].view(np.uint8), bitorder="little")[: self._size].astype(np.bool_)
        ids = np.flatnonzero(bits & (values > -np.inf))
        if not len(ids) and beam.matcher.is_accepting():
            # The vocabulary has no token that ends a text.
            self._set_apart(beam.ids, beam.log_probability, max(1, len(beam.ids)), "complete")
        elif not len(ids):
            raise ConstrainError("the model's logits are -inf for every token that the grammar allows")
        return ids, values[ids]

    def _set_apart(self, ids: tuple[int, ...], log_probability: float, length: int, reason: FinishReason) -> None:
        score = log_probability / length**self._penalty
        text = self._decoder.decode(ids)
        self._finished.append(Beam(ids, text, log_probability, score, reason))
        self._finished.sort(key=lambda beam: -beam.score)
        del self._finished[self._beams :]

    def _may_improve(
        self, running: list[_Running], length: int, max_tokens: int, early_stopping: EarlyStopping
    ) -> bool:
        if len(self._finished) < self._beams:
            return True
        if early_stopping is True:
            return False
        longest = max_tokens if early_stopping == "never" and self._penalty > 0 else length
        best = max(beam.log_probability for beam in running) / longest**self._penalty
        return bool(best > self._finished[-1].score)
