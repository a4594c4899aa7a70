"""SGLang's grammar back end: ``--grammar-backend constrain`` (docs/serving.md).

SGLang finds :func:`constrain.integrations.sglang_plugin.register` by its entry point and calls it in each of its
processes.

A back end of SGLang is not told how many tokens a request gets, nor which tokens stop it.  A hook at the place where
its grammar manager hands a grammar to a request tells it.  So texts are complete within ``max_new_tokens``, thinking
included, and no token of a text stops the request.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
    register_grammar_backend,
    register_vocab_mask_buffer,
)
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend, ReasonerGrammarObject
from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch
from sglang.srt.parser.reasoning_parser import ReasoningParser
from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from sglang.srt.runtime_context import get_serving

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.compiler import GrammarCompiler
from constrain.engine.masks.batches import fill_next_token_bitmask_batch
from constrain.engine.masks.drafts import fill_draft_bitmasks
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.applying import apply_token_bitmask_inplace
from constrain.engine.vocabulary.bitmasks import allocate_token_bitmask, words_for
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.errors import ConstrainError
from constrain.grammar.grammar import Grammar
from constrain.integrations.request_grammars import ebnf_or_lark_grammar, structural_tag_grammar
from constrain.integrations.request_matcher import matcher_within
from constrain.limits import Deadline, limited

NAME = "constrain"
ANY_JSON = "$$ANY$$"
"""What SGLang writes for ``{"type": "json_object"}``: any JSON text."""

TIME_LIMIT = 30.0
"""Seconds that a grammar may take to be read and compiled."""

STOPS_TIME_LIMIT = 2.0
"""Seconds that a grammar may take to be compiled once more for a request that ordinary tokens stop, and as many for its
shortest text to be found.

Both are done where the grammar is handed to the request, and the server waits.
"""

_THREADS = max(1, min(8, (os.cpu_count() or 1) // 2))
"""How many threads may fill one batch of masks; SGLang's own processes need the others."""

_MANAGER = "sglang.srt.constrained.grammar_manager.GrammarManager"
_TREE_MASKS = "sglang.srt.speculative.spec_utils.generate_token_bitmask"


def register() -> None:
    """Make ``constrain`` a grammar back end of this process; twice is as good as once."""
    if NAME in GRAMMAR_BACKEND_CHOICES:
        return
    GRAMMAR_BACKEND_CHOICES.append(NAME)
    register_grammar_backend(NAME, create_backend)
    # It is called for each request that has got its grammar, be it from the cache or just compiled.
    HookRegistry.register(f"{_MANAGER}._apply_request_reasoning_config", _limit_after, HookType.AROUND)
    # It goes through the trees of drafts, one request and one draft at a time.
    HookRegistry.register(_TREE_MASKS, _fill_trees, HookType.AROUND)


def _limit_after(original: Callable[..., None], manager: Any, request: Any) -> None:
    original(manager, request)
    limit_request(request)


_TreeMasks = tuple[torch.Tensor | None, BaseGrammarObject | None]


def _fill_trees(
    original: Callable[..., _TreeMasks],
    reqs: Sequence[Any],
    next_token: torch.Tensor,
    next_sibling: torch.Tensor,
    drafts: torch.Tensor,
    vocab_size: int,
) -> _TreeMasks:
    """The masks of all trees of drafts of a step, those of constrain's grammars in one call; and one of the grammars.

    Parameters
    ----------
    original : callable
        SGLang's own, for requests of which not every token is one of a text.
    reqs : sequence of sglang.srt.managers.schedule_batch.Req
    next_token, next_sibling : int[n, nodes]
        Of each node of a request's tree its first child, and the next child of its parent; -1 for none.
    drafts : int[n, nodes]
        The token of each node; that of the first has been accepted.
    vocab_size : int

    Returns
    -------
    mask : int32[n * nodes, words] or None
        A row for each node; all tokens are allowed behind what is not allowed.  None where no request has a grammar.
    grammar : BaseGrammarObject or None
    """
    grammars = [request.grammar for request in reqs]
    known = [grammar for grammar in grammars if grammar is not None]
    if not known:
        return None, None
    nodes = drafts.shape[-1]
    mask = known[0].allocate_vocab_mask(vocab_size=vocab_size, batch_size=drafts.numel(), device="cpu")
    matchers, tokens, parents, together, alone = [], [], [], [], []
    for number, grammar in enumerate(grammars):
        if grammar is None:
            continue
        matcher = _matcher_of(grammar)
        tree = next_token[number], next_sibling[number], drafts[number]
        before = None if matcher is None else _parents(*tree, matcher)
        if matcher is None or before is None:
            alone.append(number)
            continue
        matchers.append(matcher)
        tokens.append(drafts[number][1:].tolist())
        parents.append(before)
        together.append(number)
    are_chains = all(before == list(range(-1, nodes - 2)) for before in parents)
    rows = [number * nodes for number in together]
    try:
        fill_draft_bitmasks(matchers, tokens, None if are_chains else parents, mask, first_rows=rows, threads=_THREADS)
        for row in rows:
            part = mask[row : row + nodes]
            part[~part.any(dim=1)] = -1
    except ConstrainError:
        # One takes too much time or memory.
        alone += together
    for number in alone:
        tree = next_token[number], next_sibling[number], drafts[number]
        mask[number * nodes : (number + 1) * nodes] = _masks_of_one(original, reqs[number], tree, vocab_size)
    return mask, known[-1]


