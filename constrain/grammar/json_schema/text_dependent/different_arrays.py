"""Arrays that are different from others, or equal to one.

As long as the items of an array are those of some of the others, what these go on with is kept in mind.  The first item
that is in none of them decides.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, NamedTuple

from constrain.grammar.ir import NEVER
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.normal.instances import Instance
from constrain.grammar.json_schema.normal.intersect import element
from constrain.grammar.json_schema.normal.nodes import ArrayNode, size_range
from constrain.grammar.json_schema.text_dependent.by_value import ByValue
from constrain.grammar.json_schema.text_dependent.interfaces import Differences, UniqueAutomaton, Values
from constrain.grammar.json_schema.text_dependent.persistent import PersistentSet
from constrain.grammar.rules_on_demand import Costs, Edge, Right, TextBefore
from constrain.limits import spend

Tail = tuple[Instance, ...]
Tails = PersistentSet[Tail]

_NONE: Tails = PersistentSet()


class _Items(NamedTuple):
    size: int
    """How many items there are; up to where that matters, once all is decided."""
    before: Tail
    """With ``uniqueItems``, these items; they are those of all the others."""
    others: Tails
    """What the arrays go on with that begin with the same items.  With the same to go on with, they are one here."""
    is_same: bool
    """Whether it must be the one of ``others``, or none of them."""


class _Begun(NamedTuple):
    """In place of a state, behind an item that makes an array different: that of :class:`UniqueAutomaton` before it."""

    state: Any


class ArrayAutomaton:
    """The arrays of a node that are different from others, or equal to one.

    Its states are :class:`_Items`, and once an array with ``uniqueItems`` is different, those of ``unique``.
    """

    def __init__(self, values: Differences, node: ArrayNode, layout: Layout, unique: UniqueAutomaton | None) -> None:
        self._values = values
        self._node = node
        self._layout = layout
        self._low, self._high = size_range(node)
        lexeme = values.unfolding.lexeme
        self._open = lexeme(layout.open_array)
        self._comma = lexeme(layout.comma)
        self._close = lexeme(layout.close_array)
        self._empty: Right = (self._open, self._close) if layout.empty_array is None else (lexeme(layout.empty_array),)
        self._may_go_on = lru_cache(maxsize=10_000)(self._find_way_on)
        self._unique = unique

    def start(self, others: Values, is_same: bool) -> Hashable:
        """The state before the opening bracket."""
        return _Items(0, (), others.derived(PersistentSet, _add_content), is_same)

    def can_differ(self, others: Values) -> bool:
        """Whether any array is none of ``others``."""
        tails = others.derived(PersistentSet, _add_content)
        return self._may_end(0, tails) or self._may_go_on(0, (), tails)

    def edges(self, state: Any) -> tuple[list[Right], list[Edge]]:
        """The ways to end in a state, and those to go on."""
        if not isinstance(state, _Items):
            assert self._unique is not None
            return self._unique.edges(state)
        index, items, others, is_same = state
        ends: list[Right] = []
        further: list[Edge] = []
        before: Right = () if index else (self._open,)
        if index == 0 and self._ends(0, others, is_same):
            ends.append(self._empty)
        if index == 0 and not self._goes_on(0, (), others, is_same):
            return ends, further
        layout, handle = self._layout, element(self._node, index)
        here = others.derived(ByValue, _add_tail)
        ways: list[tuple[Values, Tail, Tails]]
        if self._unique is None or is_same:
            ways = [(values, (), rests) for (rests, _), values in here.ways.items()]
        else:
            # Each item alone, since the items behind it must be different from it.
            none: Values = PersistentSet()
            ways = [(none.plus(item), (*items, item), rests) for item, rests in here.rests.items() if item not in items]
        if not is_same:
            excluded = here.values
            for item in items:
                excluded = excluded.plus(item)
            new = self._values.different(layout, handle, excluded)
            if self._unique is None:
                self._add(ends, further, new, before, _Items(index + 1, (), _NONE, False))
            else:
                begun, kind = self._unique.begun(PersistentSet.of(items))
                for symbol in new:
                    if index + 1 >= self._low:
                        ends.append((*before, symbol, self._close))
                    if kind is not None:
                        further.append(((*before, symbol, self._comma), _Begun(begun), kind))
        for values, first, left in ways:
            spend(5)
            symbols = self._values.one_of(layout, handle, values)
            self._add(ends, further, symbols, before, _Items(index + 1, first, left, is_same))
        return ends, further

    def _add(self, ends: list[Right], further: list[Edge], symbols: list[int], before: Right, after: _Items) -> None:
        """The ways with one of some items."""
        ends_here = self._ends(after.size, after.others, after.is_same)
        goes_on = self._goes_on(after.size, after.before, after.others, after.is_same)
        if not after.others and not after.is_same and self._high is None:
            after = after._replace(size=min(after.size, max(self._low, len(self._node.prefix), 1)))
        for symbol in symbols:
            if ends_here:
                ends.append((*before, symbol, self._close))
            if goes_on:
                further.append(((*before, symbol, self._comma), after, 0))

    def follow(self, state: Any, edge: Any) -> Hashable:
        """The state behind an edge; for an open branch, the one that stands in for what it is in a text."""
        if isinstance(edge, _Items):
            return edge
        assert self._unique is not None
        return self._unique.follow(edge.state, ()) if isinstance(edge, _Begun) else self._unique.follow(state, edge)

    def close(self, state: Any, edge: Any, text: TextBefore) -> Hashable:
        """The state behind an edge to an open branch, in a text."""
        assert self._unique is not None
        if isinstance(edge, _Begun):
            return self._unique.close(edge.state, (), text)
        return self._unique.close(state, edge, text)

    def least(self, state: Any, costs: Costs) -> int:
        """What the cheapest array costs from here on."""
        if not isinstance(state, _Items):
            assert self._unique is not None
            return self._unique.least(state, costs)
        if not state.others and not state.is_same and self._unique is None:
            return self._least_of_any(state.size, costs)
        # There are no more states than items in the others, but there may be many in one.
        todo = [state]
        while todo:
            here = todo[-1]
            ends, further = self.edges(here)
            behind = [edge for _, edge, _ in further if isinstance(edge, _Items) and (self, edge) not in costs.known]
            undecided = [edge for edge in behind if edge.others or edge.is_same]
            if undecided:
                todo += undecided
                continue
            ways = [costs.right(right) for right in ends]
            for right, edge, kind in further:
                is_known = isinstance(edge, _Items)
                rest = costs.least(self, edge) if is_known else costs.behind(self, here, edge, kind)
                ways.append(costs.right(right) + rest)
            costs.known[self, here] = min(min(ways, default=NEVER), NEVER)
            todo.pop()
        return costs.known[self, state]  # type: ignore[no-any-return]

    def least_behind(self, state: Any, edge: Any, costs: Costs) -> int:
        """What the items cost at most that must come behind a comma, whatever the items before it are."""
        assert self._unique is not None
        if isinstance(edge, _Begun):
            return self._unique.least_behind(edge.state, (), costs)
        return self._unique.least_behind(state, edge, costs)

    def least_different(self, count: int, costs: Costs) -> int:
        """What an array costs at most that begins with another item than ``count`` others do."""
        if self._high is not None and self._high < 1:
            return NEVER
        values, layout, node = self._values, self._layout, self._node
        total = costs.right((self._open, self._close)) - costs.of(self._comma)
        for index in range(max(self._low, 1)):
            # With uniqueItems from the second item on it is the earlier items that it must differ from.
            others = count if index == 0 else index if self._unique is not None else 0
            item = values.spare(layout, element(node, index), others, costs)
            if not item.is_sure:
                return NEVER
            total += item.cost + costs.of(self._comma)
        return min(total, NEVER)

    def _least_of_any(self, size: int, costs: Costs) -> int:
        """What the cheapest array costs of those that have this many items."""
        if size == 0 and self._low == 0:
            return costs.right(self._empty)
        total = costs.of(self._close) - costs.of(self._comma) + (0 if size else costs.of(self._open))
        for index in range(size, max(self._low, size + 1)):
            total += costs.of(self._comma) + costs.any_of(self._values.any(self._layout, element(self._node, index)))
        return min(total, NEVER)

    def _ends(self, count: int, others: Tails, is_same: bool) -> bool:
        if is_same:
            return not any(others)
        return self._may_end(count, others)

    def _goes_on(self, count: int, items: Tail, others: Tails, is_same: bool) -> bool:
        if is_same:
            return all(others)
        return self._may_go_on(count, items, others)

    def _may_end(self, count: int, others: Tails) -> bool:
        return self._low <= count and () not in others

    def _find_way_on(self, count: int, items: Tail, others: Tails) -> bool:
        """Whether there is an array with ``count`` items and more that is none of ``others``."""
        if self._high is not None and count >= self._high:
            return False

        def search(most: int) -> list[Instance]:
            return self._values.few.of_items(self._node, items, most, count)

        # One of them may be the end.
        if self._values.has_more((self, count, items), search, len(others) + 1):
            return True
        return any(rest.content and rest.content not in others for rest in search(len(others) + 2))


def _add_content(tails: Tails, array: Instance, is_added: bool) -> Tails:
    return tails.plus(array.content) if is_added else tails.minus(array.content)


def _add_tail(here: ByValue, tail: Tail, is_added: bool) -> ByValue:
    spend(10 + len(tail) // 8)
    return here.changed(tail[0], tail[1:], is_added) if tail else here
