"""Grammars for the requests of continuous batching in ``transformers``.

::

    manager = model.init_continuous_batching(
        continuous_batching_config=ContinuousBatchingConfig(use_async_batching=False, use_cuda_graph=False)
    )
    requests = ConstrainedRequests(manager)
    manager.start()
    requests.add_request(input_ids, compiled_grammar, max_new_tokens=100)

A logits processor is handed the last token of each sequence of a batch, and not whose it is.  What a batch is made of
is said to processors of the manager's own kind alone, before the model runs.  So the masks are made there, from what
each request has said so far, and applied when the model has run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from constrain.engine.compiled_grammar import CompiledGrammar, check_compiled
from constrain.engine.masks.batches import fill_next_token_bitmask_batch
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.applying import apply_token_bitmask_inplace
from constrain.engine.vocabulary.bitmasks import Bitmask, allocate_token_bitmask, allow
from constrain.errors import ConstrainError
from constrain.extras import how_to_install

try:
    import torch
    from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor
except ImportError as error:
    raise ConstrainError(
        f"constrain.integrations.transformers_batching needs the continuous batching of transformers 5.24 ({error}): "
        f"{how_to_install('transformers')}"
    ) from error

_ARGUMENT = "compiled_grammar"
"""The argument of the manager's ``add_request`` that a request's grammar is handed over in."""

_MOST_KEPT = 1024
"""Requests whose places are kept, beside those of the batch; those of others are found again from their tokens."""


class ConstrainedRequests:
    """Adds requests with grammars to a manager, each complete within its ``max_new_tokens``.

    Requests without a grammar may be added to the manager itself.

    Parameters
    ----------
    manager : transformers.ContinuousBatchingManager
        Before its ``start()``.  Its batches must be neither asynchronous, nor CUDA graphs, nor compiled, since each
        mask is made from the token before.

    Raises
    ------
    ConstrainError
        If the manager has been started, or its configuration does not allow it.
    """

    def __init__(self, manager: Any) -> None:
        config, processors = manager.continuous_batching_config, manager.logit_processor
        if manager.batch_processor is not None or manager.is_running():
            raise ConstrainError("the manager has been started: ConstrainedRequests comes before manager.start()")
        graphs = config.use_cuda_graph
        if config.use_async_batching or (any(graphs) if isinstance(graphs, Sequence) else graphs):
            raise ConstrainError(
                "masks are made from the tokens before: ContinuousBatchingConfig(use_async_batching=False, "
                "use_cuda_graph=False)"
            )
        if config.varlen_compile_config is not None or config.decode_compile_config is not None:
            raise ConstrainError("masks are made between two calls of the model: nothing may be compiled with it")
        self._manager = manager
        self._processor = _GrammarProcessor()
        # First, so that temperature, top-k and top-p choose among allowed tokens.
        processors.logits_processor.insert(0, self._processor)
        processors.tensors_required += 1
        processors.supported_keys.update(self._processor.supported_kwargs)
        processors.do_processing = True
        self._width = int(manager.model.get_output_embeddings().weight.shape[0])
        self._size: int | None = None

    def add_request(
        self,
        input_ids: Sequence[int],
        compiled_grammar: CompiledGrammar,
        *,
        max_new_tokens: int | None = None,
        **options: Any,
    ) -> str | None:
        """Add a request; it ends with the end tokens of its grammar's vocabulary.

        Where its grammar takes too much time or memory within the text, the request ends, and its output has the
        reason as its ``error``.

        Parameters
        ----------
        input_ids : sequence of int
            The prompt.
        compiled_grammar : CompiledGrammar
            For the same vocabulary as those of the manager's other requests.
        max_new_tokens : int, optional
            By default what the manager's ``generation_config`` says.
        **options
            For the manager's ``add_request``: ``request_id``, ``streaming``, ``temperature``, ...

        Returns
        -------
        str or None
            What the manager returns.

        Raises
        ------
        ConstrainError
            If ``max_new_tokens`` are too few for any text, the vocabulary has no end token, or another size than the
            one before, or more tokens than the model has logits, or an option is ``eos_token_id``.
        """
        check_compiled(compiled_grammar, "add_request()")
        vocabulary = compiled_grammar.vocabulary
        if not vocabulary.eos_ids:
            raise ConstrainError("the vocabulary has no end token, so that no text could end")
        if vocabulary.size > self._width:
            raise ConstrainError(
                f"the model has logits for {self._width} tokens, but the vocabulary has {vocabulary.size}"
            )
        if self._size not in (None, vocabulary.size):
            raise ConstrainError(f"the requests need one vocabulary: these have sizes {self._size}, {vocabulary.size}")
        if "eos_token_id" in options:
            raise ConstrainError(
                "a request ends with the end tokens of its grammar's vocabulary: leave eos_token_id away"
            )
        if max_new_tokens is None:
            max_new_tokens = self._manager.generation_config.max_new_tokens
        # Here it is the caller's error; in the manager's thread it would be the end of all requests.
        Matcher(compiled_grammar, max_new_tokens)
        self._size = vocabulary.size
        return self._manager.add_request(  # type: ignore[no-any-return]
            list(input_ids),
            max_new_tokens=max_new_tokens,
            eos_token_id=list(vocabulary.eos_ids),
            **{_ARGUMENT: compiled_grammar},
            **options,
        )


class _Text:
    """Where the text of a request is."""

    def __init__(self, compiled: CompiledGrammar, limit: int | None) -> None:
        self.matcher = Matcher(compiled, limit)
        self.said: list[int] = []
        self.error: ConstrainError | None = None

    def continues(self, compiled: CompiledGrammar, said: list[int]) -> bool:
        """Whether some tokens of a request go on from here."""
        return self.matcher.compiled is compiled and said[: len(self.said)] == self.said

    def go_on(self, said: list[int]) -> None:
        """Take the tokens that are new.

        Raises
        ------
        ConstrainError
            If one is not allowed, or as for :meth:`constrain.Matcher.accept_token`.
        """
        for token in said[len(self.said) :]:
            if not self.matcher.accept_token(token):
                raise ConstrainError(f"the grammar does not allow token {token} behind {len(self.said)} others")
            self.said.append(token)


class _GrammarProcessor(ContinuousBatchingLogitsProcessor):  # type: ignore[misc, unused-ignore]
    """Masks for those requests of a batch that have a grammar."""

    def __init__(self) -> None:
        self.supported_kwargs = {_ARGUMENT: CompiledGrammar}
        self.ignored_kwargs = ()
        self._texts: OrderedDict[str, _Text] = OrderedDict()
        self._rows: list[int] = []
        self._mask: Bitmask = np.zeros((0, 0), np.int32)

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """The manager's tensor says nothing."""
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """Make the masks of a batch.  What goes wrong with one request is said in its output and ends it alone."""
        states = [request.state for request in requests_with_new_token]
        self._rows = [row for row, state in enumerate(states) if _ARGUMENT in state.logit_processor_kwargs]
        texts = {row: self._text_of(states[row]) for row in self._rows}
        while len(self._texts) > max(_MOST_KEPT, len(texts)):
            self._texts.popitem(last=False)
        if texts:
            vocabulary = texts[self._rows[0]].matcher.compiled.vocabulary
            self._mask = allocate_token_bitmask(len(states), vocabulary.size)
            self._fill({row: text for row, text in texts.items() if text.error is None})
            for row, text in texts.items():
                if text.error is not None:
                    states[row].error = str(text.error)
                    self._mask[row] = 0
                    for token in text.matcher.compiled.vocabulary.eos_ids:
                        allow(self._mask[row], token)
        return torch.zeros(len(states), dtype=torch.int32)

    def _text_of(self, state: Any) -> _Text:
        """Where a request is.  One that the manager has begun anew has the tokens it had said in its prompt."""
        begin = state._true_initial_tokens or len(state.initial_tokens)
        before = state.initial_tokens[begin:]
        said = [*before, *state.generated_tokens]
        compiled: CompiledGrammar = state.logit_processor_kwargs[_ARGUMENT]
        text = self._texts.get(state.request_id)
        if text is None or not text.continues(compiled, said):
            limit = state.max_new_tokens
            text = _Text(compiled, None if limit is None else limit + len(before))
            self._texts[state.request_id] = text
        self._texts.move_to_end(state.request_id)
        try:
            text.go_on(said)
        except ConstrainError as error:
            text.error = error
        return text

    def _fill(self, texts: dict[int, _Text]) -> None:
        try:
            fill_next_token_bitmask_batch([text.matcher for text in texts.values()], self._mask, indices=list(texts))
        except ConstrainError:
            # One by one, to find whose it is.
            for row, text in texts.items():
                try:
                    text.matcher.fill_next_token_bitmask(self._mask, row)
                except ConstrainError as error:
                    text.error = error

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """The scores of a batch, with -inf for what may not come next: float[rows, n]."""
        if self._rows:
            scores = scores.clone()
            # Behind the rows of the requests there may be some that nobody reads.
            apply_token_bitmask_inplace(scores[: len(self._mask)], self._mask, indices=self._rows)
        return scores