def _masks_of_one(original: Callable[..., _TreeMasks], request: Any, tree: Any, vocab_size: int) -> Any:
    """The masks of one tree, made by SGLang's own code; all tokens where its grammar cannot be followed any more."""
    try:
        return original([request], *(part[None] for part in tree), vocab_size)[0]
    except ConstrainError:
        outer = request.grammar
        grammar = outer.grammar if isinstance(outer, ReasonerGrammarObject) else outer
        if not isinstance(grammar, ConstrainGrammar) or grammar.failure is None:
            raise
        return -1


def _matcher_of(grammar: BaseGrammarObject) -> Matcher | None:
    """The matcher of a request, where every token from here on is one of its text."""
    if isinstance(grammar, ReasonerGrammarObject):
        if grammar.reasoning_in_grammar or not grammar._is_generation():
            return None
        grammar = grammar.grammar
    if not isinstance(grammar, ConstrainGrammar) or grammar.failure is not None or grammar.is_terminated():
        return None
    return grammar.matcher


def _parents(
    next_token: torch.Tensor, next_sibling: torch.Tensor, drafts: torch.Tensor, matcher: Matcher
) -> list[int] | None:
    """The parent of each node behind the first one, as ``fill_draft_bitmasks`` wants them; None for other trees.

    Others are trees with nodes before their parents, or that hang nowhere, and with tokens of no vocabulary.
    """
    size = matcher.compiled.vocabulary.size
    children, siblings = next_token.tolist(), next_sibling.tolist()
    parents = [-2] * len(children)
    for node, child in enumerate(children):
        while child > node and parents[child] == -2:
            parents[child] = node - 1
            child = siblings[child]
        if child != -1:
            return None
    if siblings[0] != -1 or -2 in parents[1:] or not all(0 <= token < size for token in drafts[1:].tolist()):
        return None
    return parents[1:]


def create_backend(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None) -> Any:
    """The back end for a server's options; SGLang calls it by the name that was registered.

    Raises
    ------
    ConstrainError
        If the tokenizer's tokens have no exact bytes, there is no end token, or an option cannot be met.
    """
    serving = get_serving()
    backend = ConstrainBackend(
        tokenizer,
        vocab_size,
        eos_token_ids,
        is_compact=bool(serving.constrained_json_disable_any_whitespace),
        max_whitespace=serving.constrained_json_max_whitespace_cnt,
        whitespace_pattern=serving.constrained_json_whitespace_pattern or None,
    )
    if not serving.reasoning_parser:
        return backend
    # SGLang wraps its own back ends, not those that are registered.
    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        # SGLang warns of it, and goes on without.
        return backend
    return ReasonerGrammarBackend(
        backend, parser, tokenizer, enable_strict_thinking=bool(serving.enable_strict_thinking)
    )


