"""The way that led to a place in a compiled grammar.

A history is a linked list that forks share, so a fork costs the same however long the text is.

States are renumbered when the compiled grammar forgets those that are not in use (compaction.py), which any thread may
cause.  So a state is only ever read and kept under the grammar's lock.  The present state of each place, and those of
its last steps, are renumbered with it.  A link of an older generation has lost its state, and the way back to it is the
way there, from the beginning of the text (traveller.py).  The same goes for a place that is lost itself: the compiled
grammar has dropped its tables, since it needed the memory or an exception left them in doubt (transaction.py).
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, Protocol

# (generation, state before the step, the step (a token or bytes), the link before).  A step behind which a condition
# put another state has a method ``settle(compiled, place)``, which gives that state where a text is read again.  A
# tuple, since Python's garbage collector does not go through tuples of plain things again and again.
Link = tuple[int, int, Any, Any]
GENERATION: Final = 0
STATE: Final = 1
STEP: Final = 2
BEFORE: Final = 3


STEPS_KEPT = 64
"""How many steps back a state is kept for."""

# Python's garbage collector takes a tuple for plain if it comes upon it after those inside it.  It comes upon young
# links in the order of this queue, which has to be longer than its youngest generation gets; without the queue it would
# be in the opposite order, and a text of 200,000 tokens stop for 50 ms at times.  The youngest generation gets long
# where texts end while others go on, as in a server, since what is freed counts against what is new: up to 13,000 links
# for 256 texts (`python -m bench.batches`).  One queue serves all: what a place would keep of its own is one more thing
# to reach in memory for each token of a batch.
YOUNG: Final[deque[Link]] = deque(maxlen=1 << 15)
"""The links that were made last, of all places; whoever makes one appends it."""


class Place(Protocol):
    """What holds on to a state of a compiled grammar."""

    _state: int
    _parent: Link | None


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
            YOUNG.append(new)
        place._parent = new
