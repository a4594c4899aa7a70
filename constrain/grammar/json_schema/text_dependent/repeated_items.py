"""The complement of ``uniqueItems``: an automaton whose states hold the items that an array has so far.

Items are different from each other until one is equal to an earlier one; from there on they are free.  What it will
cost to repeat an item that is not written yet is not known, so one short value is a way of its own: it can always be
written twice.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from constrain.errors import LimitError
from constrain.grammar import rules_on_demand as on_demand
from constrain.grammar.ir import HARD, NEVER, OPEN, Symbol
from constrain.grammar.json_schema.normal.instances import Instance, instance, last_value, text_length
from constrain.grammar.json_schema.normal.nodes import size_range
from constrain.grammar.json_schema.text_dependent.different_values import DifferentValues
from constrain.grammar.json_schema.text_dependent.interfaces import Values
from constrain.grammar.json_schema.text_dependent.persistent import PersistentSet
from constrain.grammar.json_schema.text_dependent.unique_items import ItemsTemplate, different_values


class _Items(NamedTuple):
    size: int
    """How many items there are, up to where that matters."""
    items: Values | None
    """The items, all different; None once one was there twice."""


class RepeatedItems(ItemsTemplate):
    """The items of one array, some of them equal; it has no ``prefix`` and ``contains``, and room for two items."""

    def begin(self, unfolding: on_demand.UnfoldedAutomata) -> tuple[on_demand.Automaton, Hashable]:
        """The automaton for a compiled grammar, and its first state."""
        return _Automaton(self, different_values(self.written, unfolding)), _Items(0, PersistentSet())


class _Automaton:
    def __init__(self, template: RepeatedItems, values: DifferentValues) -> None:
        self._layout = template.layout
        self._handle = template.node.items
        self._values = values
        low, self._high = size_range(template.node)
        self._low = max(low, 2)
        self._comma = values.unfolding.lexeme(template.layout.comma)
        self._close = values.unfolding.lexeme(template.layout.close_array)

    def edges(self, state: _Items) -> tuple[list[on_demand.Right], list[on_demand.Edge]]:
        """The ways to end in a state, and those to go on."""
        ends: list[on_demand.Right] = []
        further: list[on_demand.Edge] = []
        size = state.size + 1
        goes_on = self._high is None or size < self._high
        repeating = self._values.any(self._layout, self._handle) if state.items is None else []
        for item in sorted(state.items or (), key=repr):
            repeating += self._same(item)
        for symbol in repeating:
            if size >= self._low:
                ends.append((symbol, self._close))
            if goes_on:
                further.append(((symbol, self._comma), _Items(self._counted(size), None), 0))
        if state.items is not None and goes_on:
            # The next item can be this one again.
            others = state.items
            short = self._short_item
            if short is not None and short not in others:
                others = others.plus(short)
                behind = _Items(self._counted(size), others)
                further += [((symbol, self._comma), behind, 0) for symbol in self._same(short)]
            new = self._values.different(self._layout, self._handle, others)
            further += [((symbol, self._comma), None, OPEN | HARD) for symbol in new]
        return ends, further

    def follow(self, state: _Items, edge: Hashable) -> Hashable:
        """The state behind an edge that is not open."""
        return edge

    def close(self, state: _Items, edge: Hashable, text: on_demand.TextBefore) -> Hashable:
        """The state with the item that the text ends with, before the comma."""
        assert state.items is not None
        return _Items(self._counted(state.size + 1), state.items.plus(instance(self._layout.as_json(last_value(text)))))

    def least(self, state: _Items, costs: on_demand.Costs) -> int:
        """What it costs to repeat an item, or behind that the items that must still come."""
        ends, further = self.edges(state)
        found = [costs.right(right) for right in ends]
        for right, edge, kind in further:
            if kind:
                rest = costs.behind(self, state, edge, kind)
            elif edge.items is None:
                rest = self._rest(edge.size, costs)
            else:
                rest = costs.least(self, edge)
            found.append(costs.right(right) + rest)
        return min(found, default=NEVER)

    def least_behind(self, state: _Items, edge: Hashable, costs: on_demand.Costs) -> int:
        """What it costs to repeat an item before the last, or to write a short one twice: the last may be long."""
        assert state.items is not None
        size = state.size + 2
        cost = self._repeated([symbol for item in state.items for symbol in self._same(item)], size, costs)
        short = self._short_item
        if short is not None and short not in state.items:
            symbols = self._same(short)
            twice = costs.any_of(symbols) + costs.of(self._comma) + self._repeated(symbols, size + 1, costs)
            cost = min(cost, twice)
        return cost

    def _repeated(self, symbols: list[Symbol], size: int, costs: on_demand.Costs) -> int:
        """What it costs to end with one of some symbols as the item number ``size``, and those that must still come."""
        if self._high is not None and size > self._high:
            return NEVER
        rest = costs.of(self._close) if size >= self._low else costs.of(self._comma) + self._rest(size, costs)
        return costs.any_of(symbols) + rest

    def _rest(self, size: int, costs: on_demand.Costs) -> int:
        """What it costs to end after ``size`` items, some of them equal, and a comma."""
        item = costs.any_of(self._values.any(self._layout, self._handle))
        more = max(self._low - size, 1)
        return more * item + (more - 1) * costs.of(self._comma) + costs.of(self._close)

    def _counted(self, size: int) -> int:
        return size if self._high is not None else min(size, self._low)

    def _same(self, item: Instance) -> list[Symbol]:
        return self._values.same(self._layout, self._handle, item)

    @cached_property
    def _short_item(self) -> Instance | None:
        """A short value, if one is found."""
        found: list[Instance] = []
        for node in self._values.written.normal(self._handle).nodes:
            with suppress(LimitError):
                found += self._values.few.of_node(node, 1)
        return min(found, key=text_length, default=None)
