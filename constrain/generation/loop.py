"""One sequence from a prompt to the end of the grammar: mask, model, sampler, accept, and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from constrain.arguments import check_integer
from constrain.engine.compiled_grammar import CompiledGrammar, check_compiled
from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask
from constrain.errors import ConstrainError
from constrain.generation.drawing import draw
from constrain.generation.interfaces import Encoder, Model
from constrain.generation.masks import Overlap
from constrain.generation.prompts import context_of
from constrain.generation.row import Row, Step
from constrain.generation.statistics import Statistics
from constrain.sampling import Sampler


class Generation(Iterator[Step]):
    """A generation in progress: iterate over it for the steps.  Made by :func:`generate`.

    One thread at a time may iterate; :meth:`cancel` is for any.
    """

    def __init__(
        self,
        model: Model,
        row: Row,
        sampler: Sampler,
        log_probabilities: int | None,
        overlap: Overlap[Any],
    ) -> None:
        check_log_probabilities(log_probabilities)
        if not hasattr(sampler, "sample"):
            raise ConstrainError(f"sampler must be a Sampler or a SamplerChain, not {sampler!r}")
        self._model = model
        self._row = row
        self._sampler = sampler
        self._log_probabilities = log_probabilities
        self._overlap = overlap
        self._mask = allocate_token_bitmask(1, row.vocabulary_size)
        # Whether an exception, such as that of Ctrl-C, has left a step in its middle.
        self._is_torn = False

    @property
    def text(self) -> str:
        """Everything so far, without a stop string."""
        return self._row.text

    @property
    def token_ids(self) -> list[int]:
        """Everything so far, without the prompt and a token that only ended it."""
        return self._row.token_ids

    @property
    def statistics(self) -> Statistics:
        return self._row.statistics

    def cancel(self) -> None:
        """Have the generation end before its next token, with the reason "cancelled"; from any thread."""
        self._row.cancel()

    def __next__(self) -> Step:
        statistics = self._row.statistics
        if self._is_torn:
            self._overlap.settle()
            self._row.restore()
            self._is_torn = False
        if self._row.is_finished:
            raise StopIteration
        self._is_torn = True
        start = perf_counter()
        try:
            step = self._advance()
        finally:
            seconds = perf_counter() - start
            statistics.total_seconds += seconds
            if self._row.is_finished:
                self._overlap.close()
        if step is not None and step.token_id is not None:
            statistics.token_seconds.append(seconds)
        self._row.keep()
        self._is_torn = False
        if step is None:
            raise StopIteration
        return step

    def _advance(self) -> Step | None:
        row, statistics = self._row, self._row.statistics
        step = row.step_without_model()
        if step is not None or row.is_finished:
            return step
        if row.matcher is None:
            logits = self._overlap.ask(self._ask, statistics)
            mask = row.free_mask
        elif self._overlap.pays and row.needs_text():
            logits = self._overlap.both(self._fill, self._ask, statistics)
            mask = self._mask[0]
            row.step_if_over(mask)
        else:
            start = perf_counter()
            self._fill()
            mask = self._mask[0]
            step = row.step_if_over(mask)
            seconds = perf_counter() - start
            statistics.mask_seconds += seconds
            self._overlap.filled(seconds)
            if step is not None or row.is_finished:
                return step
            logits = self._overlap.ask(self._ask, statistics)
        start = perf_counter()
        step = draw(row, logits, mask, self._sampler, self._log_probabilities)
        statistics.sample_seconds += perf_counter() - start
        return step

    def _fill(self) -> None:
        self._row.fill_mask(self._mask)

    def _ask(self) -> Any:
        return self._model.logits(self._row.context)


def check_log_probabilities(wanted: int | None) -> None:
    """Raise :class:`ConstrainError` if that is no number of tokens."""
    if wanted is not None and check_integer("log_probabilities", wanted) < 0:
        raise ConstrainError(f"log_probabilities must be 0 or more, not {wanted}")


def generate(
    model: Model,
    tokenizer: Encoder,
    compiled_grammar: CompiledGrammar | None,
    *,
    prompt: str | Sequence[int] = "",
    max_tokens: int = 256,
    sampler: Sampler | None = None,
    stop: Sequence[str] = (),
    stop_tokens: Sequence[int] = (),
    skip_forced: bool = True,
    budget: bool = True,
    events: bool = False,
    log_probabilities: int | None = None,
    overlap: bool | None = None,
) -> Generation:
    """Generate text that the grammar allows; returns an iterator of steps.

    It ends when the end-of-sequence token is drawn, at once when the grammar allows nothing else, at a stop string or
    token, and when ``max_tokens`` are made.

    Parameters
    ----------
    model : Model
        Of the vocabulary that the grammar was compiled for.
    tokenizer : Encoder
        Encodes the prompt, and forced text.
    compiled_grammar : CompiledGrammar or None
        None: free text; ``tokenizer`` has to be a :class:`constrain.tokenizers.Tokenizer` then.
    prompt : str or sequence of int
        Text, which gets the special tokens in front that the tokenizer says, or token ids.
    max_tokens : int
        At least 1; the end-of-sequence token does not count.
    sampler : Sampler, optional
        ``Sampler()`` by default.  Its penalties look at the prompt and the output.
    stop : sequence of str
        The text ends in front of the first of these.
    stop_tokens : sequence of int
        Tokens that end the text, without a part in it.  Under a grammar they can only be drawn where it allows them.
    skip_forced : bool
        Make tokens about which the grammar leaves no choice without asking the model.
    budget : bool
        Only allow tokens after which the text can be completed within ``max_tokens``, so that it always is
        (``Matcher(compiled, max_tokens=...)``).  Without it a text may end unfinished.
    events : bool
        Give each step its events: what it brings of the parts of the text, as :meth:`constrain.Matcher.events` tells
        them.  For grammars that have some.
    log_probabilities : int, optional
        Give each step's log-probability, and those of this many of the most likely tokens.
    overlap : bool, optional
        Compute masks in a thread while the model runs.  By default where masks have lately taken more than 0.2 ms, and
        the model more than 1 ms; handing over costs more than most masks do.

    Raises
    ------
    ConstrainError
        ``max_tokens`` is out of range or too few for any text of the grammar, the prompt is longer than the model's
        context, or a stop string is empty.
        While iterating: the model's logits are too few, NaN, or rule out all that the grammar allows; or the
        vocabulary has no token for what the grammar needs.
    """
    if isinstance(stop, str):
        stop = [stop]
    if compiled_grammar is not None:
        check_compiled(compiled_grammar, "generate()")
    row = Row(
        tokenizer,
        compiled_grammar,
        context_of(model, tokenizer, prompt),
        max_tokens=max_tokens,
        max_seq_len=getattr(model, "max_seq_len", None),
        stop=stop,
        stop_tokens=stop_tokens,
        skip_forced=skip_forced,
        budget=budget,
        events=events,
    )
    return Generation(model, row, Sampler() if sampler is None else sampler, log_probabilities, Overlap(overlap))