def limit_request(request: Any) -> None:
    """Let a request's text be complete within its ``max_new_tokens``, and end with what stops the request.

    If that cannot be, the request is ended with the reason: its tokens are too few for any text, or ``min_new_tokens``
    may forbid the end where there is nothing else.

    Parameters
    ----------
    request : sglang.srt.managers.schedule_batch.Req
        With its grammar; one of another back end, or one that could not be compiled, is left as it is.
    """
    asked, outer = request.sampling_params, request.grammar
    is_thinking = isinstance(outer, ReasonerGrammarObject)
    grammar = outer.grammar if is_thinking else outer
    if not isinstance(grammar, ConstrainGrammar):
        return
    try:
        if asked.min_new_tokens:
            raise ConstrainError("min_new_tokens cannot be combined with a grammar: a text may have to end before")
        if asked.stop_token_ids:
            grammar.end_with(asked.stop_token_ids)
        if asked.max_new_tokens is None:
            return
        if is_thinking and outer._is_thinking() and not outer.reasoning_in_grammar:
            _limit_thinking(outer, grammar, asked.max_new_tokens)
        else:
            grammar.limit(asked.max_new_tokens)
    except ConstrainError as error:
        request.set_finish_with_abort(str(error))


def _limit_thinking(outer: ReasonerGrammarObject, grammar: ConstrainGrammar, limit: int) -> None:
    """End thinking when just the tokens are left that end it, and the shortest text with its end token.

    Nor may thinking end the request, since there would be no text.
    """
    needed = len(outer.think_end_ids) + Matcher(grammar.compiled).tokens_to_finish()
    if needed > limit:
        raise ConstrainError(
            f"max_new_tokens is {limit}, but the end of thinking and the shortest text take {needed} tokens"
        )
    most = max(limit - needed - 1, 0)
    outer.max_think_tokens = most if outer.max_think_tokens < 0 else min(outer.max_think_tokens, most)
    ends = [token for token in grammar.ends if token not in outer.think_end_ids]
    outer.think_excluded_token_ids = [*(outer.think_excluded_token_ids or ()), *ends]
    outer.enable_token_filter, outer.token_filter_fn = True, ConstrainBackend.set_token_filter
    grammar.limit(limit, lambda: len(outer._thinking_match_history))


