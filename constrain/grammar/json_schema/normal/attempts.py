"""How much work the alternatives of a schema may be, and what a lenient caller gets where they are more.

What stands beside each other in a schema multiplies its alternatives.  Where these are too many, the schema is refused,
unless the caller is lenient: then what makes them too many is left out, with a warning, so that more texts are allowed
than should be, and none that is valid is forbidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from constrain.grammar.json_schema.document.document import Document
from constrain.grammar.json_schema.lexical.texts import ALL_TEXTS
from constrain.grammar.json_schema.normal.algebra import MAX_NODES, Budget, TooManyAlternatives
from constrain.grammar.json_schema.normal.nodes import ArrayNode, Node, Normal, ObjectNode

MAX_CONJUNCTIONS = 20_000
"""How many different conjunctions of schemas may come up: recursion through them can reach every subset.

With a ``max_work`` above ``USUAL_WORK`` there may be more, in proportion.
"""

USUAL_WORK = 100_000
"""What ``max_work`` is unless a caller says otherwise."""

# With a lenient caller, so many alternatives may come of what is beside each other before the rest is left out.
_MOST_OF_LENIENT = 16

# An attempt may spend this part of what the first one may, however many have failed; and it is small if it has spent
# less than this part of what it may.
_MOST_HALVED = 16
_SMALL = 8


class Step(NamedTuple):
    """One of several things that a schema says."""

    what: str
    """Its name in a warning."""
    pointer: str
    apply: Callable[[Normal], Normal]


class Attempts(Budget):
    """A limit on the work, and how steps are tried within it.

    Attributes
    ----------
    is_lenient : bool
        Whether what has too many alternatives is left out; ``refuse`` then returns.
    tracking : bool
        Whether nodes say which members and items were evaluated.
    """

    def __init__(self, max_work: int, document: Document) -> None:
        super().__init__(max_work, document.options.way_out)
        self._document = document
        self.is_lenient = document.options.is_lenient
        self.tracking = False
        self._conjunctions = 0
        self._most_conjunctions = MAX_CONJUNCTIONS * max(USUAL_WORK, max_work) // USUAL_WORK
        # What an attempt may spend.
        self._for_attempt = max_work

    @property
    def is_loose(self) -> bool:
        """Whether something was left out, so that a normal form may allow more than its schema."""
        return self._document.is_loose

    def refuse(self, reason: str, pointer: str) -> None:
        """Raise SchemaError for what cannot be enforced; for a lenient caller, take note that it is left out."""
        self._document.leave_out(reason, pointer)

    def spend_conjunction(self, pointer: str) -> None:
        """Take note of one more conjunction of schemas.  Raises TooManyAlternatives if it is one too many."""
        self._conjunctions += 1
        if self._conjunctions > self._most_conjunctions:
            raise self.too_many(f"more than {self._most_conjunctions} combinations of schemas (max_work)", pointer)

    def if_possible(self, result: Normal, pointer: str, *ways: Callable[[Normal], Normal]) -> Normal:
        """What the first way makes of ``result``, or the next one, of which each allows more.

        Only for a lenient caller: for others, the first is the only one.
        """
        if not self.is_lenient:
            return ways[0](result)
        keyword = pointer.rpartition("/")[2]
        for way in ways:
            made = self.attempt(way, result)
            if made is not None:
                if way is not ways[0]:
                    self.refuse(f"that just one branch of {keyword} holds takes too many alternatives", pointer)
                return made
        return self._left_out(keyword, "to combine", result, pointer)

    def as_many_as_possible(
        self, result: Normal, exactly: Callable[[Normal], Normal], steps: Callable[[], Iterable[Step]]
    ) -> Normal:
        """What all of some steps make of ``result``: ``exactly`` does.

        For a lenient caller, where that is too much: what those of ``steps`` do that make no alternatives too many.
        """
        if not self.is_lenient:
            return exactly(result)
        made = self.attempt(exactly, result)
        if made is not None:
            return made
        for what, pointer, step in steps():
            made = self.attempt(step, result, _MOST_OF_LENIENT)
            if made is None:
                result = self._left_out(what, "beside what stands before it", result, pointer)
            else:
                result = made
        return result

    def attempt(self, step: Callable[[Normal], Normal], result: Normal, most: int = MAX_NODES) -> Normal | None:
        """What a step makes of ``result``; None where that has too many alternatives, or more than ``most``.

        What such a step spends does not count, but the next ones may spend less.  Raises TooManyAlternatives where the
        step itself is small, and others have spent what there was.
        """
        work, conjunctions, limit = self._work, self._conjunctions, self._limit
        self._limit = min(limit, work + self._for_attempt)
        try:
            made = step(result)
        except TooManyAlternatives:
            is_small = self._work - work < self._for_attempt // _SMALL
            is_small = is_small and self._conjunctions - conjunctions < self._most_conjunctions // _SMALL
            is_spent = self._work > self._limit or self._conjunctions > self._most_conjunctions
            if is_small and is_spent:
                raise
            self._for_attempt = max(self._for_attempt // 2, self.max_work // _MOST_HALVED)
        else:
            if len(made.nodes) <= max(most, len(result.nodes)):
                return made
        finally:
            self._limit = limit
        self._work, self._conjunctions = work, conjunctions
        return None

    def _left_out(self, what: str, where: str, result: Normal, pointer: str) -> Normal:
        """What remains when something is left out: it may have evaluated any member and item."""
        self.refuse(f"{what} has too many alternatives {where}", pointer)
        if not self.tracking:
            return result
        return replace(result, nodes=tuple(map(_all_seen, result.nodes)))


def _all_seen(node: Node) -> Node:
    """The same values, with all members and items evaluated."""
    if isinstance(node, ObjectNode):
        return replace(node, seen=(ALL_TEXTS,))
    return replace(node, seen=None) if isinstance(node, ArrayNode) else node
