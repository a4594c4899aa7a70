"""The complement of ``uniqueItems``: an automaton whose states hold the items that an array has so far.

Items are different from each other until one is equal to an earlier one; from there on they are free.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from constrain.grammar.ir import HARD, NEVER, OPEN
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.normal.instances import instance, last_value
from constrain.grammar.json_schema.normal.nodes import ArrayNode
from constrain.grammar.json_schema.text_dependent.different_values import DifferentValues
from constrain.grammar.json_schema.text_dependent.interfaces import Values, Written
from constrain.grammar.json_schema.text_dependent.unique_items import different_values
from constrain.grammar.persistent import PersistentSet
from constrain.grammar.rules_on_demand import (
    Automaton,
    Costs,
    Edge,
    Right,
    TextBefore,
    UnfoldedAutomata,
)


class _Items(NamedTuple):
    size: int
    """How many items there are, up to where that matters."""
    items: Values | None
    """The items, all different; None once one was there twice."""


class RepeatedItems:
    """The items of one array, some of them equal; all items have the same schema.

    Parameters
    ----------
    written : Written
        What is there of the other rules, by the time that rules are made.
    node : ArrayNode
        Without ``prefix`` and ``contains``, and with room for two items.
    layout : Layout
        Of the items.
    """

    def __init__(self, written: Written, node: ArrayNode, layout: Layout) -> None:
        self.written = written
        self.node = node
        self.layout = layout

    def begin(self, unfolding: UnfoldedAutomata) -> tuple[Automaton, Hashable]:
        """The automaton for a compiled grammar, and its first state."""
        return _Automaton(self, different_values(self.written, unfolding)), _Items(0, PersistentSet())


class _Automaton:
    def __init__(self, template: RepeatedItems, values: DifferentValues) -> None:
        self._layout = template.layout
        self._handle = template.node.items
        self._values = values
        node = template.node
        self._low = 2 if node.low is None else max(node.low.value, 2)
        self._high = None if node.high is None else node.high.value
        self._comma = values.unfolding.lexeme(template.layout.comma)
        self._close = values.unfolding.lexeme(template.layout.close_array)

    def edges(self, state: _Items) -> tuple[list[Right], list[Edge]]:
        """The ways to end in a state, and those to go on."""
        ends: list[Right] = []
        further: list[Edge] = []
        size = state.size + 1
        goes_on = self._high is None or size < self._high
        repeating = self._values.any(self._layout, self._handle) if state.items is None else []
        for item in sorted(state.items or (), key=repr):
            repeating += self._values.same(self._layout, self._handle, item)
        for symbol in repeating:
            if size >= self._low:
                ends.append((symbol, self._close))
            if goes_on:
                further.append(((symbol, self._comma), _Items(self._counted(size), None), 0))
        if state.items is not None and goes_on:
            # The next item can be this one again.
            new = self._values.different(self._layout, self._handle, state.items)
            further += [((symbol, self._comma), None, OPEN | HARD) for symbol in new]
        return ends, further

    def follow(self, state: _Items, edge: Hashable) -> Hashable:
        """The state behind an edge that is not open."""
        return edge

    def close(self, state: _Items, edge: Hashable, text: TextBefore) -> Hashable:
        """The state with the item that the text ends with, before the comma."""
        assert state.items is not None
        return _Items(self._counted(state.size + 1), state.items.plus(instance(last_value(text))))

    def least(self, state: _Items, costs: Costs) -> int:
        """What it costs to repeat an item, or behind that the items that must still come."""
        ends, further = self.edges(state)
        if ends:
            return min(map(costs.right, ends))
        return min(
            (
                costs.right(right) + (self.least_behind(state, edge, costs) if kind else self._rest(edge.size, costs))
                for right, edge, kind in further
            ),
            default=NEVER,
        )

    def least_behind(self, state: _Items, edge: Hashable, costs: Costs) -> int:
        """What it costs to repeat an item before the last: the last itself may be of any length."""
        symbols = [
            symbol for item in state.items or () for symbol in self._values.same(self._layout, self._handle, item)
        ]
        size = state.size + 2
        if self._high is not None and size > self._high:
            return NEVER
        rest = costs.of(self._close) if size >= self._low else costs.of(self._comma) + self._rest(size, costs)
        return costs.any_of(symbols) + rest

    def _rest(self, size: int, costs: Costs) -> int:
        """What it costs to end after ``size`` items, some of them equal, and a comma."""
        item = costs.any_of(self._values.any(self._layout, self._handle))
        more = max(self._low - size, 1)
        return more * item + (more - 1) * costs.of(self._comma) + costs.of(self._close)

    def _counted(self, size: int) -> int:
        return size if self._high is not None else min(size, self._low)
