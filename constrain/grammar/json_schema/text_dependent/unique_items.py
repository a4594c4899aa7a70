"""``uniqueItems`` for items of many values: an automaton whose states hold the items that an array has so far.

What an item is becomes known as the text is written, so the place behind a comma depends on the text.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator
from functools import cache
from typing import Any, NamedTuple

from constrain.errors import LimitError
from constrain.grammar import rules_on_demand as on_demand
from constrain.grammar.ir import BY_TEXT, HARD, NEVER, OPEN, UNSURE, Symbol
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.normal.counted_items import NextItems
from constrain.grammar.json_schema.normal.few_values import FewValues
from constrain.grammar.json_schema.normal.instances import Instance, instance, last_value
from constrain.grammar.json_schema.normal.intersect import element
from constrain.grammar.json_schema.normal.key_classes import other_classes
from constrain.grammar.json_schema.normal.nodes import ArrayNode, Node, StringNode, size_range
from constrain.grammar.json_schema.text_dependent.different_values import DifferentValues
from constrain.grammar.json_schema.text_dependent.interfaces import Values
from constrain.grammar.json_schema.text_dependent.membership import ROOM
from constrain.grammar.json_schema.text_dependent.persistent import PersistentSet
from constrain.grammar.json_schema.text_dependent.scarce_items import (
    MAX_SCARCE,
    ScarceAutomaton,
    ScarceItems,
)
from constrain.grammar.json_schema.writing.context import Written
from constrain.grammar.languages.derivatives import always_has


def _is_string(node: Node) -> bool:
    return isinstance(node, StringNode)


def can_be_different(node: ArrayNode, few: FewValues, begin: int, end: int, items: Container[Instance]) -> bool:
    """Whether the items from ``begin`` to before ``end`` can all be different from each other and from ``items``.

    A matching between items and values, by augmenting paths (Kuhn, 1955).  Items of plentiful values need none: those
    beyond the prefix, which are alike, are such.
    """
    choices = {
        index: few.of(element(node, index), MAX_SCARCE) for index in range(begin, min(end, len(node.prefix) + 1))
    }
    taken: dict[Instance, int] = {}
    return all(
        _find_partner(index, choices, items, taken, set())
        for index, values in choices.items()
        if len(values) < MAX_SCARCE
    )


def _find_partner(
    index: int,
    choices: dict[int, list[Instance]],
    items: Container[Instance],
    taken: dict[Instance, int],
    tried: set[Instance],
) -> bool:
    """Give an item a value, if need be that of another one, which gets another."""
    for value in choices[index]:
        if value not in items and value not in tried:
            tried.add(value)
            if value not in taken or _find_partner(taken[value], choices, items, taken, tried):
                taken[value] = index
                return True
    return False


class _Items(NamedTuple):
    size: int
    """How many items there are, up to where that matters."""
    counts: tuple[int, ...]
    """How often each ``contains`` was met."""
    items: Values
    """Those so far, and all scarce values: what follows from this set follows from that of the item before."""
    used: frozenset[Instance] = frozenset()
    """The scarce values among those so far."""


class _Ahead(NamedTuple):
    """The same for a mask that looks beyond a comma: without the item before it, which is not known there."""

    size: int
    counts: tuple[int, ...]
    items: Values
    is_ahead: bool = True
    """Tuples of as many fields that are equal would be one state."""


class ItemsTemplate:
    """What a template of the items of one array is made of.

    Parameters
    ----------
    written : Written
        What is there of the other rules, by the time that rules are made.
    node : ArrayNode
    layout : Layout
        Of the items.
    """

    decided_by = BY_TEXT

    def __init__(self, written: Written, node: ArrayNode, layout: Layout) -> None:
        self.written = written
        self.node = node
        self.layout = layout


class UniqueItems(ItemsTemplate):
    """The items of one array, all different."""

    def begin(self, unfolding: on_demand.UnfoldedAutomata) -> tuple[on_demand.Automaton, Hashable]:
        """The automaton for a compiled grammar, and its first state."""
        automaton = _Automaton(self, different_values(self.written, unfolding))
        return automaton, automaton.start


class ScarceUniqueItems(ItemsTemplate):
    """The items of one array, all different, where some of them have few values (see :mod:`~.scarce_items`)."""

    def __init__(self, written: Written, node: ArrayNode, layout: Layout, scarce: list[Instance]) -> None:
        super().__init__(written, node, layout)
        self._scarce = scarce

    def begin(self, unfolding: on_demand.UnfoldedAutomata) -> tuple[on_demand.Automaton, Hashable]:
        """The automaton for a compiled grammar, and its first state."""
        values = different_values(self.written, unfolding)
        ways = ScarceItems(self.node, self._scarce, values.few, values.has)
        automaton = ScarceAutomaton(ways, self.layout, values, self.node.unique)
        return automaton, automaton.start


def different_values(written: Written, unfolding: on_demand.UnfoldedAutomata) -> DifferentValues:
    """The one maker of a schema's symbols: what it has written of other rules is its own."""

    def unique(values: DifferentValues, node: ArrayNode, layout: Layout) -> _Automaton:
        return _Automaton(UniqueItems(written, node, layout), values)

    few = FewValues(written.normal, other_classes)
    return unfolding.shared(written, lambda: DifferentValues(written, unfolding, few, unique))


