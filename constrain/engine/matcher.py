"""Matcher: one generation in progress."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from constrain.engine.bitmask import check_bitmask, words_for
from constrain.engine.compiled import CompiledGrammar
from constrain.engine.cursor import ENDED, Cursor
from constrain.engine.vocabulary import END, SPECIAL
from constrain.errors import ConstrainError


class Matcher(Cursor):
    """Tracks one sequence of tokens through a compiled grammar.

    A matcher is for one thread at a time; the compiled grammar is for many.

    Parameters
    ----------
    compiled : CompiledGrammar
    """

    def __init__(self, compiled: CompiledGrammar) -> None:
        super().__init__(compiled)
        self._size = compiled.vocabulary.size
        self._words = words_for(self._size)
        self._kinds = compiled.vocabulary.kinds.tobytes()

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
        if self._state > 0 and type(mask) is np.ndarray and type(index) is int:
            shape = mask.shape
            if len(shape) == 2 and shape[1] == self._words and 0 <= index < shape[0]:
                # The kernel's signature checks the rest: dtype, contiguity, writability.
                try:
                    self.compiled.write_mask(self, mask, index)
                    return
                except TypeError:
                    pass
        out = check_bitmask(mask, index, self._words)
        if self._state == ENDED:
            out[index] = 0
        else:
            self.compiled.write_mask(self, out, index)

    def accept_token(self, token_id: int) -> bool:
        """Go on with a token.  False, and nothing changes, if it is not allowed here.

        Raises
        ------
        ConstrainError
            If the id is out of range.
        """
        token = token_id
        if type(token) is not int:
            try:
                token = operator.index(token_id)
            except TypeError:
                raise ConstrainError(f"token id {token_id!r} is not an integer") from None
        if not 0 <= token < self._size:
            raise ConstrainError(f"token id {token} is out of range, the vocabulary has {self._size} tokens")
        if self._state == ENDED:
            return False
        kind = self._kinds[token]
        if kind == END:
            with self.compiled.lock:
                if not self.compiled.accepts(self):
                    return False
                self._go_to(ENDED, token)
                return True
        if kind == SPECIAL:
            return False
        compiled = self.compiled
        with compiled.lock:
            state = compiled.push_token(self, token)
            if state == 0:
                return False
            self._parent = link = (compiled.generation, self._state, token, self._parent)
            self._young.append(link)
            self._state = state
        self._steps += 1
        return True

    def accept_bytes(self, data: bytes) -> bool:
        """Go on with these bytes, all or nothing; one step for :meth:`rollback`."""
        return self._state != ENDED and self._push_bytes(bytes(data))

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
        self._go_back(count)

    def reset(self) -> None:
        """Go back to the start of the grammar."""
        with self.compiled.lock:
            self._state = self.compiled.start_state
        self._parent = None
        self._steps = 0

    def fork(self) -> Matcher:
        """An independent matcher at the same place, with the same history; constant time."""
        twin = Matcher.__new__(Matcher)
        self._twin(twin)
        return twin

    def is_accepting(self) -> bool:
        """Whether the text so far is complete, so that an end token is allowed."""
        with self.compiled.lock:
            return self._state != ENDED and self.compiled.accepts(self)

    def is_terminated(self) -> bool:
        """Whether an end token has been accepted."""
        return self._state == ENDED

    def forced_bytes(self) -> bytes:
        """The longest byte string that every continuation begins with (at most 65,536 bytes of it).

        Empty where the text may end, where there is a choice, and after an end token.  It may stop
        within a character, if only its first bytes are forced.
        """
        return b"" if self._state == ENDED else self.compiled.forced_bytes(self)

    @property
    def steps(self) -> int:
        """How many steps can be rolled back."""
        return self._steps
