"""The way that led to a place in a compiled grammar, and how a place is found again that was lost.

A history is a linked list that forks share, so a fork costs the same however long the text is.

States are renumbered when the compiled grammar forgets those that are not in use (compaction.py), which any thread may
cause.  So a state is only ever read and kept under the grammar's lock.  The present state of each place, and those of
its last steps, are renumbered with it.  A link of an older generation has lost its state, and the way back to it is the
way there, from the beginning of the text.  The same goes for a place that is lost itself: the compiled grammar has
dropped its tables, since it needed the memory or an exception left them in doubt (transaction.py).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from constrain.engine.conditions.unique_keys.memory import NO_KEYS
from constrain.engine.parser import configurations as states
from constrain.engine.storage.header import STATE_BITS
from constrain.engine.storage.statuses import STOPPED
from constrain.engine.storage.tables import TablesFullError

if TYPE_CHECKING:
    from constrain.engine.compiled_grammar import CompiledGrammar

# (generation, state before the step, the step (a token or bytes), the link before).  A tuple, since
# Python's garbage collector does not go through tuples of plain things again and again.
Link = tuple[int, int, Any, Any]
GENERATION: Final = 0
STATE: Final = 1
STEP: Final = 2
BEFORE: Final = 3

STEPS_KEPT = 64
"""How many steps back a state is kept for."""

# The collector takes a tuple for plain if it comes upon it after those inside it.  It comes upon young
# links in the order of this queue, which has to be longer than its youngest generation gets; without
# the queue it would be in the opposite order, and a text of 200,000 tokens stop for 50 ms at times.
YOUNG_LINKS = 4096

BYTES_AT_ONCE = 1024
"""The most bytes for one call of a kernel: what it finds out stays until it is over."""


class Place(Protocol):
    """What holds on to a state of a compiled grammar."""

    _state: int
    _parent: Link | None
    _young: deque[Link]


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
        self._young: deque[Link] = deque(maxlen=YOUNG_LINKS)
        compiled.cursors.add(self)

    def read_all(self, data: bytes) -> None:
        """As :meth:`read` for any number of bytes, where nobody holds the number of a lexer state."""
        size = BYTES_AT_ONCE
        while data:
            self._compiled.compact_if_due()
            try:
                self.read(data[:size])
            except TablesFullError:
                if size == 1 or not self._compiled.can_compact:
                    raise
                # Nothing of the piece has been read.
                self._compiled.compact()
                size = 1 + size // 16
                continue
            data = data[size:]
            size = min(BYTES_AT_ONCE, 2 * size)

    def read(self, data: bytes) -> None:
        """Go on with some bytes, piece by piece; to state 0 if they cannot follow.  The caller holds the lock."""
        compiled = self._compiled
        while data and self._state != 0:
            piece = data[:BYTES_AT_ONCE]
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
    return compiled.close(place, lambda count: last_bytes(compiled, place._parent, count))


def bytes_of(compiled: CompiledGrammar, link: Link) -> bytes:
    """The bytes of a link's step."""
    step = link[STEP]
    return step if isinstance(step, bytes) else compiled.vocabulary.tokens[step]


def last_bytes(compiled: CompiledGrammar, link: Link | None, count: int) -> bytes:
    """The last ``count`` bytes of a text, or some more; all of it if it is shorter."""
    pieces = []
    while link is not None and count > 0:
        piece = bytes_of(compiled, link)
        pieces.append(piece)
        count -= len(piece)
        link = link[BEFORE]
    return b"".join(reversed(pieces))


def find_again(compiled: CompiledGrammar, place: Place) -> None:
    """Give a place that is lost its state.  The caller holds the lock."""
    found = read_again(compiled, place._parent)
    place._young.extend(found._young)
    place._parent = found._parent
    place._state = found._state


def read_again(compiled: CompiledGrammar, link: Link | None) -> Traveller:
    """The place that a link leads to, by taking all steps again.

    The last links on the way there get states, so that going back further does not mean taking all
    steps each time.  The caller holds the lock.
    """
    way = []
    while link is not None:
        way.append(link)
        link = link[BEFORE]
    place = Traveller(compiled, compiled.start_state, None)
    while way:
        compiled.compact_if_due()
        link = way.pop()
        behind = Traveller(compiled, place._state, place._parent)
        if isinstance(link[STEP], bytes):
            place.read_all(link[STEP])
        else:
            place._state = compiled.push_token(place, link[STEP], NO_KEYS) & STATE_BITS
        last = behind._parent if len(way) < STEPS_KEPT - 1 else link[BEFORE]
        place._parent = (compiled.generation, behind._state, link[STEP], last)
        place._young.append(place._parent)
    return place


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
                if link is None or link[GENERATION] != generation:
                    break
                self._links[id(link)] = link
                link = link[BEFORE]

    def states(self) -> list[int]:
        """The states that they lead back to."""
        return [link[STATE] for link in self._links.values()]

    def renumber(self, place: Place, generation: int, numbers: Any, done: dict[int, Link]) -> None:
        """Give a place links with new numbers; what places have in common stays so, by way of ``done``."""
        old = []
        link = place._parent
        while link is not None and id(link) in self._links and id(link) not in done:
            old.append(link)
            link = link[BEFORE]
        new = link if link is None else done.get(id(link), link)
        for link in reversed(old):
            new = done[id(link)] = (generation, int(numbers[link[STATE]]), link[STEP], new)
            place._young.append(new)
        place._parent = new
