"""Matcher: one generation in progress."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from constrain.engine import states
from constrain.engine.bitmask import check_bitmask, words_for
from constrain.engine.compiled import CompiledGrammar
from constrain.engine.vocabulary import END, SPECIAL
from constrain.errors import ConstrainError

# The state after an end token.  Not a state of the grammar: nothing is allowed in it.
_TERMINATED = -1

_Link = tuple[int, "Any"]


class Matcher:
    """Tracks one sequence of tokens through a compiled grammar.

    The history is a linked list of states that forks share, so :meth:`fork` costs the same however
    long the text is.  A matcher is for one thread at a time; the compiled grammar is for many.

    Parameters
    ----------
    compiled : CompiledGrammar
    """

    def __init__(self, compiled: CompiledGrammar) -> None:
        self.compiled = compiled
        self._size = compiled.vocabulary.size
        self._words = words_for(self._size)
        self._kinds = compiled.vocabulary.kinds.tobytes()
        self._state = compiled.start_state
        self._parent: _Link | None = None
        self._steps = 0

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
                    self.compiled.write_mask(self._state, mask, index)
                    return
                except TypeError:
                    pass
        out = check_bitmask(mask, index, self._words)
        if self._state == _TERMINATED:
            out[index] = 0
        else:
            self.compiled.write_mask(self._state, out, index)

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
        if self._state == _TERMINATED:
            return False
        kind = self._kinds[token]
        if kind == END:
            if not self.is_accepting():
                return False
            self._push(_TERMINATED)
            return True
        if kind == SPECIAL:
            return False
        state = self.compiled.push_token(self._state, token)
        if state == 0:
            return False
        self._parent = (self._state, self._parent)
        self._state = state
        self._steps += 1
        return True

    def accept_bytes(self, data: bytes) -> bool:
        """Go on with these bytes, all or nothing; one step for :meth:`rollback`."""
        if self._state == _TERMINATED:
            return False
        state = self.compiled.run(states.push_bytes, self._state, np.frombuffer(bytes(data), np.uint8))
        if state == 0:
            return False
        self._push(state)
        return True

    def _push(self, state: int) -> None:
        self._parent = (self._state, self._parent)
        self._state = state
        self._steps += 1

    def rollback(self, count: int = 1) -> None:
        """Take back the last ``count`` steps; a step is a successful accept_token or accept_bytes.

        Raises
        ------
        ConstrainError
            If there were fewer steps.
        """
        if not 0 <= count <= self._steps:
            raise ConstrainError(f"cannot roll back {count} steps, there were {self._steps}")
        for _ in range(count):
            assert self._parent is not None
            self._state, self._parent = self._parent
        self._steps -= count

    def reset(self) -> None:
        """Go back to the start of the grammar."""
        self._state = self.compiled.start_state
        self._parent = None
        self._steps = 0

    def fork(self) -> Matcher:
        """An independent matcher at the same place, with the same history; constant time."""
        twin = Matcher.__new__(Matcher)
        twin.__dict__.update(self.__dict__)
        return twin

    def is_accepting(self) -> bool:
        """Whether the text so far is complete, so that an end token is allowed."""
        return self._state != _TERMINATED and bool(self.compiled.run(states.accepts, self._state))

    def is_terminated(self) -> bool:
        """Whether an end token has been accepted."""
        return self._state == _TERMINATED

    def forced_bytes(self) -> bytes:
        """The longest byte string that every continuation begins with (at most 65,536 bytes of it).

        Empty where the text may end, where there is a choice, and after an end token.  It may stop
        within a character, if only its first bytes are forced.
        """
        return b"" if self._state == _TERMINATED else self.compiled.forced_bytes(self._state)

    @property
    def steps(self) -> int:
        """How many steps can be rolled back."""
        return self._steps
