"""Cursor: a place in a compiled grammar, and the way back from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from constrain.engine import states

if TYPE_CHECKING:
    from constrain.engine.compiled import CompiledGrammar

ENDED = -1
"""The state after an end token.  Not a state of the grammar: nothing is allowed in it."""

# [generation, state before the step, the step (a token or bytes), the link before]
Link = list[Any]
_GENERATION, _STATE, _STEP, _BEFORE = range(4)

# What is found out within one call of a kernel stays until it is over.
_BYTES_AT_ONCE = 1024


class Place(Protocol):
    """What holds on to a state of a compiled grammar."""

    _state: int

    def recent_links(self, most: int) -> list[Link]:
        """The last links of its history that still have their state, at most so many."""


class Cursor:
    """What a matcher and a recognizer have in common.

    The history is a linked list that forks share, so a fork costs the same however long the text is.

    States are renumbered when the compiled grammar forgets those that are not in use (collect.py),
    which any thread may cause; so a state is only ever read and kept under the grammar's lock.  The
    present state and those of the last steps are renumbered with it; a link with an older generation
    has lost its state, and the way back to it is the way there, from the beginning.

    Attributes
    ----------
    compiled : CompiledGrammar
    """

    def __init__(self, compiled: CompiledGrammar) -> None:
        self.compiled = compiled
        self._parent: Link | None = None
        self._steps = 0
        with compiled.lock:
            self._state = compiled.start_state
            compiled.cursors.add(self)

    def _twin(self, twin: Any) -> None:
        """Make ``twin``, a new object of the same class, a copy."""
        with self.compiled.lock:
            twin.__dict__.update(self.__dict__)
            self.compiled.cursors.add(twin)

    def _go_to(self, state: int, step: int | bytes) -> None:
        """Note that a step led to ``state``.  The caller holds the lock."""
        self._parent = [self.compiled.generation, self._state, step, self._parent]
        self._state = state
        self._steps += 1

    def _push_bytes(self, data: bytes) -> bool:
        """Go on with some bytes as one step; False, and nothing changes, if they cannot follow."""
        compiled = self.compiled
        with compiled.lock:
            if len(data) <= _BYTES_AT_ONCE:
                state = compiled.run_at(self, states.push_bytes, np.frombuffer(data, np.uint8))
            else:
                traveller = _Traveller(compiled, self._state)
                traveller.read(data)
                state = traveller._state
            if state == 0:
                return False
            self._go_to(state, data)
            return True

    def _go_back(self, count: int) -> None:
        """Take back ``count`` steps; there are as many."""
        if count == 0:
            return
        link = self._parent
        for _ in range(count - 1):
            assert link is not None
            link = link[_BEFORE]
        assert link is not None
        with self.compiled.lock:
            state = link[_STATE] if link[_GENERATION] == self.compiled.generation else self._find_again(link)
            self._state, self._parent = state, link[_BEFORE]
        self._steps -= count

    def _find_again(self, target: Link) -> int:
        """The state of a link that has lost it, by taking all steps before it again.  The caller holds the lock."""
        compiled = self.compiled
        way = []
        link = target[_BEFORE]
        while link is not None:
            way.append(link)
            link = link[_BEFORE]
        traveller = _Traveller(compiled, compiled.start_state)
        while way:
            link = way.pop()
            # On the way, so that going back further will not be from the beginning again.
            link[_GENERATION], link[_STATE] = compiled.generation, traveller._state
            step = link[_STEP]
            if isinstance(step, bytes):
                traveller.read(step)
            else:
                traveller._state = compiled.push_token(traveller, step)
        target[_GENERATION], target[_STATE] = compiled.generation, traveller._state
        return traveller._state

    def recent_links(self, most: int) -> list[Link]:
        """See :class:`Place`."""
        links: list[Link] = []
        link = self._parent
        while link is not None and len(links) < most and link[_GENERATION] == self.compiled.generation:
            links.append(link)
            link = link[_BEFORE]
        return links


class _Traveller:
    """A state on the way to somewhere, which is kept while more of the grammar is found out."""

    def __init__(self, compiled: CompiledGrammar, state: int) -> None:
        self._compiled = compiled
        self._state = state
        compiled.cursors.add(self)

    def read(self, data: bytes) -> None:
        """Go on with some bytes, piece by piece; to state 0 if they cannot follow.  The caller holds the lock."""
        for begin in range(0, len(data), _BYTES_AT_ONCE):
            if self._state == 0:
                return
            piece = np.frombuffer(data, np.uint8)[begin : begin + _BYTES_AT_ONCE]
            self._state = self._compiled.run_at(self, states.push_bytes, piece)

    def recent_links(self, most: int) -> list[Link]:
        return []


def state_of(link: Link) -> int:
    """The state that a link leads back to."""
    state: int = link[_STATE]
    return state


def renumber(link: Link, generation: int, state: int) -> None:
    """Give a link its state's new number."""
    link[_GENERATION], link[_STATE] = generation, state
