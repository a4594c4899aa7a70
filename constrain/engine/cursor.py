"""Cursor: a place in a compiled grammar, and the way back from it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from constrain.engine.conditions.unique_keys.status import LOOK_AHEAD, NOT_FOLLOWED
from constrain.engine.history import (
    BEFORE,
    BYTES_AT_ONCE,
    GENERATION,
    STATE,
    YOUNG_LINKS,
    Link,
    Traveller,
    bytes_of,
    read_again,
)
from constrain.engine.parser import configurations as states
from constrain.engine.parser.configurations import ENDED, LOST
from constrain.engine.storage.header import KEY_ENDED, KEYS_MAY_RUN_OUT, LIMITED_KEY_ENDED, STATE_BITS
from constrain.engine.storage.statuses import STOPPED
from constrain.engine.transaction import transact

if TYPE_CHECKING:
    from constrain.engine.compiled_grammar import CompiledGrammar
    from constrain.engine.conditions.unique_keys.unique_keys import DistinctKeys
    from constrain.engine.expectations import Expectation


class Saved(NamedTuple):
    """What a cursor knows beside its grammar's tables, to be put back after an exception."""

    has_ended: bool
    parent: Link | None
    steps: int
    keys: DistinctKeys | None
    key_status: int
    budget: Any = None