class ConstrainGrammar(BaseGrammarObject):  # type: ignore[misc, unused-ignore]
    """One request.

    Parameters
    ----------
    compiled : CompiledGrammar
    key : str
        What was asked for, for messages.
    stats : GrammarStats, optional
    """

    def __init__(self, compiled: CompiledGrammar, key: str, stats: GrammarStats | None = None) -> None:
        super().__init__()
        self.compiled = compiled
        self.key = key
        self.grammar_stats = stats
        self.ends = compiled.vocabulary.eos_ids
        """The tokens that end the text."""
        self._matcher = Matcher(compiled)
        self._limit: int | None = None
        self._before: Callable[[], int] | None = None
        self._begun_at = 0
        self.failure: ConstrainError | None = None
        """Why there are no masks any more: the grammar takes too much time or memory from here on.

        A rollback leaves it.
        """

    @property
    def matcher(self) -> Matcher:
        """The matcher; where the request thinks, one for what thinking has left, until a token is accepted."""
        if self._before is not None and self._limit is not None and not self._matcher.steps:
            before = self._before()
            if before != self._begun_at:
                try:
                    self._matcher = self._matcher_within(self._limit - before)
                except ConstrainError:
                    # A draft that thinks on where the mask does not let the model do so.
                    self._matcher = self._matcher_within(None)
                self._begun_at = before
        return self._matcher

    def _matcher_within(self, tokens: int | None) -> Matcher:
        return matcher_within(self.compiled, tokens, stop_token_ids=self.ends, time_limit=STOPS_TIME_LIMIT)

    def end_with(self, tokens: Iterable[int]) -> None:
        """Let these tokens end the text too, and be no piece of it; those that the vocabulary lacks are of no matter.

        Raises
        ------
        ConstrainError
            If the grammar takes too much time or memory to be compiled for them.
        """
        size = self.compiled.vocabulary.size
        self.ends = tuple(sorted({*self.ends, *(token for token in tokens if 0 <= token < size)}))
        with limited(STOPS_TIME_LIMIT):
            self.compiled = self.compiled.ending_with(self.ends)
        self._matcher = self._matcher_within(None)

    def limit(self, tokens: int, before: Callable[[], int] | None = None) -> None:
        """Let the text be complete within so many tokens, those included that ``before()`` says went into thinking.

        Raises
        ------
        ConstrainError
            If they are too few for any text of the grammar.
        """
        self._matcher = self._matcher_within(tokens)
        self._limit, self._before, self._begun_at = tokens, before, 0

    def accept_token(self, token: int) -> None:
        """Go on with a token; after an end token nothing happens.

        Raises
        ------
        ConstrainError
            If the grammar does not allow it here, or cannot be followed any more.  SGLang ends the request then.
        """
        matcher = self.matcher
        if matcher.is_terminated():
            return
        self.current_token = token
        if self.failure is None and 0 <= token < self.compiled.vocabulary.size:
            try:
                if matcher.accept_token(token):
                    return
            except ConstrainError as error:
                self.failure = error
        if self.failure is not None:
            raise ConstrainError(f"{self.key[:200]} can be followed no further: {self.failure}")
        raise ConstrainError(f"token {token} is not allowed here, after {matcher.steps} tokens of {self.key[:200]}")

    def rollback(self, k: int) -> None:
        """Take back the last ``k`` tokens."""
        self._matcher.rollback(k)

    def is_terminated(self) -> bool:
        """Whether an end token has been accepted."""
        return self._matcher.is_terminated()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """A mask in the machine's memory, all tokens allowed: int32[batch_size, ceil(vocab_size / 32)]."""
        return ConstrainBackend.allocate_vocab_mask(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the tokens that may come next into a row; all of them after a failure.

        An exception would end the server, and a token that is not accepted ends the request alone.
        """
        if self.failure is None:
            try:
                self.matcher.fill_next_token_bitmask(vocab_mask, idx)
                return
            except ConstrainError as error:
                self.failure = error
        vocab_mask[idx] = -1

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Write the rows of a batch, in one call where all are constrain's; other rows stay as they are."""
        if all(isinstance(entry.grammar, ConstrainGrammar) and entry.grammar.failure is None for entry in entries):
            matchers, rows = [entry.grammar.matcher for entry in entries], [entry.row for entry in entries]
            # One may take too much time or memory; one by one it is found which.
            with contextlib.suppress(ConstrainError):
                fill_next_token_bitmask_batch(matchers, vocab_mask, indices=rows, threads=_THREADS)
                return
        BaseGrammarObject.fill_vocab_mask_batched(entries, vocab_mask)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow all tokens in all rows."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The mask on the model's device; from pinned memory without waiting for it."""
        return ConstrainBackend.move_vocab_mask(vocab_mask, device)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Set the logits of what a mask does not allow to -inf, in place: float[rows, vocabulary]."""
        ConstrainBackend.apply_vocab_mask(logits, vocab_mask)

    def copy(self) -> ConstrainGrammar:
        """An independent one at the same place."""
        twin = ConstrainGrammar.__new__(ConstrainGrammar)
        twin.__dict__.update(self.__dict__)
        twin._matcher = self._matcher.fork()
        if self.grammar_stats is not None:
            twin.grammar_stats = GrammarStats(
                compilation_time=self.grammar_stats.compilation_time,
                is_cache_hit=True,
                dispatch_type=self.grammar_stats.dispatch_type,
            )
        return twin

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that has to come next, as ``([], text)``; None where there is a choice, or after a failure."""
        if self.failure is not None:
            return None
        try:
            forced = self.matcher.forced_bytes()
        except ConstrainError as error:
            self.failure = error
            return None
        # The last character may be there in part.
        text = forced.decode("utf-8", "ignore") if forced else ""
        return ([], text) if text and forced.startswith(text.encode()) else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text of :meth:`try_jump_forward`; there is no state besides."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: Sequence[int], new_output_ids: Sequence[int], next_state: int
    ) -> None:
        """Go back to where two outputs differ, and on with the new one.

        Raises
        ------
        ConstrainError
            If the grammar does not allow the new one.
        """
        both = min(len(old_output_ids), len(new_output_ids))
        same = next((at for at in range(both) if old_output_ids[at] != new_output_ids[at]), both)
        self.rollback(len(old_output_ids) - same)
        for token in new_output_ids[same:]:
            self.accept_token(token)

    def __repr__(self) -> str:
        return f"<ConstrainGrammar: {self._matcher!r} of {self.key[:200]!r}>"


