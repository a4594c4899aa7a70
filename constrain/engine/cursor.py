"""Cursor: a place in a compiled grammar, and the way back from it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from constrain.engine import states
from constrain.engine.key_memory import NO_KEYS
from constrain.engine.key_status import LOOK_AHEAD, NOT_FOLLOWED
from constrain.engine.tables import KEY_ENDED, KEYS_MAY_RUN_OUT, LIMITED_KEY_ENDED, STATE_BITS, STOPPED

if TYPE_CHECKING:
    from constrain.engine.compiled import CompiledGrammar
    from constrain.engine.distinct_keys import DistinctKeys
    from constrain.engine.expectations import Expectation

ENDED = -1
"""The state after an end token.  Not a state of the grammar: nothing is allowed in it."""

# (generation, state before the step, the step (a token or bytes), the link before).  A tuple, since
# Python's garbage collector does not go through tuples of plain things again and again.
Link = tuple[int, int, Any, Any]
_GENERATION: Final = 0
_STATE: Final = 1
_STEP: Final = 2
_BEFORE: Final = 3

STEPS_KEPT = 64
"""How many steps back a state is kept for."""

# The collector takes a tuple for plain if it comes upon it after those inside it.  It comes upon young
# links in the order of this queue, which has to be longer than its youngest generation gets; without
# the queue it would be in the opposite order, and a text of 200,000 tokens stop for 50 ms at times.
_YOUNG_LINKS = 4096

# What is found out within one call of a kernel stays until it is over.
_BYTES_AT_ONCE = 1024


class Place(Protocol):
    """What holds on to a state of a compiled grammar."""

    _state: int
    _parent: Link | None
    _young: deque[Link]


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
        self._young: deque[Link] = deque(maxlen=_YOUNG_LINKS)
        self._steps = 0
        # What looks for keys that come again, once there is one that could, and what masks have to look out for.
        self._keys: DistinctKeys | None = None
        self._key_status = 0
        with compiled.lock:
            self._state = compiled.start_state
            compiled.cursors.add(self)
            if compiled.has_distinct_keys:
                self._begin_keys()

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
        return [] if self._state == ENDED else self.compiled.expected(self, limit)

    def _twin(self, twin: Any) -> None:
        """Make ``twin``, a new object of the same class, a copy."""
        with self.compiled.lock:
            twin.__dict__.update(self.__dict__)
            if self._keys is not None:
                twin._keys = self._keys.copy()
            self.compiled.cursors.add(twin)

    def text(self, steps: int) -> bytes:
        """The bytes of the last ``steps`` steps."""
        tokens = self.compiled.vocabulary.tokens
        pieces = []
        link = self._parent
        for _ in range(steps):
            assert link is not None
            step = link[_STEP]
            pieces.append(step if isinstance(step, bytes) else tokens[step])
            link = link[_BEFORE]
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
        from constrain.engine.distinct_keys import DistinctKeys  # most grammars do without

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
            from constrain.engine.distinct_keys import DistinctKeys

            keys = DistinctKeys(compiled.quote_tokens(), compiled.limited_keys, self._steps)
        if state & KEYS_MAY_RUN_OUT:
            status = keys.at(self).status
        else:
            status = keys.read(self, step, state & LIMITED_KEY_ENDED != 0)
        if status < 0:
            return 0
        if status & LOOK_AHEAD:
            from constrain.engine.keys_left import has_key_left  # few grammars need this

            assert place is not None
            if not has_key_left(compiled, place, keys.at(self)):
                keys.forget()
                return 0
        self._keys, self._key_status = keys, status
        return state & STATE_BITS if place is None else place._state

    def _go_to(self, state: int, step: int | bytes) -> None:
        """Note that a step led to ``state``.  The caller holds the lock."""
        self._parent = (self.compiled.generation, self._state, step, self._parent)
        self._young.append(self._parent)
        self._state = state
        self._steps += 1

    def _go_back_with_keys(self) -> None:
        """Let the keys be those of the steps that there are."""
        if self._keys is not None:
            self._keys = self._keys.after_going_back(self)
            if self._keys is None:
                self._begin_keys()
            else:
                self._key_status = self._keys.at(self).status

    def _push_bytes(self, data: bytes) -> bool:
        """Go on with some bytes as one step; False, and nothing changes, if they cannot follow."""
        compiled = self.compiled
        with compiled.lock:
            state = STOPPED
            if len(data) <= _BYTES_AT_ONCE:
                compiled.start_over_if_due()
                state = compiled.run_at(self, states.push_bytes, np.frombuffer(data, np.uint8))
            if state == STOPPED:
                traveller = Traveller(compiled, self._state, self._parent)
                traveller.read(data)
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
            link = link[_BEFORE]
        assert link is not None
        compiled = self.compiled
        with compiled.lock:
            if link[_GENERATION] == compiled.generation:
                self._state, self._parent = link[_STATE], link[_BEFORE]
            else:
                place = _find_again(compiled, link)
                self._state, self._parent = place._state, place._parent
                self._young.extend(place._young)
        self._steps -= count
        self._go_back_with_keys()


class Traveller:
    """A place on the way to somewhere, which is kept while more of the grammar is found out.

    Its links spell the text before it, like those of a cursor.

    Attributes
    ----------
    key_ended : int
        KEY_ENDED and LIMITED_KEY_ENDED, if a key that must not come again ended in what was read.
    """

    def __init__(self, compiled: CompiledGrammar, state: int, parent: Link | None) -> None:
        self._compiled = compiled
        self.key_ended = 0
        self._state = state
        self._parent = parent
        self._young: deque[Link] = deque(maxlen=_YOUNG_LINKS)
        compiled.cursors.add(self)

    def read(self, data: bytes) -> None:
        """Go on with some bytes, piece by piece; to state 0 if they cannot follow.  The caller holds the lock."""
        compiled = self._compiled
        while data and self._state != 0:
            compiled.start_over_if_due()
            piece = data[:_BYTES_AT_ONCE]
            state = compiled.run_at(self, states.push_bytes, np.frombuffer(piece, np.uint8))
            if state == STOPPED:
                state, count, key_ended = compiled.stopped_at()
                self.key_ended |= key_ended
                piece = data[:count]
                state = _close(compiled, state, (compiled.generation, self._state, piece, self._parent))
            else:
                self.key_ended |= state & ~STATE_BITS
                state &= STATE_BITS
            self._parent = (compiled.generation, self._state, piece, self._parent)
            self._state = state
            data = data[len(piece) :]


def _close(compiled: CompiledGrammar, state: int, link: Link) -> int:
    """The state that an open state is after a text, which ends with the step of ``link``."""
    place = Traveller(compiled, state, link)
    return compiled.close(place, lambda count: _last_bytes(compiled, place._parent, count))


def _last_bytes(compiled: CompiledGrammar, link: Link | None, count: int) -> bytes:
    """The last ``count`` bytes of a text, or some more; all of it if it is shorter."""
    tokens = compiled.vocabulary.tokens
    pieces = []
    while link is not None and count > 0:
        step = link[_STEP]
        piece: bytes = step if isinstance(step, bytes) else tokens[step]
        pieces.append(piece)
        count -= len(piece)
        link = link[_BEFORE]
    return b"".join(reversed(pieces))


def _find_again(compiled: CompiledGrammar, target: Link) -> Traveller:
    """The place that a link led back to before its state was lost, by taking all steps again.

    The last links on the way there get states, so that going back further does not mean taking all
    steps each time.  The caller holds the lock.
    """
    way = []
    link = target[_BEFORE]
    while link is not None:
        way.append(link)
        link = link[_BEFORE]
    place = Traveller(compiled, compiled.start_state, None)
    while way:
        link = way.pop()
        behind = Traveller(compiled, place._state, place._parent)
        if isinstance(link[_STEP], bytes):
            place.read(link[_STEP])
        else:
            place._state = compiled.push_token(place, link[_STEP], NO_KEYS) & STATE_BITS
        before = behind._parent if len(way) < STEPS_KEPT - 1 else link[_BEFORE]
        place._parent = (compiled.generation, behind._state, link[_STEP], before)
        place._young.append(place._parent)
    return place


def find_places_again(compiled: CompiledGrammar, places: list[Place]) -> None:
    """Give places their states in tables that were made anew.  The caller holds the lock."""
    lost = [place for place in places if place._state > 0]
    for place in lost:
        # Whatever happens: a number of a state that is no more may not be used.
        place._state = 0
    for place in lost:
        found = _find_again(compiled, (compiled.generation - 1, 0, b"", place._parent))
        place._state, place._parent = found._state, found._parent
        place._young.extend(found._young)


class LinksKept:
    """The links whose states are kept when states are renumbered: the last few of each place.

    Parameters
    ----------
    places : list of Place
        All that are held by anyone.
    generation : int
        Links of another one have lost their states already.
    most : int
        How many of the links of each place.
    """

    def __init__(self, places: list[Place], generation: int, most: int) -> None:
        self._links: dict[int, Link] = {}
        for place in places:
            link = place._parent
            for _ in range(most):
                if link is None or link[_GENERATION] != generation:
                    break
                self._links[id(link)] = link
                link = link[_BEFORE]

    def states(self) -> list[int]:
        """The states that they lead back to."""
        return [link[_STATE] for link in self._links.values()]

    def renumber(self, place: Place, generation: int, numbers: Any, done: dict[int, Link]) -> None:
        """Give a place links with new numbers; what places have in common stays so, by way of ``done``."""
        old = []
        link = place._parent
        while link is not None and id(link) in self._links and id(link) not in done:
            old.append(link)
            link = link[_BEFORE]
        new = link if link is None else done.get(id(link), link)
        for link in reversed(old):
            new = done[id(link)] = (generation, int(numbers[link[_STATE]]), link[_STEP], new)
            place._young.append(new)
        place._parent = new