class _Automaton:
    def __init__(self, template: UniqueItems, values: DifferentValues) -> None:
        self._template = template
        self._values = values
        node = self._node = template.node
        self._low, self._high = size_range(node)
        self._enough = max([self._low, 1, len(node.prefix), *(each.start for each in node.contains)])
        # Without ``contains``: the values of the items of a prefix that have few.
        self._scarce: frozenset[Instance] = frozenset()
        if node.prefix and not node.contains:
            found = [self._few_of(index) for index in range(len(node.prefix))]
            self._scarce = frozenset(value for some in found if len(some) < MAX_SCARCE for value in some)
        self._next_items = NextItems(node, template.written.normal)
        self._is_roomy = cache(self._find_roomy)
        self._has_room_for_strings = cache(self._find_room_for_strings)
        # Whether an array can come to its end behind so many items with such counts.
        self._ending: dict[tuple[int, tuple[int, ...]], bool] = {}
        lexeme = values.unfolding.lexeme
        self._comma = lexeme(template.layout.comma)
        # How much of an item a token may hold behind the comma.
        has_comma = always_has(template.layout.comma, ord(","))
        self._longest = values.unfolding.longest_behind(ord(",")) if has_comma else NEVER
        self._close = lexeme(template.layout.close_array)

    @property
    def start(self) -> _Items:
        return _Items(0, (0,) * len(self._node.contains), PersistentSet.of(self._scarce))

    def begun(self, items: Values) -> tuple[_Items, int | None]:
        """The state after some items, and the kind of the branch behind the next one; None if that must be the last.

        Of arrays without ``prefix`` and ``contains``.
        """
        state = _Items(len(items) if self._high is not None else min(len(items), self._enough), (), items)
        if not self._goes_on(state, ()):
            return state, None
        return state, OPEN if self._is_roomy(state.size + 1, ()) else OPEN | HARD

    def edges(self, state: _Items | _Ahead) -> tuple[list[on_demand.Right], list[on_demand.Edge]]:
        """The ways to end in a state, and those to go on."""
        if self._scarce and isinstance(state, _Items):
            return self._scarce_edges(state)
        ends: list[on_demand.Right] = []
        further: list[on_demand.Edge] = []
        for handle, counts in self._ways(state.size, state.counts):
            if isinstance(state, _Ahead):
                # Only the end of this item decides whether it equals the one before the comma.
                free, rest = self._values.apart(self._template.layout, handle, state.items, self._is_free)
                further += [((symbol,), (counts, True), OPEN | HARD | UNSURE) for symbol in free]
                further += [((symbol,), (counts, False), OPEN | HARD | UNSURE) for symbol in rest]
                continue
            ends_here = self._may_end(state.size + 1, counts)
            goes_on = self._goes_on(state, counts)
            for symbol, kind in self._items_by_kind(state, handle, counts):
                if ends_here:
                    ends.append((symbol, self._close))
                if goes_on:
                    further.append(((symbol, self._comma), counts, kind))
        return ends, further

    def _items_by_kind(self, state: _Items, handle: Handle, counts: tuple[int, ...]) -> Iterator[tuple[Symbol, int]]:
        """The symbols of the next item, each with the kind of the branch behind it."""
        layout, size = self._template.layout, state.size + 1
        if self._is_roomy(size, counts) or not self._has_room_for_strings(size, counts):
            kind = OPEN if self._is_roomy(size, counts) else OPEN | HARD
            for symbol in self._values.different(layout, handle, state.items):
                yield symbol, kind
            return
        strings, rest = self._values.apart(layout, handle, state.items, _is_string)
        for symbol in strings:
            yield symbol, OPEN
        for symbol in rest:
            yield symbol, OPEN | HARD

    def follow(self, state: _Items, edge: tuple[int, ...]) -> Hashable:
        """What a mask may take for the state behind a comma."""
        return _Ahead(state.size + 1, edge, state.items)

    def _scarce_edges(self, state: _Items) -> tuple[list[on_demand.Right], list[on_demand.Edge]]:
        """The same where values may run out: each of them that a later item may need is a way of its own."""
        ends: list[on_demand.Right] = []
        further: list[on_demand.Edge] = []
        layout, values, counts = self._template.layout, self._values, state.counts
        handle = element(self._node, state.size)
        ways = [(values.different(layout, handle, state.items), state.used)]
        left = sorted(self._scarce - state.used, key=repr)
        ways += [(values.same(layout, handle, value), state.used | {value}) for value in left]
        size = state.size + 1
        for symbols, used in ways:
            for symbol in symbols:
                if size >= self._low:
                    ends.append((symbol, self._close))
                if self._can_go_on(size, used):
                    further.append(((symbol, self._comma), counts, OPEN | HARD))
        return ends, further

    def _can_go_on(self, size: int, used: frozenset[Instance]) -> bool:
        """Whether there are different values for the next item, and for as many as there must be."""
        if self._high is not None and size >= self._high:
            return False
        return can_be_different(self._node, self._values.few, size, max(size + 1, self._low), used)

    def _few_of(self, index: int) -> list[Instance]:
        return self._values.few.of(element(self._node, index), MAX_SCARCE)

    def _find_roomy(self, index: int, counts: tuple[int, ...]) -> bool:
        """Whether all that an item may begin with in one token can be completed to another value than those before."""
        return all(self._has_room(node) for nodes in self._nodes_at(index, counts) for node in nodes)

    def _find_room_for_strings(self, index: int, counts: tuple[int, ...]) -> bool:
        """Whether that is so for what a string may begin with: a string before it takes away no other value."""
        strings = [list(filter(_is_string, nodes)) for nodes in self._nodes_at(index, counts)]
        return all(any(map(self._is_free, nodes)) for nodes in strings if nodes)

    def _has_room(self, node: Node) -> bool:
        return self._values.is_roomy(node, self._longest)

    def _is_free(self, node: Node) -> bool:
        """Whether letters can be added to whatever a token holds of it."""
        return _is_string(node) and self._has_room(node)

    def _nodes_at(self, index: int, counts: tuple[int, ...]) -> list[tuple[Node, ...]]:
        """For each way to take the item at an index what it may be."""
        return [self._template.written.normal(handle).nodes for handle, _ in self._next_items.of(index, counts)]

    def close(self, state: _Items, edge: tuple[int, ...], text: on_demand.TextBefore) -> Hashable:
        """The state with the item that the text ends with, before the comma."""
        value = instance(self._template.layout.as_json(last_value(text)))
        if value in self._scarce:
            return _Items(self._behind(state.size), edge, state.items, state.used | {value})
        return _Items(self._behind(state.size), edge, state.items.plus(value), state.used)

    def least(self, state: _Items, costs: on_demand.Costs) -> int:
        """What it costs to end with the next item, or if that cannot be the last, with as few as possible."""
        ends, further = self.edges(state)
        if ends:
            return min(map(costs.right, ends))
        return min(
            (costs.right(right) + costs.behind(self, state, edge, kind) for right, edge, kind in further), default=NEVER
        )

    def least_behind(self, state: _Items | _Ahead, edge: Any, costs: on_demand.Costs) -> int:
        """What the items cost at most that must come behind a comma, whatever the items before it are."""
        if isinstance(state, _Ahead):
            counts, is_free = edge
            return self._least_ahead(state, counts, costs) if is_free else NEVER
        others = len(state.items) - len(self._scarce) + len(state.used) + 1
        key = self, state.size + 1, edge, others
        if key not in costs.known:
            costs.known[key] = self._items_at_most(state.size + 1, edge, others, costs)
        return costs.known[key]  # type: ignore[no-any-return]

    def _items_at_most(self, size: int, counts: tuple[int, ...], others: int, costs: on_demand.Costs) -> int:
        """What the fewest items cost at most that come after ``size`` items, which ``others`` are different from.

        Every item must be different from those before it, whatever they are.
        """
        known: dict[tuple[int, tuple[int, ...]], int] = {}
        todo = [(size, counts)]
        while todo:
            index, here = todo[-1]
            if (index, here) in known:
                todo.pop()
                continue
            sure: list[int] = []
            unsure: list[int] = []
            missing: list[tuple[int, tuple[int, ...]]] = []
            for handle, after in self._next_items.of(index, here):
                if self._may_end(index + 1, after):
                    rest = costs.of(self._close)
                elif self._high is not None and index + 1 >= self._high:
                    continue
                elif self._high is None and index > self._enough and after == here:
                    # An item that brings the end no nearer.
                    continue
                elif (index + 1, after) not in known:
                    missing.append((index + 1, after))
                    continue
                else:
                    rest = costs.of(self._comma) + known[index + 1, after]
                # What others have may be all that a later item could be, and is then left to it.
                count = others + index - size + len(self._scarce)
                found = self._values.spare(self._template.layout, handle, count, costs)
                (sure if found.is_sure else unsure).append(found.cost + rest)
            if missing:
                todo += missing
                continue
            known[index, here] = min(sure) if sure else max(unsure, default=NEVER)
            todo.pop()
        return known[size, counts]

    def _least_ahead(self, state: _Ahead, counts: tuple[int, ...], costs: on_demand.Costs) -> int:
        """The same behind a string that a mask looks ahead to, with room for it to be different from one more."""
        rest = costs.of(self._close)
        if not self._may_end(state.size + 1, counts):
            rest = costs.of(self._comma) + self._items_at_most(state.size + 1, counts, len(state.items) + 2, costs)
        letters = self._values.letters(self._template.layout, len(state.items) + 1, costs)
        # More may be too many for a string that is limited.
        return rest + letters if letters <= ROOM else NEVER

    def _may_end(self, index: int, counts: tuple[int, ...]) -> bool:
        return index >= self._low and all(
            count >= each.low for count, each in zip(counts, self._node.contains, strict=True)
        )

    def _ways(self, index: int, counts: tuple[int, ...]) -> Iterator[tuple[Handle, tuple[int, ...]]]:
        """What the item at an index may be, with the counts after it, as far as the array can come to its end then."""
        for handle, after in self._next_items.of(index, counts):
            if not self._node.contains or self._can_end(self._behind(index), after):
                yield handle, after

    def _behind(self, index: int) -> int:
        """How many items there are behind the one at an index, up to where that matters."""
        return index + 1 if self._high is not None else min(index + 1, self._enough)

    def _can_end(self, index: int, counts: tuple[int, ...]) -> bool:
        """Whether what ``contains`` asks for can still come: a prefix may be the only place where it can.

        Values do not run out where there is a ``contains``.
        """
        before: dict[tuple[int, tuple[int, ...]], tuple[int, tuple[int, ...]] | None] = {(index, counts): None}
        todo = [(index, counts)]
        while todo:
            here = todo.pop()
            if self._ending.get(here) or self._may_end(*here):
                way: tuple[int, tuple[int, ...]] | None = here
                while way is not None:
                    self._ending[way] = True
                    way = before[way]
                return True
            if here in self._ending or (self._high is not None and here[0] >= self._high):
                continue
            for handle, after in self._next_items.of(*here):
                then = self._behind(here[0]), after
                if then not in before and self._has(handle, 1):
                    before[then] = here
                    todo.append(then)
        self._ending.update(dict.fromkeys(before, False))
        return False

    def _has(self, handle: Handle, count: int) -> bool:
        """Whether a schema has so many values; more are looked for, since the next item asks for one more."""
        return len(self._values.few.of(handle, 1 << count.bit_length())) >= count

    def _goes_on(self, state: _Items, counts: tuple[int, ...]) -> bool:
        """Whether there can be another item after the next, whatever that is."""
        index, node = state.size + 1, self._node
        if self._high is not None and index >= self._high:
            return False
        enough = len(state.items) + 2
        if not node.prefix and not node.contains:
            return self._has(node.items, enough)
        found = False
        for handle, _ in self._ways(index, counts):
            if self._has(handle, enough):
                found = True
            elif self._values.few.of(handle, 1):
                raise LimitError("an item beyond the number of different values of its schema", node.unique)
        return found
