"""One sequence from a prompt to the end of the grammar: mask, model, sampler, accept, and again.

What it does not do: batches, stop sequences, or a mask computed while the model runs.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from constrain.engine.bitmask import allocate_token_bitmask
from constrain.engine.compiled import CompiledGrammar
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary import Vocabulary
from constrain.errors import ConstrainError
from constrain.generation.statistics import Statistics
from constrain.sampling import Sampler


class Model(Protocol):
    """Anything that says how likely each token is to come next."""

    def logits(self, ids: Sequence[int]) -> Any:
        """Unnormalised log-probabilities, float[n], of the token after ``ids``.

        ``n`` is at least the size of the vocabulary; what is beyond it is never drawn.
        """
        ...


class Encoder(Protocol):
    """The one method of a tokenizer that the loop needs."""

    def encode(self, text: str) -> Any:
        """The text's tokens; the result has them as ``.ids``."""
        ...


@dataclass(frozen=True)
class Step:
    """One token, as it was made.

    Attributes
    ----------
    token_id : int
    text : str
        What the token completes.  Empty while a character's bytes are not all there.
    """

    token_id: int
    text: str


class Generation(Iterator[Step]):
    """A generation in progress: iterate over it for the steps.  Made by :func:`generate`.

    Attributes
    ----------
    text : str
        Everything so far.
    token_ids : list of int
        Everything so far, without the prompt and the end-of-sequence token.
    statistics : Statistics
    """

    def __init__(
        self,
        model: Model,
        prompt_ids: Sequence[int],
        compiled_grammar: CompiledGrammar,
        max_tokens: int,
        sampler: Sampler,
    ) -> None:
        if max_tokens < 1:
            raise ConstrainError(f"max_tokens must be at least 1, not {max_tokens}")
        self.text = ""
        self.token_ids: list[int] = []
        self.statistics = Statistics()
        self._model = model
        self._context = [int(token) for token in prompt_ids]
        self._vocabulary = compiled_grammar.vocabulary
        self._matcher = Matcher(compiled_grammar)
        self._max_tokens = max_tokens
        self._sampler = sampler
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._mask = allocate_token_bitmask(1, self._vocabulary.size)
        self._adds_text = _bits_of_tokens_with_text(self._vocabulary)

    def __next__(self) -> Step:
        if self.statistics.finish_reason is not None:
            raise StopIteration
        start = perf_counter()
        step = self._advance()
        seconds = perf_counter() - start
        self.statistics.total_seconds += seconds
        if step is None:
            raise StopIteration
        self.statistics.token_seconds.append(seconds)
        return step

    def _advance(self) -> Step | None:
        statistics = self.statistics
        if statistics.tokens == self._max_tokens:
            statistics.finish_reason = "complete" if self._matcher.is_accepting() else "length"
            return None

        start = perf_counter()
        self._matcher.fill_next_token_bitmask(self._mask, 0)
        can_go_on = bool((self._mask[0] & self._adds_text).any())
        masked = perf_counter()
        statistics.mask_seconds += masked - start
        if not can_go_on:
            # There is nothing left to ask the model.
            if not self._matcher.is_accepting():
                raise ConstrainError(
                    f"no token of the vocabulary continues the text after {self.text[-40:]!r}, "
                    "though the grammar needs more"
                )
            statistics.finish_reason = "complete"
            return None

        logits = self._model.logits(self._context)
        answered = perf_counter()
        statistics.model_seconds += answered - masked
        if np.ndim(logits) == 1 and len(logits) < self._vocabulary.size:
            raise ConstrainError(
                f"the model has logits for {len(logits)} tokens, but the vocabulary has {self._vocabulary.size}"
            )
        token = self._sampler.sample(logits, self._mask[0])
        statistics.sample_seconds += perf_counter() - answered

        if not self._matcher.accept_token(token):
            raise AssertionError(f"the mask allows token {token}, but the matcher refuses it")
        if self._matcher.is_terminated():
            statistics.finish_reason = "complete"
            return None
        self._context.append(token)
        self.token_ids.append(token)
        statistics.tokens += 1
        # From the bytes that were matched, not through the tokenizer's decoder, which may strip or join:
        # the text is exactly the string that the grammar was asked about.
        piece = self._decoder.decode(self._vocabulary.tokens[token])
        self.text += piece
        return Step(token, piece)


def _bits_of_tokens_with_text(vocabulary: Vocabulary) -> NDArray[np.int32]:
    """A row of a bitmask: the tokens that make the text longer."""
    bits = np.zeros((vocabulary.size + 31) // 32 * 32, np.uint8)
    bits[: vocabulary.size] = 1
    bits[list(vocabulary.eos_ids)] = 0
    bits[vocabulary.empty_ids] = 0
    return np.packbits(bits, bitorder="little").view("<i4").astype(np.int32)


def generate(
    model: Model,
    tokenizer: Encoder,
    compiled_grammar: CompiledGrammar,
    *,
    prompt: str | Sequence[int] = "",
    max_tokens: int = 256,
    sampler: Sampler | None = None,
) -> Generation:
    """Generate text that the grammar allows; returns an iterator of steps.

    It ends when the end-of-sequence token is drawn, at once when the grammar allows nothing else, and
    after ``max_tokens``.  ``statistics.finish_reason`` of the result says how.

    Parameters
    ----------
    model : Model
        Of the vocabulary that the grammar was compiled for.
    tokenizer : Encoder
        Encodes the prompt.
    compiled_grammar : CompiledGrammar
    prompt : str or sequence of int
        Text, or token ids.
    max_tokens : int
        At least 1; the end-of-sequence token does not count.
    sampler : Sampler, optional
        ``Sampler()`` by default.

    Raises
    ------
    ConstrainError
        ``max_tokens`` is out of range.  While iterating: the model's logits are too few, NaN, or rule
        out all that the grammar allows; or the vocabulary has no token for what the grammar needs.
    """
    prompt_ids = tokenizer.encode(prompt).ids if isinstance(prompt, str) else prompt
    return Generation(model, prompt_ids, compiled_grammar, max_tokens, Sampler() if sampler is None else sampler)