class Cursor:
    """What a matcher and a recognizer have in common: a place in a compiled grammar, and the way back from it.

    Attributes
    ----------
    compiled : CompiledGrammar
    """

    def __init__(self, compiled: CompiledGrammar) -> None:
        self.compiled = compiled
        self._state = LOST
        self._parent: Link | None = None
        self._young: deque[Link] = deque(maxlen=YOUNG_LINKS)
        self._steps = 0
        # What looks for keys that come again, once there is one that could, and what masks have to look out for.
        self._keys: DistinctKeys | None = None
        self._key_status = 0
        transact(self, self._begin)

    def _begin(self) -> None:
        self.compiled.cursors.add(self)
        if self.compiled.has_distinct_keys:
            self._begin_keys()

    def _save(self) -> Saved:
        """What :meth:`_restore` puts back."""
        return Saved(self._state == ENDED, self._parent, self._steps, self._keys, self._key_status)

    def _restore(self, saved: Saved) -> None:
        """Be where the cursor was, after an exception that may have come from anywhere."""
        with self.compiled.lock:
            if saved.keys is not None:
                saved.keys.forget(saved.steps)
            state = ENDED if saved.has_ended else LOST
            self._parent, self._steps, self._keys, self._key_status = saved[1:5]
            self._state = state

    def expected(self, limit: int = 64) -> list[Expectation]:
        """What may come next, in words, for a message: what is under way, what may begin, the end of the text.

        Empty after an end token.  At most ``limit`` lexemes are worked out.

        >>> import constrain
        >>> vocabulary = constrain.Vocabulary([b"a"])
        >>> grammar = constrain.Grammar.from_json_schema({"properties": {"age": {"type": "integer"}}})
        >>> place = constrain.GrammarCompiler(vocabulary).compile(grammar).recognizer()
        >>> place.try_push_byte(ord("["))
        True
        >>> [str(each) for each in place.expected()]
        ['a string', 'a number', "'{'", "'['", 'true or false', 'null', "']'"]
        """
        if self._state == ENDED:
            return []
        from constrain.engine.expectations import expected_at  # for messages only

        return transact(self, lambda: expected_at(self.compiled, self.compiled._tables, self, limit))

    def fork(self) -> Any:
        """An independent one at the same place, with the same history; constant time."""
        twin = type(self).__new__(type(self))
        with self.compiled.lock:
            twin.__dict__.update(self.__dict__)
            if self._keys is not None:
                twin._keys = self._keys.copy()
            self.compiled.cursors.add(twin)
        return twin

    def __copy__(self) -> Any:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        # The compiled grammar is shared by all, and what is in it belongs to nobody.
        return self.fork()

    def __reduce__(self) -> Any:
        name = type(self).__name__
        raise TypeError(
            f"a {name} cannot be pickled, since its grammar is compiled for this process: send the source of the "
            f"grammar and the token ids, compile there, and let a new {name} accept them"
        )

    def text(self, steps: int) -> bytes:
        """The bytes of the last ``steps`` steps."""
        pieces = []
        link = self._parent
        for _ in range(steps):
            assert link is not None
            pieces.append(bytes_of(self.compiled, link))
            link = link[BEFORE]
        return b"".join(reversed(pieces))

    def _begin_keys(self) -> None:
        """Look for keys that come again from the start, if a single token may be enough for that."""
        self._key_status = 0
        quotes = self.compiled.quote_tokens()
        if quotes.may_hold_two_keys:
            self._follow_keys()
        elif quotes.to_next_key and self.compiled.ir.limited_keys:
            self._key_status = NOT_FOLLOWED

    def _follow_keys(self) -> None:
        """Look for keys that come again from here on, though none has ended that could."""
        from constrain.engine.conditions.unique_keys.unique_keys import DistinctKeys  # most grammars do without

        self._keys = DistinctKeys(self.compiled.quote_tokens(), self.compiled.limited_keys, -1)
        self._key_status = self._keys.at(self).status

    def _read_keys(self, step: int | bytes, state: int) -> int:
        """Look for a key that comes again in a step to a state, which has yet to be noted.

        The state is as kernels give it, with KEY_ENDED and its like added, or KEYS_MAY_RUN_OUT if they have read it.
        Returns the state alone, by the number that it has now; 0 if there is such a key, or no other one is possible
        behind it.
        """
        compiled = self.compiled
        keys = self._keys
        place = None
        if compiled.ir.limited_keys:
            # To find out where they run out may give states other numbers.
            place = Traveller(compiled, state & STATE_BITS, (compiled.generation, self._state, step, self._parent))
        if keys is None:
            from constrain.engine.conditions.unique_keys.unique_keys import DistinctKeys

            keys = DistinctKeys(compiled.quote_tokens(), compiled.limited_keys, self._steps)
        if state & KEYS_MAY_RUN_OUT:
            status = keys.at(self).status
        else:
            status = keys.read(self, step, state & LIMITED_KEY_ENDED != 0)
        if status < 0:
            return 0
        if status & LOOK_AHEAD:
            from constrain.engine.conditions.unique_keys.exhaustion import has_key_left  # few grammars need this

            assert place is not None
            if not has_key_left(compiled, place, keys.at(self)):
                keys.forget(self._steps)
                return 0
        self._keys, self._key_status = keys, status
        return state & STATE_BITS if place is None else place._state

    def _go_to(self, state: int, step: int | bytes) -> None:
        """Note that a step led to ``state``.  The caller holds the lock."""
        link = (self.compiled.generation, self._state, step, self._parent)
        self._young.append(link)
        self._parent, self._state, self._steps = link, state, self._steps + 1

    def _read_step(self, data: bytes) -> bool:
        """Go on with some bytes as one step; False, and nothing changes, if they cannot follow."""
        compiled = self.compiled
        state = STOPPED
        if len(data) <= BYTES_AT_ONCE:
            state = compiled.run_at(self, states.push_bytes, np.frombuffer(data, np.uint8))
        if state == STOPPED:
            traveller = Traveller(compiled, self._state, self._parent)
            traveller.read_all(data)
            state = traveller._state | traveller.key_ended
        if state == 0:
            return False
        if state >= KEY_ENDED or self._keys is not None:
            state = self._read_keys(data, state)
            if state == 0:
                return False
        self._go_to(state & STATE_BITS, data)
        return True

    def _go_back(self, count: int) -> None:
        """Take back ``count`` steps; there are as many."""
        if count == 0:
            return
        link = self._parent
        for _ in range(count - 1):
            assert link is not None
            link = link[BEFORE]
        assert link is not None
        state, parent = link[STATE], link[BEFORE]
        if link[GENERATION] != self.compiled.generation:
            place = read_again(self.compiled, parent)
            self._young.extend(place._young)
            state, parent = place._state, place._parent
        self._state, self._parent, self._steps = state, parent, self._steps - count
        self._go_back_with_keys()

    def _go_back_with_keys(self) -> None:
        """Let the keys be those of the steps that there are."""
        if self._keys is not None:
            self._keys = self._keys.after_going_back(self)
            if self._keys is None:
                self._begin_keys()
            else:
                self._key_status = self._keys.at(self).status
