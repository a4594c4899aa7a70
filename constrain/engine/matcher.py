"""Matcher: one generation in progress."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace
from threading import get_ident
from typing import Any

import numpy as np

from constrain.arguments import check_integer
from constrain.engine.captures import Capture, CaptureReader
from constrain.engine.compiled_grammar import CompiledGrammar, check_compiled
from constrain.engine.conditions.budget.budget import NOTE, Budget
from constrain.engine.conditions.budget.known_completions import NO_COMPLETION, NoCompletionError
from constrain.engine.conditions.budget.rule_budget import RuleBudget, shortest_completion
from constrain.engine.conditions.budget.stack_budget import StackBudget
from constrain.engine.conditions.first_region import FirstRegionBudget, tokens_for_region
from constrain.engine.conditions.limited_rules.gates import Gates
from constrain.engine.conditions.limited_rules.limited_rules import LimitedRules
from constrain.engine.conditions.protocol import condition_of
from constrain.engine.conditions.stop_tokens import StopTokens
from constrain.engine.conditions.unique_keys.unique_keys import UniqueKeys
from constrain.engine.cursor import Cursor, Saved
from constrain.engine.event_stream import CaptureStream, EventStream
from constrain.engine.forced_tokens import CONTEXT_BYTES, forced_tokens, text_behind
from constrain.engine.history import BEFORE, STEP
from constrain.engine.mask_memo import finish_mask, write_mask, write_mask_unchecked
from constrain.engine.parser.companions import NO_COMPANION, STATE_BITS, WITHOUT_QUESTION, WORD_SHIFT
from constrain.engine.parser.configurations import ENDED
from constrain.engine.storage.statuses import FAIL
from constrain.engine.temperatures import Temperatures
from constrain.engine.transaction import abandon, transact
from constrain.engine.traveller import bytes_of, can_go_on, forced_bytes, last_bytes, push_token, push_token_unchecked
from constrain.engine.vocabulary.bitmasks import Bitmask, ids_in_mask, words_for
from constrain.engine.vocabulary.encoder import Encoder
from constrain.engine.vocabulary.mask_rows import check_bitmask
from constrain.engine.vocabulary.vocabulary import END, NORMAL
from constrain.errors import ConstrainError
from constrain.grammar.events import Event, EventReader
from constrain.grammar.least_tokens import without_least
from constrain.grammar.tokens import MARK_BYTE, MARKED_BYTES, spelled_token
from constrain.kernels.untracking import untrack

_NOTHING = object()

_FIRST_TOKENS = 256

_MOST_VAIN_COMPLETIONS = 16
"""So often a limited rule may be closed on the way to the end of a text, without the end coming nearer."""


class Matcher(Cursor):
    """Tracks one sequence of tokens through a compiled grammar.

    A matcher is for one thread at a time; the compiled grammar is for many.

    Parameters
    ----------
    compiled : CompiledGrammar
    max_tokens : int, optional
        A budget: no token is allowed after which the text could not be completed in the tokens that are then left,
        so that it is always complete in the end.  End tokens do not count.  (docs/how-it-works.md, budgets)
    stop_token_ids : iterable of int, optional
        The tokens that end this text, instead of the vocabulary's end tokens: allowed exactly where the text is
        complete.  An ordinary token among them is no piece of text for this matcher, nor for its budget; the first
        matcher for a set of such tokens takes a third of a second more with a vocabulary of 128,000.

    Raises
    ------
    ConstrainError
        If no text of the grammar is known that takes at most ``max_tokens``; the message says how many are needed.
        If a stop token is out of range.
    TypeError
        If ``compiled`` is something else, such as a grammar that has not been compiled.

    Attributes
    ----------
    compiled : CompiledGrammar
        As given; or with ordinary stop tokens, the same grammar for a vocabulary in which they are no text.
    """

    compiled: CompiledGrammar

    def __init__(
        self,
        compiled: CompiledGrammar,
        max_tokens: int | None = None,
        *,
        stop_token_ids: Iterable[int] | None = None,
    ) -> None:
        check_compiled(compiled, "Matcher()")
        self._has_budget = False
        self._stops: tuple[int, ...] | None = None
        self._size = compiled.vocabulary.size
        # For pickles.
        self._given = compiled
        if stop_token_ids is not None:
            self._stops = tuple(sorted(set(self._checked_tokens(stop_token_ids, "stop_token_ids"))))
            compiled = compiled.ending_with(self._stops)
        self._reader: CaptureReader | None = None
        self._stream: EventStream | CaptureStream | None = None
        super().__init__(compiled)
        self._words = words_for(self._size)
        self._kinds = compiled.vocabulary.kind_bytes
        # The mask of the last fill, which has been looked at; and what is known of a batch (masks/members.py).
        self._checked: Any = _NOTHING
        self._members: Any = None
        if max_tokens is not None:
            transact(self, self._begin_budget, max_tokens)
        if compiled.region is not None:
            self._begin_region(compiled.region, max_tokens)
        if compiled.ir.token_limits:
            transact(self, self._begin_limits)
        if self._stops is not None and self._stops != compiled.vocabulary.eos_ids:
            stops = StopTokens(compiled.vocabulary, self._stops)
            self._conditions, self._kinds = (*self._conditions, stops), stops.kinds
            self._heed()

    def __repr__(self) -> str:
        if self._state == ENDED:
            place = "ended"
        else:
            try:
                place = "may end" if self.is_accepting() else "goes on"
            except ConstrainError:
                place = "at a place that was lost"
        return f"<Matcher: {self._steps:,} {'step' if self._steps == 1 else 'steps'}, {place}>"

    def __reduce__(self) -> Any:
        # The steps say it all: who unpickles it takes them again.
        prices = {} if self._budget is None else self._budget.account.prices()
        return _matcher_behind, (self._given, self.max_tokens, self._stops, self._steps_taken(), prices)

    def _begin_budget(self, max_tokens: int) -> None:
        if self.compiled.ir.token_limits and not self.compiled.kept(Gates).have_costs:
            raise ConstrainError(
                "max_tokens beside a rule with [min_tokens] needs a vocabulary with a token for the byte 0xfe"
            )
        kind = RuleBudget if self.compiled.ir.parse_table is None else StackBudget
        budget: Budget = kind(self, max_tokens)
        self._conditions, self._has_budget = (budget, *self._conditions), True
        self._heed()

    def _begin_limits(self) -> None:
        # Behind the budget, which says how much is left for what follows a rule.
        self._conditions = (*self._conditions, LimitedRules(self.compiled))
        self._heed()

    def _begin_region(self, region: CompiledGrammar, max_tokens: int | None) -> None:
        """Let what the text begins with keep its own budget, and leave room for the shortest rest in that of the whole.

        Raises :class:`ConstrainError` if there is none for the region.
        """
        first = self.compiled.ir.first_region
        assert first is not None
        most = tokens_for_region(first, region, max_tokens, self._without_budget)
        self._conditions = (*self._conditions, FirstRegionBudget(Matcher(region, most)))
        self._heed()

    def _without_budget(self) -> Matcher:
        """A copy of one that has a budget."""
        twin = self.fork()
        twin._conditions, twin._has_budget = twin._conditions[1:], False
        twin._heed()
        return twin

    def _is_unasked(self) -> bool:
        """Whether none of the conditions that always ask need be asked here: there is none, or an ample budget.

        The caller holds the lock.
        """
        asking = self._asking
        if asking != 1 or not self._has_budget:
            return not asking
        budget: Budget = self._conditions[0]  # type: ignore[assignment]
        return budget.is_ample(self.compiled, self._state, self._steps)

    def _has_plain_mask(self) -> bool:
        """Whether the mask is that of the grammar, although there is a note: that of a budget that is ample.

        The caller holds the lock.
        """
        return self._note == NOTE and self._is_unasked()

    def _restrict(self, out: Bitmask, index: int) -> None:
        if not self._has_plain_mask():
            super()._restrict(out, index)

    @property
    def _budget(self) -> Budget | None:
        """The condition that has been asked for, which is the first then."""
        return self._conditions[0] if self._has_budget else None  # type: ignore[return-value]

    def fill_next_token_bitmask(self, mask: Any, index: int = 0) -> None:
        """Write the set of tokens that may come next into row ``index`` of ``mask``.

        Parameters
        ----------
        mask : int32[batch, ceil(vocab_size / 32)]
            A numpy array or torch tensor; :func:`constrain.allocate_token_bitmask` makes one.  It may be wider, which a
            model's padded output is: what is behind the vocabulary is cleared.  It may be a part of a larger array.
            A mask of exactly this shape in one piece of memory is written in place, others by way of a copy of a row.
        index : int
            The row to write.  The others stay as they are.

        Raises
        ------
        ConstrainError
            If the mask's dtype or shape is wrong, it is read-only, or the row is out of range.

        Notes
        -----
        After an end token has been accepted no token is allowed.  After an exception the row may hold anything.
        """
        if mask is self._checked and type(index) is int and mask.flags.writeable:
            # Nearly every time it is the array of the time before, and this is all that there is to do; another call
            # would take a tenth of the time.
            compiled = self.compiled
            lock = compiled.lock
            try:
                lock.acquire()
                if get_ident() != compiled.thread:
                    compiled.share_scratch()
                result = write_mask_unchecked(compiled.ctx, self._state, mask, index)
                if result > 0:
                    finish_mask(compiled, result, self, mask, index)
                if result >= 0 and self._note:
                    self._restrict(mask, index)
                lock.release()
            except BaseException as error:
                abandon(self, self._save(), error)
                result = FAIL
            if result >= 0:
                return
        if type(index) is not int:
            index = check_integer("the row of a mask", index)
        rows = check_bitmask(mask, index, self._words)
        if not rows.is_direct:
            apart = np.zeros((1, self._words), np.int32)
            if self._state != ENDED:
                transact(self, self._fill, apart, 0)
            rows.put(index, apart[0])
            return
        if self._state == ENDED:
            rows.array[index] = 0
            return
        transact(self, self._fill, rows.array, index)
        if type(mask) is np.ndarray:
            self._checked = mask

    def _fill(self, out: Bitmask, index: int) -> None:
        """Write a mask that is not known, or depends on more than the state."""
        write_mask(self.compiled, self, out, index)
        if self._note:
            self._restrict(out, index)

    def accept_token(self, token_id: int) -> bool:
        """Go on with a token.  False, and nothing changes, if it is not allowed here.

        Raises
        ------
        ConstrainError
            If the id is out of range.
        """
        token = token_id
        if type(token) is not int or not 0 <= token < self._size:
            token = self._checked_token(token_id)
        if self._kinds[token] or self._state == ENDED:
            return self._accept_end(token)
        compiled = self.compiled
        lock = compiled.lock
        parent, steps, companion = self._parent, self._steps, self._companion
        try:
            lock.acquire()
            if self._has_budget and self._is_unasked():
                companion = self._unasked_companion
            state = push_token_unchecked(compiled.ctx, self._state, token, companion)
            if state >= 0:
                if 0 < state < WITHOUT_QUESTION:
                    # What Cursor._advance does, written out: the calls would take a fifth of the time.
                    link = (compiled.generation, self._state, token, self._parent)
                    untrack(link)
                    self._parent, self._state, self._steps = link, state & STATE_BITS, steps + 1
                    if companion is not NO_COMPANION:
                        self._note = state >> WORD_SHIFT | self._note & NOTE
                    lock.release()
                    return True
                is_taken = self._advance(token, state)
                lock.release()
                return is_taken
            lock.release()
        except BaseException as error:
            abandon(self, Saved(False, parent, steps, self._conditions), error)
        return transact(self, self._take, token)

    def accept_tokens(self, token_ids: Iterable[int]) -> bool:
        """Go on with some tokens, all or none of them; each is a step for :meth:`rollback`.

        False, and nothing changes, if one is not allowed when it is its turn.  After an end token none is.

        Raises
        ------
        ConstrainError
            If an id is out of range; nothing changes then.
        """
        tokens = self._checked_tokens(token_ids, "token_ids")
        begin = self._steps
        ended, parent = self._state == ENDED, self._parent
        try:
            is_taken = all(map(self.accept_token, tokens))
            if not is_taken:
                self.rollback(self._steps - begin)
        except BaseException:
            self._restore(Saved(ended, parent, begin, self._conditions))
            raise
        return is_taken

    def validate_tokens(self, token_ids: Iterable[int]) -> int:
        """How many of the tokens, from the first on, could be accepted one after the other; nothing moves.

        Raises
        ------
        ConstrainError
            If an id is out of range.
        """
        tokens = self._checked_tokens(token_ids, "token_ids")
        ahead = self.fork()
        count = 0
        while count < len(tokens) and ahead.accept_token(tokens[count]):
            count += 1
        return count

    def _take(self, token: int) -> bool:
        """Go on with a token that is no end token; False, and nothing changes, if it is not allowed."""
        return self._advance(token, push_token(self.compiled, self, token, self._companion))

    def _checked_token(self, token_id: Any) -> int:
        try:
            token = operator.index(token_id)
        except TypeError:
            raise ConstrainError(f"token id {token_id!r} is not an integer") from None
        if not 0 <= token < self._size:
            raise ConstrainError(f"token id {token} is out of range, the vocabulary has {self._size} tokens")
        return token

    def _checked_tokens(self, token_ids: Any, name: str) -> list[int]:
        if not isinstance(token_ids, Iterable):
            raise ConstrainError(f"{name} must be a list of token ids, not {token_ids!r}")
        return list(map(self._checked_token, token_ids))

    def _accept_end(self, token: int) -> bool:
        """Go on with a token that is an end token or a special one, or after the end."""
        if self._state == ENDED or self._kinds[token] != END:
            return False
        return transact(self, self._end, token)

    def _end(self, token: int) -> bool:
        compiled = self.compiled
        if token in compiled.spelled_ids and self._take(token):
            # The grammar names it here.  If nothing can follow, the text has ended with it.
            if not can_go_on(compiled, self):
                self._state = ENDED
            return True
        if not compiled.accepts(self):
            return False
        if self._has_budget:
            self._budget.settle(self._steps)  # type: ignore[union-attr]
        self._go_to(ENDED, token)
        return True

    def accept_bytes(self, data: bytes, tokens: int | None = None) -> bool:
        """Go on with these bytes, all or nothing; one step for :meth:`rollback`.

        They are text: a special token that the grammar names cannot be given as bytes.

        Parameters
        ----------
        data : bytes
        tokens : int, optional
            How many tokens of the budget (``max_tokens``) they are; by default the fewest that spell them, and if none
            do, the bytes are refused.  Without a budget it does not matter.

        Raises
        ------
        ConstrainError
            If ``data`` is a str, or anything else than bytes.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            # bytes(3) would be three zero bytes.
            raise ConstrainError(f"accept_bytes() takes bytes, not {type(data).__name__}: of a text, text.encode()")
        if self._state == ENDED or not self._is_text(data):
            return False
        return transact(self, self._read_paid_step, bytes(data), tokens)

    def _read_paid_step(self, data: bytes, tokens: int | None) -> bool:
        budget = self._budget
        return (budget is None or budget.can_pay(self, data, tokens)) and self._read_step(data)

    def rollback(self, count: int = 1) -> None:
        """Take back the last ``count`` steps; a step is a successful accept_token or accept_bytes.

        Raises
        ------
        ConstrainError
            If there were fewer steps, or ``count`` is no integer.

        Notes
        -----
        Going back further than the last 64 may mean taking all steps before once more, if
        the compiled grammar has meanwhile forgotten their states for lack of memory.
        """
        try:
            count = operator.index(count)
        except TypeError:
            raise ConstrainError(f"rollback() takes a number of steps, not {count!r}") from None
        if not 0 <= count <= self._steps:
            raise ConstrainError(f"cannot roll back {count} steps, there were {self._steps}")
        if self._stream is not None:
            # First, so that what stops the call in between has events told twice at worst.
            self._stream.rewind(self._steps - count)
        transact(self, self._go_back, count, finds=False)

    def reset(self) -> None:
        """Go back to the start of the grammar."""
        if self._stream is not None:
            self._stream.rewind(0)
        transact(self, self._go_to_start, finds=False)

    def _go_to_start(self) -> None:
        self._state, self._parent, self._steps = self.compiled.start_state, None, 0
        self._rewind()

    def fork(self) -> Matcher:
        """An independent matcher at the same place, with the same history; constant time."""
        twin: Matcher = super().fork()
        twin._reader = None
        if self._stream is not None:
            twin._stream = self._stream.copy()
        return twin

    def is_accepting(self) -> bool:
        """Whether the text so far is complete, so that an end token is allowed."""
        return self._state != ENDED and transact(self, self.compiled.accepts, self)

    def is_terminated(self) -> bool:
        """Whether an end token has been accepted, and not as a part of the text that the grammar names."""
        return self._state == ENDED

    def forced_bytes(self) -> bytes:
        """The longest byte string that every continuation begins with (at most 65,536 bytes of it).

        Empty where the text may end, where there is a choice, and after an end token.  It may stop
        within a character, if only its first bytes are forced.  It ends before a special token, which is no text:
        :meth:`forced_special_token`.  What the grammar's rules force is found; that keys are used up, or a budget
        nearly so, may force more.
        """
        return self._forced()[0]

    def forced_special_token(self) -> int | None:
        """The special token that every continuation begins with, of those that the grammar names; None for none."""
        text, token = self._forced()
        return None if text else token

    def forced_tokens(self, history: Sequence[int] | None = None, *, tokenizer: Encoder | None = None) -> list[int]:
        """The tokens that have to come next, as the tokenizer itself would write them: a draft that needs no model.

        Forced text becomes tokens only as far as they are sure: they are those of the tokenizer for the text before
        and the forced text, whatever of what the grammar allows follows.  The last ones, which may be merged with what
        follows, are left to the model, and so is all where the text before ends within a token of the tokenizer's.
        (What can follow is tried: each next character that is allowed, and the rests of tokens that reach beyond.)

        Parameters
        ----------
        history : sequence of int, optional
            The tokens of the sequence so far, a prompt in front of the text included; the last few are needed.  By
            default those that were accepted.
        tokenizer : Encoder, optional
            By default the one that the vocabulary was made from.

        Returns
        -------
        list of int
            Tokens that can be accepted one after the other; none where the text may end, or there is a choice.  An end
            token is never among them.

        Raises
        ------
        ConstrainError
            If no tokenizer is known, or an id of the history is out of range.
        """
        vocabulary = self.compiled.vocabulary
        tokenizer = vocabulary.tokenizer if tokenizer is None else tokenizer
        if tokenizer is None:
            raise ConstrainError(
                "forced_tokens() needs the tokenizer, which this vocabulary was not made from: give tokenizer=..."
            )
        if history is None:
            data = last_bytes(self.compiled, self._parent, CONTEXT_BYTES + MARKED_BYTES)
            if self.compiled.spelled_ids and MARK_BYTE in data:
                # Nothing is joined over a special token.
                data = data[data.rindex(MARK_BYTE) + MARKED_BYTES :]
        else:
            data = text_behind(vocabulary, history)
        text, special = self._forced()
        if text:
            tokens = forced_tokens(vocabulary, tokenizer).next(data, text, self)
        else:
            tokens = [] if special is None or self._kinds[special] == END else [special]
        # A budget may ask for fewer and longer tokens.
        return tokens[: self.validate_tokens(tokens)] if tokens else []

    def _forced(self) -> tuple[bytes, int | None]:
        """The text that is forced, and the special token that is forced behind it."""
        if self._state == ENDED:
            return b"", None
        data = transact(self, forced_bytes, self.compiled, self)
        text = data.partition(MARK_BYTE)[0] if self.compiled.spelled_ids else data
        certain, _ = self._certain(text)
        return certain, spelled_token(data[len(text) :]) if len(certain) == len(text) < len(data) else None

    def _certain(self, data: bytes) -> tuple[bytes, bool]:
        """As :meth:`LimitedRules.certain`; all is certain where there are none."""
        limits = condition_of(self, LimitedRules)
        return (data, True) if limits is None or not data else transact(self, limits.certain, self, data)

    def _ahead(self, forced: bytes) -> Matcher | None:
        """A matcher behind forced text that can go on with all that may follow, however it is cut into tokens.

        So neither a budget nor limits of tokens take anything away, nor stop tokens; what has been written does, since
        it is the same in all tokens.  None if it is not certain what may follow.
        """
        if not self._certain(forced)[1]:
            return None
        twin = self.fork()
        twin._conditions = tuple(each for each in twin._conditions if isinstance(each, UniqueKeys))
        twin._has_budget, twin._kinds = False, self.compiled.vocabulary.kind_bytes
        twin._heed()
        return twin if twin.accept_bytes(forced) else None

    def captures(self) -> list[Capture]:
        """The texts of the rules that the grammar captures, as far as they have come, in the order in which they begin.

        A rule that is reached several times is there several times; one that has matched nothing is not there.  Of
        several ways to read the text, the one counts in which what stands earlier takes as much as it can.  The work
        is done here: for a text of n bytes O(n) in lists that are written left-recursively, and at most O(n²) where the
        text can be read in one way; what is kept between two calls makes the next one cost what is new.

        Raises
        ------
        LimitError
            If there are too many ways to read the text.
        """
        return self._captures(self._state == ENDED)

    def _captures(self, has_ended: bool) -> list[Capture]:
        """The same, of a text that ends here or goes on."""
        compiled = self.compiled
        if not compiled.ir.captures:
            return []
        text, texts = self.text(self._steps), []
        if self._state == ENDED:
            assert self._parent is not None
            last = self._parent[STEP]
            # The end token is a part of the text where the grammar names it.
            if last in compiled.spelled_ids:
                texts.append(text)
            text = text.removesuffix(bytes_of(compiled, self._parent))
        texts.append(text)
        reader, self._reader = self._reader or CaptureReader(without_least(compiled.ir)), None
        shut = self._shut() if compiled.ir.token_limits else {}
        found = next(filter(None, (reader.read(each, has_ended, shut) for each in texts)), [])
        self._reader = reader
        return [replace(each, data=compiled.vocabulary.without_spellings(each.data)) for each in found]

    def _shut(self) -> dict[int, frozenset[int]]:
        """Where in the text limited rules were closed, and which."""
        found: dict[int, frozenset[int]] = {}
        place = len(self.text(self._steps))
        link = self._parent
        while link is not None:
            rules = getattr(link[STEP], "rules", None)
            if rules:
                found[place] = rules
            place -= len(bytes_of(self.compiled, link))
            link = link[BEFORE]
        return found

    def events(self, *, at_end: bool = False) -> list[Event]:
        """What the steps since the last call have brought of the parts of the text, in their order.

        For a grammar of :meth:`constrain.Grammar.from_json_schema` or ``from_pydantic`` the parts are JSON values, each
        with its JSON pointer: an event when an object or array begins and when it is complete, and for a string or
        number at each step that brings more of it.  For a grammar with captures, an event for each capture that is new,
        has grown or is complete.  After a rollback the next call tells of the steps behind that place.

        A step of a JSON text costs about what accepting its token does, and nothing where nobody asks; captures cost
        what :meth:`captures` does.

        Parameters
        ----------
        at_end : bool
            Whether the text ends here, though no end token has been accepted: a number that is the whole text is
            complete only then, and so is a capture that could be longer.

        Raises
        ------
        ConstrainError
            If the grammar is of neither kind.
        LimitError
            As :meth:`captures`.
        """
        stream = self._stream
        if stream is None:
            stream = self._stream = self._new_stream()
        if type(stream) is EventStream:
            steps = self._steps
            if steps == stream.steps + 1 and self._state != ENDED and not at_end:
                step = self._parent[STEP]  # type: ignore[index]
                if type(step) is int:
                    # Nearly every time.  What EventStream.read does, written out.
                    places = stream.places
                    events: list[Event] = []
                    stream.places = places, stream.read_step(places[1], stream.tokens[step], step, events)
                    stream.steps = steps
                    return events
            return self._events_of(stream, steps - stream.steps, at_end)
        assert isinstance(stream, CaptureStream)
        told = stream.compare(self._steps, self.captures())
        if at_end and self._state != ENDED:
            # Nothing is kept of these: the text may go on all the same.
            told += stream.copy().compare(self._steps, self._captures(True))
        return told

    def _events_of(self, stream: EventStream, new: int, at_end: bool) -> list[Event]:
        """The events of the last ``new`` steps."""
        steps: list[int | bytes] = []
        link, has_ended = self._parent, self._state == ENDED and new > 0
        for _ in range(new):
            assert link is not None
            steps.append(link[STEP])
            link = link[BEFORE]
        # The end token is no part of the text.
        events = stream.read(steps[:0:-1] if has_ended else steps[::-1])
        if has_ended:
            events += stream.end()
        elif at_end and self._state != ENDED:
            events += stream.finish()
        return events

    def _new_stream(self) -> EventStream | CaptureStream:
        ir = self.compiled.ir
        if ir.make_events is not None:
            with self.compiled.lock:
                reader = self.compiled.kept(_event_reader)
            return EventStream(reader, self.compiled.vocabulary)
        if ir.captures:
            return CaptureStream()
        raise ConstrainError(
            "events() needs a grammar of a JSON Schema or a pydantic model, or one that captures rules"
        )

    def tokens_to_finish(self) -> int:
        """How many tokens the shortest completion of the text takes that is known; 0 where it may end.

        It is an upper bound: there may be a shorter one.  The end token does not count.

        Raises
        ------
        ConstrainError
            If no completion is found in the tokens of the vocabulary.
        """
        return len(self.completion())

    def completion(self) -> list[int]:
        """The tokens of the shortest completion of the text that is known; none where it may end.

        Each of them is allowed when it is its turn, also by a budget; then an end token is.

        Raises
        ------
        ConstrainError
            If no completion is found in the tokens of the vocabulary.
        LimitError
            If none is found in time, which may be with ``lexing="longest"``.
        """
        if self._state == ENDED:
            return []
        if self.compiled.ir.token_limits:
            return self.fork()._completed()
        return transact(self, shortest_completion, self)

    def _completed(self) -> list[int]:
        """Complete the text, and give the tokens that did so.

        A completion is known by the rules alone.  On its way a limited rule may be closed, and what is left of the
        completion refused; then the one that is known from there is taken.  Where it begins with a gate
        (grammar/least_tokens.py), any token opens that.
        """
        begin = self._steps
        found: list[int] = []
        vain, fewest = 0, math.inf
        while vain < _MOST_VAIN_COMPLETIONS:
            if self._state == ENDED or self.is_accepting():
                return found
            known = transact(self, shortest_completion, self)
            vain, fewest = (0, len(known)) if len(known) < fewest else (vain + 1, fewest)
            for token in known:
                if not self.accept_token(token):
                    break
                found.append(token)
            if self._steps == begin:
                # Gates: most of them at once, since a long completion takes milliseconds to find.
                for _ in range(1 + len(known) // 2):
                    opening = self._any_text_token()
                    if opening is None or not self.accept_token(opening):
                        break
                    found.append(opening)
                if self._steps == begin:
                    break
            begin = self._steps
        raise NoCompletionError(NO_COMPLETION)

    def _any_text_token(self) -> int | None:
        """A token that may come next and is no special one, of letters if the first ones are; None for none."""
        row = np.zeros((1, self._words), np.int32)
        self.fill_next_token_bitmask(row)
        allowed = ids_in_mask(row[0])
        first: list[int] = allowed[np.frombuffer(self._kinds, np.uint8)[allowed] == NORMAL][:_FIRST_TOKENS].tolist()
        tokens = self.compiled.vocabulary.tokens
        return next((token for token in first if tokens[token].isalpha()), first[0] if first else None)

    @property
    def temperature(self) -> float | None:
        """The temperature that the grammar gives for the next token (``[temperature=...]``); None if it gives none.

        Of what may go on or begin here, each has the temperature of the innermost rule around it that says one; where
        these differ it is the highest.
        """
        if self._state == ENDED or not self.compiled.ir.temperatures:
            return None
        return transact(self, lambda: self.compiled.kept(Temperatures).at(self))

    @property
    def max_tokens(self) -> int | None:
        """The budget, in tokens; None without one."""
        return None if (budget := self._budget) is None else budget.most

    @property
    def tokens_left(self) -> int | None:
        """How many more tokens the budget allows; None without one."""
        budget = self._budget
        if budget is None:
            return None
        # An end token costs nothing.
        return (budget.account if self._state == ENDED else budget.settle(self._steps)).left

    @property
    def steps(self) -> int:
        """How many steps can be rolled back."""
        return self._steps


def _event_reader(compiled: CompiledGrammar) -> EventReader:
    """What all matchers of a grammar read events with."""
    assert compiled.ir.make_events is not None
    return compiled.ir.make_events()


def _matcher_behind(
    compiled: CompiledGrammar,
    max_tokens: int | None,
    stops: tuple[int, ...] | None,
    steps: list[int | bytes],
    prices: dict[int, int],
) -> Matcher:
    """A matcher that has taken some steps; ``prices`` are what those of bytes cost, by their place."""
    matcher = Matcher(compiled, max_tokens, stop_token_ids=stops)
    for place, step in enumerate(steps):
        is_taken = (
            matcher.accept_bytes(step, prices.get(place)) if isinstance(step, bytes) else matcher.accept_token(step)
        )
        if not is_taken:
            raise ConstrainError(f"step {place} of a pickled matcher is none that its grammar allows there")
    return matcher
