"""Matcher: one generation in progress."""

from __future__ import annotations

import operator
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from constrain.engine.compiled_grammar import CompiledGrammar, push_token_unchecked, write_mask_unchecked
from constrain.engine.conditions.unique_keys.memory import NO_KEYS
from constrain.engine.conditions.unique_keys.status import MAY_RUN_OUT
from constrain.engine.cursor import Cursor, Saved
from constrain.engine.parser.configurations import ENDED
from constrain.engine.storage.header import KEY_ENDED, STATE_BITS, STATUS_SHIFT
from constrain.engine.storage.statuses import FAIL, REPEATED_KEY
from constrain.engine.transaction import abandon, transact
from constrain.engine.vocabulary.bitmasks import Bitmask, check_bitmask, is_allowed, words_for
from constrain.engine.vocabulary.vocabulary import END
from constrain.errors import ConstrainError

if TYPE_CHECKING:
    from constrain.engine.conditions.budget.budget import Budget


_NOTHING = object()


class Matcher(Cursor):
    """Tracks one sequence of tokens through a compiled grammar.

    A matcher is for one thread at a time; the compiled grammar is for many.

    Parameters
    ----------
    compiled : CompiledGrammar
    max_tokens : int, optional
        A budget: no token is allowed after which the text could not be completed in the tokens that are then left,
        so that it is always complete in the end.  End tokens do not count.  (docs/how-it-works.md, budgets)

    Raises
    ------
    ConstrainError
        If no text of the grammar is known that takes at most ``max_tokens``; the message says how many are needed.
    """

    def __init__(self, compiled: CompiledGrammar, max_tokens: int | None = None) -> None:
        self._budget: Budget | None = None
        super().__init__(compiled)
        self._size = compiled.vocabulary.size
        self._words = words_for(self._size)
        self._kinds = compiled.vocabulary.kind_bytes
        # The mask of the last fill, which has been looked at.
        self._checked: Any = _NOTHING
        if max_tokens is not None:
            transact(self, self._begin_budget, max_tokens)

    def __repr__(self) -> str:
        if self._state == ENDED:
            place = "ended"
        else:
            try:
                place = "may end" if self.is_accepting() else "goes on"
            except ConstrainError:
                place = "at a place that was lost"
        return f"<Matcher: {self._steps:,} {'step' if self._steps == 1 else 'steps'}, {place}>"

    def _begin_budget(self, max_tokens: int) -> None:
        from constrain.engine.conditions.budget.budget import (
            Budget,  # most matchers have none, and its kernels take time to load
        )

        self._budget = Budget(self, max_tokens)

    def _begin_keys(self) -> None:
        super()._begin_keys()
        if self._keys is None and self._budget is not None and self._budget.follows_keys(self.compiled):
            self._follow_keys()

    def _save(self) -> Saved:
        budget = self._budget
        return super()._save()._replace(budget=None if budget is None else (budget, dict(budget.__dict__)))

    def _restore(self, saved: Saved) -> None:
        self._budget = None
        if saved.budget is not None:
            self._budget, values = saved.budget
            self._budget.__dict__.update(values)
        super()._restore(saved)

    def fill_next_token_bitmask(self, mask: Any, index: int = 0) -> None:
        """Write the set of tokens that may come next into row ``index`` of ``mask``.

        Parameters
        ----------
        mask : int32[batch, ceil(vocab_size / 32)]
            From :func:`constrain.allocate_token_bitmask`; numpy, or a torch tensor on the CPU.
        index : int
            The row to write.

        Raises
        ------
        ConstrainError
            If the mask's dtype or shape is wrong or the row is out of range.

        Notes
        -----
        After an end token has been accepted no token is allowed.
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
                    compiled.finish_mask(result, self, mask, index)
                if result >= 0 and self._key_status:
                    self._forbid_repeated_keys(mask, index)
                lock.release()
            except BaseException as error:
                abandon(self, self._save(), error)
                result = FAIL
            if result >= 0:
                return
        if type(index) is not int:
            index = operator.index(index)
        out = check_bitmask(mask, index, self._words)
        if self._state == ENDED:
            out[index] = 0
            return
        transact(self, self._fill, out, index)
        if self._budget is None and type(mask) is np.ndarray:
            self._checked = mask

    def _fill(self, out: Bitmask, index: int) -> None:
        """Write a mask that is not known, or depends on more than the state."""
        if self._budget is not None:
            self._budget.fill(self, out, index)
        else:
            self.compiled.write_mask(self, out, index)
        if self._key_status:
            self._forbid_repeated_keys(out, index)

    def _forbid_repeated_keys(self, out: Bitmask, index: int) -> None:
        """Take the tokens that would bring a key again out of a mask."""
        if self._keys is None:
            row = out[index]
            if not any(is_allowed(row, token) for token in self.compiled.quote_tokens().to_next_key):
                return
            limited = self.compiled.limited_keys
            if limited is not None and not limited.is_risky:
                self._key_status = 0
                return
            self._follow_keys()
        assert self._keys is not None
        keys = self._keys.at(self)
        keys.forbid(self.compiled.vocabulary, out, index)
        if self._key_status & MAY_RUN_OUT:
            from constrain.engine.conditions.unique_keys.exhaustion import forbid_dead_ends  # few grammars need this

            forbid_dead_ends(self.compiled, self, keys, out, index)

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
        if self._budget is not None:
            return transact(self, self._take, token)
        compiled = self.compiled
        lock = compiled.lock
        parent, steps, keys, status = self._parent, self._steps, self._keys, self._key_status
        try:
            lock.acquire()
            state = push_token_unchecked(compiled.ctx, self._state, token, NO_KEYS if keys is None else keys.memory)
            if state >= 0 or state == REPEATED_KEY:
                if 0 < state < KEY_ENDED:
                    link = (compiled.generation, self._state, token, self._parent)
                    self._young.append(link)
                    self._parent, self._state, self._steps = link, state & STATE_BITS, steps + 1
                    if keys is not None:
                        self._key_status = state >> STATUS_SHIFT
                    lock.release()
                    return True
                is_taken = self._go_on(token, state)
                lock.release()
                return is_taken
            lock.release()
        except BaseException as error:
            abandon(self, Saved(False, parent, steps, keys, status), error)
        return transact(self, self._take, token)

    def _take(self, token: int) -> bool:
        """Go on with a token that is no end token; False, and nothing changes, if it is not allowed."""
        budget = self._budget
        account = None if budget is None else budget.after(self, token)
        if budget is not None and account is None:
            return False
        keys = self._keys
        is_taken = self._go_on(token, self.compiled.push_token(self, token, NO_KEYS if keys is None else keys.memory))
        if is_taken and budget is not None and account is not None:
            budget.account = account
        return is_taken

    def _go_on(self, token: int, state: int) -> bool:
        """Go on with a token to where push_token (parser/configurations.py) says; False if keys forbid it."""
        keys = self._keys
        if state == 0:
            return False
        if state == REPEATED_KEY:
            assert keys is not None
            keys.forget(self._steps)
            return False
        if state >= KEY_ENDED:
            state = self._read_keys(token, state)
            if state == 0:
                return False
        elif keys is not None:
            self._key_status = state >> STATUS_SHIFT
        state &= STATE_BITS
        self._go_to(state, token)
        return True

    def _checked_token(self, token_id: Any) -> int:
        try:
            token = operator.index(token_id)
        except TypeError:
            raise ConstrainError(f"token id {token_id!r} is not an integer") from None
        if not 0 <= token < self._size:
            raise ConstrainError(f"token id {token} is out of range, the vocabulary has {self._size} tokens")
        return token

    def _accept_end(self, token: int) -> bool:
        """Go on with a token that is an end token or a special one, or after the end."""
        if self._state == ENDED or self._kinds[token] != END:
            return False
        return transact(self, self._end, token)

    def _end(self, token: int) -> bool:
        if not self.compiled.accepts(self):
            return False
        self._go_to(ENDED, token)
        return True

    def accept_bytes(self, data: bytes, tokens: int | None = None) -> bool:
        """Go on with these bytes, all or nothing; one step for :meth:`rollback`.

        Parameters
        ----------
        data : bytes
        tokens : int, optional
            How many tokens of the budget (``max_tokens``) they are; by default the fewest that spell them, and if none
            do, the bytes are refused.  Without a budget it does not matter.
        """
        if self._state == ENDED:
            return False
        if self._budget is None:
            return transact(self, self._read_step, bytes(data))
        return transact(self, self._budget.push_bytes, self, bytes(data), tokens)

    def rollback(self, count: int = 1) -> None:
        """Take back the last ``count`` steps; a step is a successful accept_token or accept_bytes.

        Raises
        ------
        ConstrainError
            If there were fewer steps.

        Notes
        -----
        Going back further than the last 64 may mean taking all steps before once more, if
        the compiled grammar has meanwhile forgotten their states for lack of memory.
        """
        if not 0 <= count <= self._steps:
            raise ConstrainError(f"cannot roll back {count} steps, there were {self._steps}")
        transact(self, self._roll_back, count, finds=False)

    def _roll_back(self, count: int) -> None:
        if self._budget is not None:
            self._budget.roll_back(self, count)
        self._go_back(count)

    def reset(self) -> None:
        """Go back to the start of the grammar."""
        transact(self, self._go_to_start, finds=False)

    def _go_to_start(self) -> None:
        self._state, self._parent, self._steps = self.compiled.start_state, None, 0
        if self._keys is not None:
            self._keys = None
            self._begin_keys()
        if self._budget is not None:
            self._budget.reset()

    def fork(self) -> Matcher:
        """An independent matcher at the same place, with the same history; constant time."""
        twin: Matcher = super().fork()
        if self._budget is not None:
            twin._budget = self._budget.copy()
        return twin

    def is_accepting(self) -> bool:
        """Whether the text so far is complete, so that an end token is allowed."""
        return self._state != ENDED and transact(self, self.compiled.accepts, self)

    def is_terminated(self) -> bool:
        """Whether an end token has been accepted."""
        return self._state == ENDED

    def forced_bytes(self) -> bytes:
        """The longest byte string that every continuation begins with (at most 65,536 bytes of it).

        Empty where the text may end, where there is a choice, and after an end token.  It may stop
        within a character, if only its first bytes are forced.
        """
        return b"" if self._state == ENDED else transact(self, self.compiled.forced_bytes, self)

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
        """
        if self._state == ENDED:
            return []
        from constrain.engine.conditions.budget.budget import shortest_completion

        return transact(self, shortest_completion, self, self._budget)

    @property
    def max_tokens(self) -> int | None:
        """The budget, in tokens; None without one."""
        return None if self._budget is None else self._budget.most

    @property
    def tokens_left(self) -> int | None:
        """How many more tokens the budget allows; None without one."""
        return None if self._budget is None else self._budget.left

    @property
    def steps(self) -> int:
        """How many steps can be rolled back."""
        return self._steps
