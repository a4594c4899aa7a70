"""Unique items of which some have few values, beside ``contains``: what is left of these decides how an array goes on.

A value is *scarce* if it is one of few that an item may have for the sake of some ``contains``.  Scarce values that the
same schemas allow can stand for each other, so that of each such *group* only the number that is left matters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache
from itertools import product
from math import prod
from typing import NamedTuple

from constrain.errors import LimitError
from constrain.grammar import rules_on_demand as on_demand
from constrain.grammar.ir import HARD, NEVER, OPEN, Symbol
from constrain.grammar.json_schema.document.places import Handle, conjunction, negate
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.normal.counted_items import NextItems, kinds_of_items
from constrain.grammar.json_schema.normal.few_values import FewValues
from constrain.grammar.json_schema.normal.instances import Instance, instance, last_value
from constrain.grammar.json_schema.normal.intersect import element
from constrain.grammar.json_schema.normal.nodes import ArrayNode, Contains, Node, NullNode, size_range
from constrain.grammar.json_schema.text_dependent.different_values import DifferentValues
from constrain.grammar.json_schema.text_dependent.interfaces import Values
from constrain.grammar.json_schema.text_dependent.persistent import PersistentSet
from constrain.limits import spend

MAX_SCARCE = 64
"""An item with fewer values than this may find them used up by others."""

MOST_LISTED = 1000
"""The same for values that the schema lists."""

MOST_PLACES = 20_000
"""So many places are gone through."""


class Place(NamedTuple):
    """What decides how an array goes on."""

    size: int
    """How many items there are, up to where that matters."""
    counts: tuple[int, ...]
    """How often each ``contains`` was met."""
    left: tuple[int, ...]
    """How many values of each group are left, up to where that matters."""


class Way(NamedTuple):
    """What the next item may be."""

    group: int | None
    """Of which group it is a value; None if it is none of the scarce values."""
    handle: Handle
    after: Place


class _Group(NamedTuple):
    """Scarce values that can stand for each other."""

    elements: frozenset[Handle]
    """The schemas of places in the array that allow them."""
    counted: tuple[tuple[int, ...], ...]
    """What each ``contains`` counts of one: more than one number if something is left out that would decide it."""


def scarce_values(node: ArrayNode, few: FewValues) -> list[Instance]:
    """The values of all kinds of items that have few; all others have more than can be used beside these."""
    handles = kinds_of_items(node)
    high = size_range(node)[1]
    enough = MAX_SCARCE if high is None else min(high, MAX_SCARCE)
    found: dict[Instance, None] = {}
    known = -1
    while len(found) > known:
        known = len(found)
        for handle in handles:
            most = known + (MOST_LISTED if high is None and _are_listed(few.normal(handle).nodes) else enough)
            values = few.of(handle, most)
            if len(values) < most:
                found.update(dict.fromkeys(values))
    return sorted(found, key=repr)


def _are_listed(nodes: Iterable[Node]) -> bool:
    """Whether all values are in lists, so that it is soon seen how many there are."""
    return all(isinstance(node, NullNode) or getattr(node, "values", None) is not None for node in nodes)


def _elements(node: ArrayNode) -> list[Handle]:
    """The schemas of the places in an array."""
    return list(dict.fromkeys(element(node, index) for index in range(len(node.prefix) + 1)))


def _counted(
    each: Contains, value: Instance, elements: Iterable[Handle], allows: Callable[[Handle, Instance], bool]
) -> Iterator[int]:
    """What a ``contains`` counts of a value that some places in the array allow."""
    is_counted = any(allows(conjunction(one, each.item), value) for one in elements)
    # Of what is counted only up to a number that is enough, the complement is not asked for.
    if not is_counted or (
        each.high is not None and any(allows(conjunction(one, negate(each.item)), value) for one in elements)
    ):
        yield 0
    if is_counted:
        yield 1


class ScarceItems:
    """The ways of one array, with the values that they leave.

    Parameters
    ----------
    node : ArrayNode
    scarce : list of Instance
        As of :func:`scarce_values`.
    few : FewValues
    allows : callable (Handle, Instance) -> bool
        Whether a schema has a value.
    """

    def __init__(
        self,
        node: ArrayNode,
        scarce: list[Instance],
        few: FewValues,
        allows: Callable[[Handle, Instance], bool],
    ) -> None:
        self._node = node
        self._low, self._high = size_range(node)
        self._enough = max([self._low, 1, len(node.prefix), *(each.start for each in node.contains)])
        self._next_items = NextItems(node, few.normal)
        self._groups: list[_Group] = []
        self.group_of: dict[Instance, int] = {}
        """Of each scarce value its group."""
        sizes: dict[_Group, int] = {}
        for value in scarce:
            elements = frozenset(one for one in _elements(node) if allows(one, value))
            counted = tuple(tuple(_counted(each, value, elements, allows)) for each in node.contains)
            group = _Group(elements, counted)
            if group not in sizes:
                sizes[group] = 0
                self._groups.append(group)
            sizes[group] += 1
            self.group_of[value] = self._groups.index(group)
        self._sizes = tuple(sizes.values())
        # The shortest way to the end has no more items than there are places that matter, and one for each that a
        # ``contains`` lacks.  Before it, the next item and one more may be values of the same group.
        self._most_left = self._enough + sum(each.low for each in node.contains) + 2
        self.start = Place(0, (0,) * len(node.contains), self.left_beside(frozenset()))
        self._has_others = cache(lambda handle: len(few.of(handle, len(scarce) + 1)) > len(scarce))
        self._ways: dict[Place, list[Way]] = {}
        self._places_behind = cache(self._find_places_behind)
        self._ends: dict[Place, bool] = {}

    @property
    def places(self) -> int:
        """How many places there are, at most."""
        sizes = (self._enough if self._high is None else self._high) + 1
        limits = [each.low if each.high is None else each.high for each in self._node.contains]
        return sizes * prod(limit + 1 for limit in (*limits, *self.start.left))

    def left_beside(self, used: frozenset[Instance]) -> tuple[int, ...]:
        """How many values of each group are left beside some, up to where that matters."""
        left = list(self._sizes)
        for value in used:
            left[self.group_of[value]] -= 1
        return tuple(min(count, self._most_left) for count in left)

    def may_end(self, place: Place) -> bool:
        """Whether the items may be all."""
        return place.size >= self._low and all(
            count >= each.low for count, each in zip(place.counts, self._node.contains, strict=True)
        )

    def ways(self, place: Place) -> list[Way]:
        """What the next item may be, as far as the array can come to its end behind it.

        Behind a value of a group, more may be left than is said (see :meth:`left_beside`).
        """
        if place not in self._ways:
            self._ways[place] = [way for way in self._next(place) if self._can_end(way.after)]
        return self._ways[place]

    def _find_places_behind(self, place: Place) -> list[Place]:
        """The places that the next item may lead to, but for this one."""
        return [way.after for way in self._next(place) if way.after != place]

    def _next(self, place: Place) -> Iterator[Way]:
        """What the next item may be, whatever that leads to."""
        if self._high is not None and place.size >= self._high:
            return
        size = place.size + 1 if self._high is not None else min(place.size + 1, self._enough)
        for handle, counts in self._next_items.of(place.size, place.counts):
            if self._has_others(handle):
                yield Way(None, handle, Place(size, counts, place.left))
        handle = element(self._node, place.size)
        for index, group in enumerate(self._groups):
            if place.left[index] and handle in group.elements:
                left = (*place.left[:index], place.left[index] - 1, *place.left[index + 1 :])
                for after in self._counts_behind(place, group):
                    yield Way(index, handle, Place(size, after, left))

    def _counts_behind(self, place: Place, group: _Group) -> Iterator[tuple[int, ...]]:
        """The counts behind a value of a group; none if there would be too many of something."""
        found: list[list[int]] = []
        for each, count, steps in zip(self._node.contains, place.counts, group.counted, strict=True):
            if place.size < each.start:
                found.append([count])
            elif each.high is None:
                found.append([max(count, min(count + max(steps), each.low))])
            else:
                found.append([count + step for step in steps if count + step <= each.high])
        return product(*found)

    def _can_end(self, place: Place) -> bool:
        """Whether there is a way to the end.  Every way comes nearer to it, but for those that change nothing."""
        todo = [place]
        while todo:
            here = todo[-1]
            if here in self._ends:
                todo.pop()
                continue
            spend()
            if self.may_end(here):
                self._ends[here] = True
                continue
            after = self._places_behind(here)
            if any(self._ends.get(each) for each in after):
                self._ends[here] = True
                continue
            unknown = next((each for each in after if each not in self._ends), None)
            if unknown is None:
                self._ends[here] = False
            else:
                todo.append(unknown)
        return self._ends[place]


class _State(NamedTuple):
    place: Place
    used: frozenset[Instance]
    """The scarce values among the items."""
    known: Values
    """All scarce values, and the other items: what follows from this set follows from that of the item before."""


class ScarceAutomaton:
    """The items of one array as an automaton.  What is left is known behind an item, so each is looked up in its text.

    Parameters
    ----------
    ways : ScarceItems
    layout : Layout
        Of the items.
    values : DifferentValues
    where : str or None
        The pointer of ``uniqueItems``.
    """

    def __init__(self, ways: ScarceItems, layout: Layout, values: DifferentValues, where: str | None) -> None:
        self._ways = ways
        self._layout = layout
        self._values = values
        self._where = where
        self._comma = values.unfolding.lexeme(layout.comma)
        self._close = values.unfolding.lexeme(layout.close_array)
        self._price_of_group = cache(self._find_price_of_group)

    @property
    def start(self) -> _State:
        return _State(self._ways.start, frozenset(), PersistentSet.of(self._ways.group_of))

    def edges(self, state: _State) -> tuple[list[on_demand.Right], list[on_demand.Edge]]:
        """The ways to end in a state, and those to go on."""
        ends: list[on_demand.Right] = []
        further: list[on_demand.Edge] = []
        for way in self._ways.ways(state.place):
            ends_here, goes_on = self._ways.may_end(way.after), bool(self._ways.ways(way.after))
            for symbol in self._symbols(way, state):
                if ends_here:
                    ends.append((symbol, self._close))
                if goes_on:
                    further.append(((symbol, self._comma), way.after, OPEN | HARD))
        return ends, further

    def _symbols(self, way: Way, state: _State) -> Iterator[Symbol]:
        """What derives the items of one way."""
        if way.group is None:
            symbols = self._values.different(self._layout, way.handle, state.known)
            if not symbols:
                raise LimitError("an item beyond the number of different values of its schema", self._where)
            yield from symbols
            return
        left: dict[str, list[Instance]] = {}
        for value, group in self._ways.group_of.items():
            if group == way.group and value not in state.used:
                left.setdefault(value.kind, []).append(value)
        for kind, values in left.items():
            if kind in ("array", "object"):
                for value in values:
                    yield from self._values.same(self._layout, way.handle, value)
            else:
                yield from self._values.one_of(self._layout, way.handle, PersistentSet.of(values))

    def follow(self, state: _State, edge: Place) -> Hashable:
        """No mask looks beyond a comma."""
        raise AssertionError("all branches are hard")

    def close(self, state: _State, edge: Place, text: on_demand.TextBefore) -> Hashable:
        """The state with the item that the text ends with, before the comma."""
        value = instance(self._layout.as_json(last_value(text)))
        if value in self._ways.group_of:
            used = state.used | {value}
            return _State(edge._replace(left=self._ways.left_beside(used)), used, state.known)
        return _State(edge, state.used, state.known.plus(value))

    def least(self, state: _State, costs: on_demand.Costs) -> int:
        """What it costs to end with the next item, or with those that must still come."""
        ends, further = self.edges(state)
        found = [costs.right(right) for right in ends]
        found += [costs.right(right) + costs.behind(self, state, edge, kind) for right, edge, kind in further]
        return min(found, default=NEVER)

    def least_behind(self, state: _State, edge: Place, costs: on_demand.Costs) -> int:
        """What the items cost at most that must come behind a comma, whatever the items before it are."""
        items = len(state.known) - len(self._ways.group_of) + len(state.used)
        todo = [(edge, items + 1)]
        known = costs.known
        while todo:
            place, others = todo[-1]
            if (self, place, others) in known:
                todo.pop()
                continue
            least, missing = NEVER, None
            for way in self._ways.ways(place):
                if self._ways.may_end(way.after):
                    rest = costs.of(self._close)
                elif way.after == place:
                    # An item that brings the end no nearer.
                    continue
                elif (self, way.after, others + 1) in known:
                    rest = costs.of(self._comma) + known[self, way.after, others + 1]
                else:
                    missing = way.after, others + 1
                    break
                least = min(least, self._price(way, others, costs) + rest)
            if missing is not None:
                todo.append(missing)
                continue
            known[self, place, others] = least
            todo.pop()
        return known[self, edge, items + 1]  # type: ignore[no-any-return]

    def _price(self, way: Way, others: int, costs: on_demand.Costs) -> int:
        """What an item costs at most, whatever the ``others`` are."""
        if way.group is not None:
            return self._price_of_group(way.group, way.handle, costs)
        found = self._values.spare(self._layout, way.handle, others + len(self._ways.group_of), costs)
        return found.cost if found.is_sure else NEVER

    def _find_price_of_group(self, group: int, handle: Handle, costs: on_demand.Costs) -> int:
        """What the dearest of the values costs: it may be the last one."""
        values = [value for value, its_group in self._ways.group_of.items() if its_group == group]
        return max(costs.any_of(self._values.same(self._layout, handle, value)) for value in values)