class ConstrainBackend(BaseGrammarBackend):  # type: ignore[misc, unused-ignore]
    """Makes the grammars of one server.

    Parameters
    ----------
    tokenizer
        The model's.
    vocab_size : int
        How many logits the model has.
    eos_token_ids : ids, optional
        The tokens that end a text; by default the tokenizer's.
    is_compact : bool
        Whether JSON is written without white space.
    max_whitespace : int, optional
        How many white space characters may follow each other in JSON.
    whitespace_pattern : str, optional
        What stands before each token of JSON but the first.

    Raises
    ------
    ConstrainError
        If the tokens have no exact bytes, there is no end token, or the options for white space exclude each other.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: Iterable[int] | None = None,
        *,
        is_compact: bool = False,
        max_whitespace: int | None = None,
        whitespace_pattern: str | None = None,
    ) -> None:
        super().__init__()
        ends = None if not eos_token_ids else list(eos_token_ids)
        vocabulary = Vocabulary.from_huggingface(tokenizer, size=vocab_size, eos_ids=ends)
        if not vocabulary.eos_ids:
            raise ConstrainError("the tokenizer has no end token, so that no text could end")
        self.compiler = GrammarCompiler(vocabulary)
        self._is_compact, self._max_whitespace = is_compact, max_whitespace
        self._whitespace_pattern = whitespace_pattern
        # A pattern that is none, or does not go with the others, is told when the server starts.
        self._schema("{}", Deadline(TIME_LIMIT))

    def _compile(self, kind: str, key: str, make: Callable[[Deadline], Grammar]) -> BaseGrammarObject:
        deadline = Deadline(TIME_LIMIT)
        try:
            compiled = self.compiler.compile(make(deadline), time_limit=deadline)
        except ConstrainError as error:
            return InvalidGrammarObject(str(error))
        grammar = ConstrainGrammar(compiled, key, GrammarStats(dispatch_type=kind))
        # The first mask takes longest; here it holds nobody up.
        grammar.matcher.fill_next_token_bitmask(allocate_token_bitmask(1, compiled.vocabulary.size))
        return grammar

    def _schema(self, key_string: str, deadline: Deadline) -> Grammar:
        return Grammar.from_json_schema(
            # As text: read by Python's json, numbers would be rounded.
            "true" if key_string == ANY_JSON else key_string,
            whitespace="compact" if self._is_compact else "flexible",
            max_whitespace=None if self._is_compact else self._max_whitespace,
            whitespace_pattern=self._whitespace_pattern,
            time_limit=deadline,
        )

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a JSON Schema, or of any JSON."""
        return self._compile("json", key_string, lambda deadline: self._schema(key_string, deadline))

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a regular expression."""
        return self._compile("regex", key_string, lambda deadline: Grammar.from_regex(key_string, time_limit=deadline))

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """The grammar of an EBNF, or of Lark's notation, which requests give in the same place."""
        return self._compile("ebnf", key_string, lambda deadline: ebnf_or_lark_grammar(key_string, time_limit=deadline))

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a structural tag."""
        return self._compile(
            "structural_tag", key_string, lambda deadline: structural_tag_grammar(key_string, time_limit=deadline)
        )

    def dispatch_fallback(self, key_type: str, key_string: str) -> BaseGrammarObject:
        """What cannot be enforced is said to be so."""
        return InvalidGrammarObject(f"grammars of the kind {key_type!r} are not known to constrain")

    def reset(self) -> None:
        """Forget all grammars."""
        super().reset()
        self.compiler.clear()

    def initialize_vocab_mask_buffer(self, name: str, vocab_size: int, max_rows: int, device: Any) -> torch.Tensor:
        """A mask that is used again and again."""
        fresh = self.allocate_vocab_mask(vocab_size, max_rows, device)
        buffer: torch.Tensor = register_vocab_mask_buffer(name, fresh, max_rows)
        return buffer

    @property
    def is_support_token_filter(self) -> bool:
        """Whether :meth:`set_token_filter` works: yes."""
        return True

    @staticmethod
    def set_token_filter(
        vocab_mask: torch.Tensor,
        token_ids: list[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allow or forbid tokens in a row; ``reset_vocab_mask`` does the opposite with all others before."""
        set_token_filter_torch(
            vocab_mask, token_ids, batch_idx, is_allowed=is_allowed, reset_vocab_mask=reset_vocab_mask
        )

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """A mask in the machine's memory, pinned where a GPU is, all tokens allowed."""
        return torch.full(
            (batch_size, words_for(vocab_size)), -1, dtype=torch.int32, pin_memory=torch.cuda.is_available()
        )

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The mask on the model's device."""
        moved: torch.Tensor = vocab_mask.to(device, non_blocking=True)
        return moved

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Set the logits of what a mask does not allow to -inf, in place: float[rows, vocabulary]."""
        apply_token_bitmask_inplace(logits, vocab_mask)
