"""The way that led to a place in a compiled grammar.

A history is a linked list that forks share, so a fork costs the same however long the text is.

States are renumbered when the compiled grammar forgets those that are not in use (compaction.py), which any thread may
cause.  So a state is only ever read and kept under the grammar's lock.  The present state of each place, and those of
its last steps, are renumbered with it.  A link of an older generation has lost its state, and the way back to it is the
way there, from the beginning of the text (traveller.py).  The same goes for a place that is lost itself: the compiled
grammar has dropped its tables, since it needed the memory or an exception left them in doubt (transaction.py).
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from constrain.kernels.untracking import untrack

# (generation, state before the step, the step (a token or bytes), the link before).  A step behind which a condition
# put another state has a method ``settle(compiled, place)``, which gives that state where a text is read again.  Who
# makes one has Python's garbage collector leave it alone (``untrack``): a server's texts have so many that a collection
# would take milliseconds.  They are part of no cycle.
Link = tuple[int, int, Any, Any]
GENERATION: Final = 0
STATE: Final = 1
STEP: Final = 2
BEFORE: Final = 3


STEPS_KEPT = 64
"""How many steps back a state is kept for."""


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
            untrack(new)
        place._parent = new
