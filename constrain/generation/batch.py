"""Several sequences at once, each with a prompt and a grammar of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from constrain.engine.compiled_grammar import CompiledGrammar, check_compiled
from constrain.engine.masks.batches import fill_next_token_bitmask_batch
from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask
from constrain.errors import ConstrainError
from constrain.generation.drawing import draw
from constrain.generation.interfaces import BatchModel, Encoder, Model
from constrain.generation.loop import Generation, check_log_probabilities
from constrain.generation.masks import Overlap
from constrain.generation.prompts import context_of
from constrain.generation.row import Row, Step
from constrain.generation.statistics import Statistics
from constrain.sampling import Sampler


class BatchGeneration(Iterator[tuple[int, Step]]):
    """Generations in progress: iterate over it for pairs of a row's number and its step.

    Made by :func:`generate_batch`.  One thread at a time may iterate; :meth:`cancel` is for any.
    """

    def __init__(
        self,
        model: Model,
        rows: list[Row],
        sampler: Sampler,
        log_probabilities: int | None = None,
        threads: int = 1,
        overlap: bool | None = None,
    ) -> None:
        check_log_probabilities(log_probabilities)
        self._model = model
        self._rows = rows
        self._samplers = [sampler.for_row(index) for index in range(len(rows))]
        self._log_probabilities = log_probabilities
        self._threads = threads
        self._overlap: Overlap[Any] = Overlap(overlap)
        self._times = Statistics()
        self._steps = self._start()
        # Whether an exception, such as that of Ctrl-C, has ended those steps in the middle.
        self._is_torn = False

    @property
    def texts(self) -> list[str]:
        """Everything so far, row by row."""
        return [row.text for row in self._rows]

    @property
    def token_ids(self) -> list[list[int]]:
        """Everything so far, row by row, without prompts and tokens that only ended a text."""
        return [row.token_ids for row in self._rows]

    @property
    def statistics(self) -> list[Statistics]:
        """Row by row."""
        return [row.statistics for row in self._rows]

    def cancel(self, row: int | None = None) -> None:
        """Have one row, or all of them, end before the next token; from any thread."""
        for one in self._rows if row is None else [self._rows[row]]:
            one.cancel()

    def __next__(self) -> tuple[int, Step]:
        if self._is_torn:
            self._overlap.settle()
            for row in self._rows:
                row.restore()
            self._steps = self._start()
            self._is_torn = False
        self._is_torn = True
        told = next(self._steps, None)
        if told is None:
            self._is_torn = False
            raise StopIteration
        self._rows[told[0]].keep()
        self._is_torn = False
        return told

    def _start(self) -> Iterator[tuple[int, Step]]:
        """The steps of the rows that are not finished."""
        batched = getattr(self._model, "can_batch", True) and hasattr(self._model, "logits_batch")
        return self._together() if batched else self._one_by_one()

    def _one_by_one(self) -> Iterator[tuple[int, Step]]:
        """For a model that remembers one sequence: row after row, so that what it remembers is of use."""
        for index, row in enumerate(self._rows):
            for step in Generation(self._model, row, self._samplers[index], self._log_probabilities, self._overlap):
                yield index, step

    def _together(self) -> Iterator[tuple[int, Step]]:
        masks = allocate_token_bitmask(len(self._rows), self._rows[0].vocabulary_size)
        running = [index for index, row in enumerate(self._rows) if not row.is_finished]
        while running:
            ready = []
            for index in running:
                row = self._rows[index]
                while True:
                    start = perf_counter()
                    step = row.step_without_model()
                    seconds = perf_counter() - start
                    row.statistics.total_seconds += seconds
                    if step is None:
                        # An end without a step is told with this.
                        row.keep()
                        break
                    if step.token_id is not None:
                        row.statistics.token_seconds.append(seconds)
                    yield index, step
                    if row.is_finished:
                        break
                if not row.is_finished:
                    ready.append(index)
            if ready:
                yield from self._round(ready, masks)
            running = [index for index in ready if not self._rows[index].is_finished]
        self._overlap.close()

    def _round(self, ready: list[int], masks: NDArray[np.int32]) -> Iterator[tuple[int, Step]]:
        """One answer of the model, and a token for each row that needs one."""
        times = self._times
        before = times.mask_seconds, times.hidden_mask_seconds, times.model_seconds, times.sample_seconds
        start = perf_counter()
        steps = self._tokens(ready, masks)
        seconds = perf_counter() - start
        times.tokens += 1
        for index in ready:
            own, step = self._rows[index].statistics, steps.get(index)
            own.total_seconds += seconds
            own.mask_seconds += times.mask_seconds - before[0]
            own.hidden_mask_seconds += times.hidden_mask_seconds - before[1]
            own.model_seconds += times.model_seconds - before[2]
            own.sample_seconds += times.sample_seconds - before[3]
            if step is not None and step.token_id is not None:
                own.token_seconds.append(seconds)
        for index in ready:
            step = steps.get(index)
            if step is not None:
                yield index, step
            else:
                self._rows[index].keep()

    def _tokens(self, ready: list[int], masks: NDArray[np.int32]) -> dict[int, Step | None]:
        rows, times = self._rows, self._times
        steps: dict[int, Step | None] = {}

        def fill(indices: list[int]) -> None:
            chosen = [index for index in indices if rows[index].scout is not None]
            matchers = [scout for index in chosen if (scout := rows[index].scout) is not None]
            fill_next_token_bitmask_batch(matchers, masks, indices=chosen, threads=self._threads)

        # The model need not be asked about rows that can only end.
        start = perf_counter()
        beside = self._overlap.pays
        first = [index for index in ready if not (beside and rows[index].needs_text())]
        fill(first)
        for index in first:
            steps[index] = rows[index].step_if_over(masks[index])
        seconds = perf_counter() - start
        times.mask_seconds += seconds
        self._overlap.filled(seconds)
        asked = [index for index in ready if not rows[index].is_finished]
        if not asked:
            return steps

        contexts = [row.context if index in asked else None for index, row in enumerate(rows)]

        def ask() -> Any:
            return cast(BatchModel, self._model).logits_batch(contexts)

        later = [index for index in asked if index not in first]
        if later:
            logits = self._overlap.both(lambda: fill(later), ask, times)
            for index in later:
                rows[index].step_if_over(masks[index])
        else:
            logits = self._overlap.ask(ask, times)
        start = perf_counter()
        shape = np.shape(logits)
        if len(shape) != 2 or shape[0] != len(rows):
            raise ConstrainError(f"the model has logits of shape {shape} for {len(rows)} rows")
        for index in asked:
            mask = rows[index].free_mask if rows[index].matcher is None else masks[index]
            try:
                steps[index] = draw(rows[index], logits[index], mask, self._samplers[index], self._log_probabilities)
            except ConstrainError as error:
                raise ConstrainError(f"row {index}: {error}") from error
        times.sample_seconds += perf_counter() - start
        return steps


def generate_batch(
    model: Model,
    tokenizer: Encoder,
    compiled_grammars: CompiledGrammar | Sequence[CompiledGrammar | None] | None,
    prompts: Sequence[str | Sequence[int]],
    *,
    max_tokens: int = 256,
    sampler: Sampler | None = None,
    stop: Sequence[str] = (),
    stop_tokens: Sequence[int] = (),
    skip_forced: bool = True,
    budget: bool = True,
    events: bool = False,
    log_probabilities: int | None = None,
    threads: int = 1,
    overlap: bool | None = None,
) -> BatchGeneration:
    """Generate several texts; returns an iterator of (row, step).

    Where the model answers for several sequences at once (:class:`BatchModel`), they grow together; else one is
    made after the other.  Each row draws from a random stream of its own, so that what it says does not depend on
    the others; row 0 says what :func:`~.loop.generate` would.

    Parameters
    ----------
    compiled_grammars : CompiledGrammar, None, or one of these for each prompt
        All for one vocabulary.
    prompts : sequence
        Each as for :func:`~.loop.generate`.
    threads : int
        How many threads may compute masks, as for :func:`constrain.fill_next_token_bitmask_batch`.
    model, tokenizer, max_tokens, sampler, stop, stop_tokens, skip_forced, budget, events, log_probabilities, overlap
        As for :func:`~.loop.generate`, for every row.

    Raises
    ------
    ConstrainError
        As :func:`~.loop.generate`; or there is no prompt, or another number of grammars than of prompts, or they are
        for vocabularies of different sizes.
    """
    if isinstance(prompts, str) or not isinstance(prompts, Sequence) or not prompts:
        raise ConstrainError("prompts must be a sequence of at least one prompt")
    if compiled_grammars is None or isinstance(compiled_grammars, CompiledGrammar):
        compiled_grammars = [compiled_grammars] * len(prompts)
    if not isinstance(compiled_grammars, Sequence):
        check_compiled(compiled_grammars, "generate_batch()")
    if len(compiled_grammars) != len(prompts):
        raise ConstrainError(f"there are {len(compiled_grammars)} grammars for {len(prompts)} prompts")
    if isinstance(stop, str):
        stop = [stop]
    rows = [
        Row(
            tokenizer,
            grammar,
            context_of(model, tokenizer, prompt),
            max_tokens=max_tokens,
            max_seq_len=getattr(model, "max_seq_len", None),
            stop=stop,
            stop_tokens=stop_tokens,
            skip_forced=skip_forced,
            budget=budget,
            events=events,
        )
        for grammar, prompt in zip(compiled_grammars, prompts, strict=True)
    ]
    sizes = sorted({row.vocabulary_size for row in rows})
    if len(sizes) > 1:
        raise ConstrainError(f"a batch needs one vocabulary: these have sizes {sizes}")
    return BatchGeneration(model, rows, Sampler() if sampler is None else sampler, log_probabilities, threads, overlap)
