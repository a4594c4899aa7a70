"""One sequence in progress, apart from the model and the sampler: what was made, what may come, how it ends."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from constrain.arguments import check_integer
from constrain.engine.compiled_grammar import CompiledGrammar, check_compiled
from constrain.engine.forced_tokens import ForcedTokens, forced_tokens
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.errors import ConstrainError
from constrain.generation.interfaces import Encoder
from constrain.generation.output import Output, VocabularyDecoder
from constrain.generation.statistics import FinishReason, Statistics
from constrain.grammar.events import Event
from constrain.tokenizers.base import Decoder, Tokenizer


@dataclass(frozen=True)
class Step:
    """One token, as it was made.

    Attributes
    ----------
    token_id : int or None
        None for a last step that only brings text which was held back as the possible beginning of a stop string, or
        the events of the end.
    text : str
        What is certain with this token.  Empty while a character's bytes are not all there, or while the text may
        become a stop string.
    forced : bool
        The grammar left no choice, and the model was not asked.
    log_probability : float or None
        Natural logarithm of the model's own probability of the token among those that were allowed.  None where it
        was not asked for.
    top : tuple of (int, float)
        The most likely tokens and their log-probabilities, as many as were asked for.
    events : tuple of Event
        What the token brings of the parts of the text (:meth:`constrain.Matcher.events`), where that was asked for.
    """

    token_id: int | None
    text: str
    forced: bool = False
    log_probability: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    events: tuple[Event, ...] = ()


class Row:
    """One sequence.

    Parameters
    ----------
    tokenizer : Encoder
        Without a grammar, a :class:`constrain.tokenizers.Tokenizer`.
    compiled_grammar : CompiledGrammar or None
        None: free text, which ends when the model says so.
    prompt_ids : list of int
        It becomes the context and grows.
    max_tokens, max_seq_len : int, int or None
        The most tokens to make, and the most that there may be with the prompt.
    stop, stop_tokens :
        As for :class:`Output`.
    skip_forced : bool
        Make forced tokens without the model.
    budget : bool
        Only allow tokens after which the text can be completed in the tokens that are left, if the grammar supports it.
    events : bool
        Give steps their events.

    Attributes
    ----------
    context : list of int
        Prompt and output.
    token_ids : list of int
        The output, without an end-of-sequence or hidden stop token.
    statistics : Statistics
    vocabulary_size : int
        How many logits are needed at least.
    free_mask : int32[words] or None
        Without a grammar: the tokens that there are.

    Raises
    ------
    ConstrainError
        A number is out of range, the prompt leaves no room, the shortest text of the grammar takes more tokens than
        there may be, free text is wanted of something that only encodes, or events of a text that has none.
    """

    def __init__(
        self,
        tokenizer: Encoder,
        compiled_grammar: CompiledGrammar | None,
        prompt_ids: list[int],
        *,
        max_tokens: int,
        max_seq_len: int | None = None,
        stop: Sequence[str] = (),
        stop_tokens: Sequence[int] = (),
        skip_forced: bool = True,
        budget: bool = True,
        events: bool = False,
    ) -> None:
        if events and compiled_grammar is None:
            raise ConstrainError("events=True needs a grammar: free text has no parts")
        check_integer("max_tokens", max_tokens)
        if max_tokens < 1:
            raise ConstrainError(f"max_tokens must be at least 1, not {max_tokens}")
        if max_seq_len is not None:
            if len(prompt_ids) >= max_seq_len:
                raise ConstrainError(
                    f"the prompt has {len(prompt_ids)} tokens, and the model's context, {max_seq_len}, has no room for "
                    "more; a shorter prompt, a longer max_seq_len or an eviction policy would help"
                )
            max_tokens = min(max_tokens, max_seq_len - len(prompt_ids))
        self.context = prompt_ids
        self.token_ids: list[int] = []
        self.statistics = Statistics(prompt_tokens=len(prompt_ids))
        self.max_tokens = max_tokens
        self.matcher: Matcher | None = None
        self.free_mask: NDArray[np.int32] | None = None
        # A matcher without a budget at the same place.
        self.scout: Matcher | None = None
        # The text since the last special token.
        self._data = bytearray()
        self._spelled_ids: frozenset[int] = frozenset()
        self._queue: deque[int] = deque()
        self._forced_rest = b""
        self._forced: ForcedTokens | None = None
        self._cancelled = threading.Event()
        self._tells_events = events
        # Those of tokens that were accepted and have not become steps.
        self._events: deque[list[Event]] = deque()
        if compiled_grammar is not None:
            check_compiled(compiled_grammar, "a generation")
            vocabulary = compiled_grammar.vocabulary
            self.vocabulary_size = vocabulary.size
            if getattr(tokenizer, "vocab_size", 0) > vocabulary.size:
                raise ConstrainError(
                    f"the grammar was compiled for {vocabulary}, but the tokenizer has {tokenizer.vocab_size:,} tokens"  # type: ignore[attr-defined]
                )
            self.matcher = Matcher(compiled_grammar, max_tokens if budget else None)
            self.scout = Matcher(compiled_grammar) if budget else self.matcher
            if events:
                # A grammar without events is refused before the first token.
                self.matcher.events()
            self._bytes_of: Callable[[int], bytes | None] = vocabulary.tokens.__getitem__
            self._eos_ids = frozenset(vocabulary.eos_ids)
            self._spelled_ids = vocabulary.spelled_ids
            self._adds_text = _bits_of_tokens_with_text(vocabulary)
            if skip_forced:
                self._forced = forced_tokens(vocabulary, tokenizer)
            decoder: Decoder = VocabularyDecoder(vocabulary)
        else:
            if not isinstance(tokenizer, Tokenizer):
                raise ConstrainError("free text, without a grammar, needs a whole tokenizer: one that decodes too")
            self.vocabulary_size = tokenizer.vocab_size
            self._bytes_of = tokenizer.token_bytes
            self._eos_ids = frozenset(tokenizer.eos_ids)
            self.free_mask = _bits_of_known_tokens(tokenizer)
            decoder = tokenizer
        before = [] if compiled_grammar is not None else list(prompt_ids)
        self._new_output: Callable[[], Output] = lambda: Output(decoder, stop, stop_tokens, before)
        self._output = self._new_output()
        self._prompt_length = len(prompt_ids)
        self._told: tuple[int, int, FinishReason | None] = (0, 0, None)

    @property
    def text(self) -> str:
        """Everything that was given out so far."""
        return self._output.text

    @property
    def is_finished(self) -> bool:
        return self.statistics.finish_reason is not None

    def cancel(self) -> None:
        """Have it end before the next token; from any thread."""
        self._cancelled.set()

    def keep(self) -> None:
        """Note that everything so far has been told."""
        self._told = len(self.token_ids), self.statistics.forced_tokens, self.statistics.finish_reason

    def restore(self) -> None:
        """Go back to the last :meth:`keep`, from wherever an exception has left a step that came behind it.

        It is done anew from the tokens that have been told, so that it may itself be interrupted and called again.
        """
        count, forced, reason = self._told
        if reason is not None:
            return
        ids = self.token_ids[:count]
        for matcher in (self.matcher, self.scout):
            if matcher is not None:
                matcher.reset()
                matcher.accept_tokens(ids)
        self._events.clear()
        if self._tells_events:
            assert self.matcher is not None
            self.matcher.events()
        self._queue.clear()
        self._forced_rest = b""
        self._output = self._new_output()
        self._data.clear()
        for token in ids:
            self._output.add(token)
            self._add_data(token)
        del self.context[self._prompt_length + count :]
        self.statistics.tokens, self.statistics.forced_tokens, self.statistics.finish_reason = count, forced, None
        del self.statistics.token_seconds[count:]
        del self.token_ids[count:]

    def step_without_model(self) -> Step | None:
        """A forced token, or what was held back at the end; None where the model has to be asked, or all is over."""
        if self._cancelled.is_set():
            self._queue.clear()
            return self._finish("cancelled")
        if self._queue:
            return self._emit(self._queue.popleft(), forced=True)
        if self.statistics.tokens >= self.max_tokens:
            whole = self.matcher is not None and self.matcher.is_accepting()
            return self._finish("complete" if whole else "length")
        if self._forced is not None:
            self._look_ahead()
            if self._queue:
                return self._emit(self._queue.popleft(), forced=True)
        return None

    def needs_text(self) -> bool:
        """Whether something has to follow, so that the model is needed whatever the mask will be."""
        return self.matcher is None or not self.matcher.is_accepting()

    def step_if_over(self, mask: NDArray[np.int32]) -> Step | None:
        """With the mask of the next token, int32[words]: if nothing but the end can follow, there is nothing to ask.

        Raises
        ------
        ConstrainError
            Nothing can follow, though something has to.
        """
        if self.matcher is None or (mask & self._adds_text).any():
            return None
        if not self.matcher.is_accepting():
            raise ConstrainError(
                f"no token of the vocabulary continues the text after {self._data[-40:].decode('utf-8', 'replace')!r}, "
                "though the grammar needs more"
            )
        return self._finish("complete")

    def fill_mask(self, mask: NDArray[np.int32], index: int = 0) -> None:
        """Write the tokens that the grammar allows next into a row of ``mask``, int32[rows, words]."""
        assert self.scout is not None
        self.scout.fill_next_token_bitmask(mask, index)

    def fill_budget_mask(self, mask: NDArray[np.int32]) -> None:
        """Write those of them that leave enough of the budget to int32[1, words]."""
        assert self.matcher is not None
        self.matcher.fill_next_token_bitmask(mask)

    def accept(self, token: int) -> bool:
        """Whether the sequence can go on with a token; if so, :meth:`step` has to follow."""
        if self.matcher is None:
            return True
        if not self.matcher.accept_token(token):
            return False
        if self.scout is not self.matcher:
            assert self.scout is not None
            self.scout.accept_token(token)
        if self._tells_events:
            self._events.append(self.matcher.events())
        return True

    def step(
        self, token: int, log_probability: float | None = None, top: tuple[tuple[int, float], ...] = ()
    ) -> Step | None:
        """The step of a token that was accepted; None where that was the end and nothing was held back."""
        over = token in self._eos_ids if self.matcher is None else self.matcher.is_terminated()
        return self._finish("complete") if over else self._emit(token, log_probability=log_probability, top=top)

    def _look_ahead(self) -> None:
        """Queue the forced tokens that are next, if any."""
        assert self.scout is not None
        assert self._forced is not None
        # What was forced before the last token, and is not said yet, is forced still.
        rest = self._forced_rest or self.scout.forced_bytes()
        self._forced_rest = rest
        if not rest:
            special = self.scout.forced_special_token()
            # An end token is left to the model: it may end the text, which is no step.
            if special is not None and special not in self._eos_ids and self.accept(special):
                self._queue.append(special)
            return
        room = self.max_tokens - self.statistics.tokens
        for token in self._forced.next(self._data, rest, self.scout)[:room]:
            # The budget may need fewer and longer tokens than the tokenizer would make.
            if not self.accept(token):
                break
            self._queue.append(token)

    def _emit(
        self,
        token: int,
        *,
        forced: bool = False,
        log_probability: float | None = None,
        top: tuple[tuple[int, float], ...] = (),
    ) -> Step | None:
        is_hidden = self._output.is_hidden_stop(token)
        piece = self._output.add_hidden_stop(token, self._data) if is_hidden else self._output.add(token)
        events = tuple(self._events.popleft()) if self._events else ()
        stopped = self._output.is_stopped
        if stopped:
            self._queue.clear()
            self._events.clear()
            self.statistics.finish_reason = "stop"
            if is_hidden:
                return Step(None, piece) if piece else None
        data = self._add_data(token)
        self._forced_rest = self._forced_rest[len(data) :]
        self.context.append(token)
        self.token_ids.append(token)
        self.statistics.tokens += 1
        self.statistics.forced_tokens += forced
        return Step(token, piece, forced, log_probability, top, events)

    def _add_data(self, token: int) -> bytes:
        """Put a token's bytes behind those since the last special token; returns them."""
        if token in self._spelled_ids:
            # Nothing is joined over it.
            self._data.clear()
            return b""
        data = self._bytes_of(token) or b""
        self._data += data
        return data

    def _finish(self, reason: FinishReason) -> Step | None:
        self.statistics.finish_reason = reason
        held = self._output.finish(self._data)
        events: list[Event] = []
        if self._tells_events and reason == "complete":
            assert self.matcher is not None
            events = [*chain.from_iterable(self._events), *self.matcher.events(at_end=True)]
        self._events.clear()
        return Step(None, held, events=tuple(events)) if held or events else None


def _bits_of_tokens_with_text(vocabulary: Vocabulary) -> NDArray[np.int32]:
    """A row of a bitmask: the tokens that make the text longer."""
    bits = np.ones(vocabulary.size, np.uint8)
    # Where the grammar names tokens, an end token may be a part of the text.
    bits[[token for token in vocabulary.eos_ids if token not in vocabulary.spelled_ids]] = 0
    bits[vocabulary.empty_ids] = 0
    return _packed(bits)


def _bits_of_known_tokens(tokenizer: Tokenizer) -> NDArray[np.int32]:
    """A row of a bitmask: all ids that have a token.  Models have logits for more."""
    bits = np.array([data is not None for data in tokenizer.tokens_as_bytes()], np.uint8)
    bits[list(tokenizer.special_ids)] = 1
    return _packed(bits)


def _packed(bits: NDArray[np.uint8]) -> NDArray[np.int32]:
    whole = np.zeros((len(bits) + 31) // 32 * 32, np.uint8)
    whole[: len(bits)] = bits
    return np.packbits(whole, bitorder="little").view("<i4").astype(np.int32)
