"""The back end of vLLM's engine: makes a grammar of a request, and its masks.

It is used in the place of vLLM's ``XgrammarBackend`` and has the same methods (vLLM calls them by name).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from vllm import envs
from vllm.logger import init_logger
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from constrain.engine.vocabulary.bitmasks import Bitmask, allocate_token_bitmask, words_for
from constrain.errors import ConstrainError
from constrain.integrations.request_matcher import matcher_within
from constrain.integrations.vllm.compilers import Compiled, Compilers
from constrain.integrations.vllm.read_ahead import DraftMasks, ReadAhead
from constrain.integrations.vllm.requests import JsonOptions
from constrain.integrations.vllm.versions import end_tokens_of
from constrain.limits import Deadline

# A name below "vllm" is in the log that vLLM sets up.
logger = init_logger("vllm.constrain")


class MaskTensors:
    """The tensor in which vLLM has its masks, as a numpy array on the same memory; it is nearly always the same one."""

    def __init__(self) -> None:
        # One pair, so that threads with different tensors cannot mix theirs up.
        self._known: tuple[torch.Tensor, Bitmask] | None = None

    def array(self, tensor: torch.Tensor) -> Bitmask:
        """The array, int32[rows, words]."""
        known = self._known
        if known is None or known[0] is not tensor:
            known = self._known = tensor, tensor.numpy()
        return known[1]


class ConstrainGrammar(StructuredOutputGrammar):  # type: ignore[misc, unused-ignore]
    """One request.

    Parameters
    ----------
    compiled : Compiled
    tensors : MaskTensors
    limit : int, optional
        How many tokens the request gets at most: thinking, text and end token together.
    deadline : Deadline, optional
        Until when the grammar's shortest text has to be found.

    Raises
    ------
    ConstrainError
        If that is too few for any text of the grammar, or there is no time left.
    """

    def __init__(
        self, compiled: Compiled, tensors: MaskTensors, limit: int | None = None, deadline: Deadline | None = None
    ) -> None:
        self.compiled = compiled
        self.limit = limit
        self.shortest = 0
        """How many tokens the shortest text takes that is known; only said where the request thinks."""
        self.end_of_thinking: tuple[int, ...] = ()
        """The tokens that end the request's thinking; none where it does not think, or they are not known."""
        self.tokens_at_end: int | None = None
        """How many tokens the request has with those that it is given next; None where it does not think."""
        self._tensors = tensors
        self._begun_at = 0
        self.matcher = matcher_within(compiled.grammar, limit, stop_token_ids=compiled.ends, time_limit=deadline)
        self.ahead: ReadAhead | None = None
        """Where the manager goes through drafts: what they come to.  The matcher stays where it is then."""
        self.failure: ConstrainError | None = None
        """Why there are no masks any more: the grammar takes too much time or memory from here on.

        A rollback leaves it.
        """

    @property
    def has_begun(self) -> bool:
        """Whether a token of the text has been accepted."""
        return self.matcher.steps > 0

    def begin(self, tokens: int) -> None:
        """Let the text begin after so many tokens of the request, in what is left of its limit.

        Where that is too little the text has no limit of its own.  It is so for drafts, which may think on where the
        mask does not let the model do so, and for thinking that cannot be ended.
        """
        if self.limit is None or tokens == self._begun_at or self.has_begun:
            return
        compiled, ends = self.compiled
        try:
            self.matcher = matcher_within(compiled, self.limit - tokens, stop_token_ids=ends)
        except ConstrainError:
            self.matcher = matcher_within(compiled, None, stop_token_ids=ends)
        self._begun_at = tokens

    def _begin_before(self, tokens: list[int]) -> None:
        if self.tokens_at_end is not None and tokens:
            self.begin(self.tokens_at_end - len(tokens))

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Go on with tokens; False at the first that is not allowed.  Those after an end token are of no matter.

        False too after a failure, with which vLLM ends the request.  An exception would end the engine.
        """
        if self.failure is None:
            try:
                return self._accept_tokens(request_id, tokens)
            except ConstrainError as error:
                self.failure = error
        logger.error("request %s: its grammar can be followed no further: %s", request_id, self.failure)
        return False

    def _accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        self._begin_before(tokens)
        for token in tokens:
            if self.is_terminated():
                break
            if not (self._accept(token) if self.ahead is None else self.ahead.accept(token)):
                logger.error("request %s: the grammar does not allow token %s here", request_id, token)
                return False
        return True

    def _accept(self, token: int) -> bool:
        return 0 <= token < self.compiled.grammar.vocabulary.size and self.matcher.accept_token(token)

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Those of the tokens, from the first on, that could be accepted; the text stays.  None after a failure."""
        if self.failure is None and not self.is_terminated():
            try:
                self._begin_before(tokens)
                return tokens[: self.matcher.validate_tokens(self.known_tokens(tokens))]
            except ConstrainError as error:
                self.failure = error
        return []

    def known_tokens(self, tokens: Sequence[int]) -> Sequence[int]:
        """Those before the first that is none of the vocabulary."""
        size = self.compiled.grammar.vocabulary.size
        unknown = next((place for place, token in enumerate(tokens) if not 0 <= token < size), None)
        return tokens if unknown is None else tokens[:unknown]

    def rollback(self, num_tokens: int) -> None:
        """Take back the last accepted tokens."""
        (self.matcher if self.ahead is None else self.ahead).rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the tokens that may come next into a row of int32[rows, ceil(vocabulary / 32)]; all after a failure."""
        array = self._tensors.array(bitmask)
        if self.ahead is not None:
            array[batch_index] = self.ahead.mask
            return
        if self.failure is None:
            try:
                self.matcher.fill_next_token_bitmask(array, batch_index)
                return
            except ConstrainError as error:
                self.failure = error
        # Whatever comes next is not accepted.
        array[batch_index] = -1

    def is_terminated(self) -> bool:
        """Whether an end token has been accepted."""
        return self.matcher.is_terminated() if self.ahead is None else self.ahead.is_terminated

    def reset(self) -> None:
        """Go back to the beginning of the text."""
        self.matcher.reset()
        self.failure = None


class ConstrainBackend(StructuredOutputBackend):  # type: ignore[misc, unused-ignore]
    """Makes the grammars of one engine; ``compile_grammar`` is called from several threads.

    Parameters
    ----------
    vllm_config : vllm.config.VllmConfig
    tokenizer
        The model's.
    vocab_size : int
        How many logits the model has.

    Raises
    ------
    ConstrainError
        If the tokens of the tokenizer have no exact bytes, or it has no end token.
    """

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        self._tensors = MaskTensors()
        self.draft_masks = DraftMasks(vocab_size)
        self._compilers = compilers_of(tokenizer, vocab_size, vllm_config.model_config)
        self._is_compact = bool(vllm_config.structured_outputs_config.disable_any_whitespace)

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: Collection[int] | None = None,
        *,
        limit: int | None = None,
        options: JsonOptions | None = None,
    ) -> ConstrainGrammar:
        """The grammar of a request.

        Parameters
        ----------
        request_type, grammar_spec
            What is asked for, and its text.
        stop_token_ids : set of int, optional
            The tokens that end this request; by default the tokenizer's end tokens.
        limit : int, optional
            How many tokens it gets at most, the end token included.
        options : JsonOptions, optional
            What it says of its JSON; by default what the server's configuration says.

        Raises
        ------
        ConstrainError
            If it cannot be enforced, or the limit is too small for any text.
        """
        options = JsonOptions(self._is_compact) if options is None else options
        deadline = request_deadline()
        compiled = compile_request(self._compilers, request_type.name, grammar_spec, options, stop_token_ids, deadline)
        grammar = ConstrainGrammar(compiled, self._tensors, limit, deadline)
        # The first mask takes longest; here it holds nobody up.
        grammar.matcher.fill_next_token_bitmask(allocate_token_bitmask(1, self.vocab_size))
        return grammar

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """A mask: int32[max_num_seqs, ceil(vocabulary / 32)] in the machine's memory, all tokens allowed."""
        return torch.full((max_num_seqs, words_for(self.vocab_size)), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Nothing is left running, and nothing is kept that memory management would not free."""


# The API server and the engine may be in one process; then they share what they compile.
_known: list[tuple[Any, int, Compilers]] = []
_MOST_KNOWN = 2


def compilers_of(tokenizer: Any, vocab_size: int, model_config: Any) -> Compilers:
    """The compilers for a tokenizer, one for all that have the same tokens in this process.

    ``model_config`` (a ``vllm.config.ModelConfig``) names the model's own end tokens, which may be more than the
    tokenizer's.
    """
    for other, size, compilers in _known:
        if other is tokenizer and size == vocab_size:
            return compilers
    compilers = Compilers(tokenizer, vocab_size, end_tokens_of(model_config))
    vocabulary = compilers.vocabulary
    for _, _, other_compilers in _known:
        other_vocabulary = other_compilers.vocabulary
        if (other_vocabulary.tokens, other_vocabulary.eos_ids) == (vocabulary.tokens, vocabulary.eos_ids):
            compilers = other_compilers
            break
    _known.append((tokenizer, vocab_size, compilers))
    del _known[:-_MOST_KNOWN]
    return compilers


def request_deadline() -> Deadline:
    """Until when a request's grammar has to be ready: ``VLLM_REGEX_COMPILATION_TIMEOUT_S`` from now (0: no limit)."""
    seconds = envs.VLLM_REGEX_COMPILATION_TIMEOUT_S
    return Deadline(seconds if seconds > 0 else None)


def compile_request(
    compilers: Compilers,
    kind: str,
    spec: str,
    options: JsonOptions,
    stop_token_ids: Collection[int] | None,
    deadline: Deadline,
) -> Compiled:
    """Read and compile what a request asks for."""
    grammar = compilers.read(kind, spec, options=options, deadline=deadline)
    return compilers.compile(grammar, stop_token_ids, deadline)
