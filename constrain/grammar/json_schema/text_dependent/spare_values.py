"""What a value costs at most that is different from others: for budgets, whatever the others are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from constrain.errors import LimitError
from constrain.grammar.ir import NEVER, Symbol
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.normal.instances import Instance
from constrain.grammar.json_schema.normal.nodes import ArrayNode, Node, ObjectNode, StringNode
from constrain.grammar.json_schema.text_dependent.different_arrays import ArrayAutomaton
from constrain.grammar.json_schema.text_dependent.different_objects import ObjectAutomaton
from constrain.grammar.json_schema.text_dependent.interfaces import Differences, Spare, Values
from constrain.grammar.json_schema.text_dependent.known_scalars import only
from constrain.grammar.languages.regular import literal
from constrain.grammar.rules_on_demand import Costs

# Values of arrays and objects that are gone through to find the one that costs most.
_MOST_VALUES = 500

# What different strings are made of; the cheapest of these are taken.
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


_NONE: Values = Values()


def _parts(node: ArrayNode | ObjectNode) -> list[Handle]:
    """The schemas of all that is in an array or object."""
    if isinstance(node, ArrayNode):
        return [node.items, *node.prefix]
    return [*node.properties.values(), node.additional, *(rule.value for rule in node.rules)]


class _Source(Differences, Protocol):
    def allows(self, node: Node, value: Instance) -> bool:
        """Whether a node has a value."""

    def scalar(self, layout: Layout, node: Node) -> list[Symbol]:
        """The symbol of a scalar node, if it has a value."""

    def automaton(self, layout: Layout, node: ArrayNode | ObjectNode) -> ObjectAutomaton | ArrayAutomaton | None:
        """The automaton of an array or object; None where nothing may be nested."""


class SpareValues:
    """For one compiled grammar."""

    def __init__(self, values: _Source) -> None:
        self._values = values

    def spare(self, layout: Layout, handle: Handle, count: int, costs: Costs) -> Spare:
        """What the cheapest value that is none of ``count`` others costs at most."""
        key = self, layout, handle, count
        if key not in costs.known:
            # Within itself a value is no cheaper.
            costs.known[key] = Spare(NEVER, False)
            found = [self._spare_of(layout, node, count, costs) for node in self._values.written.normal(handle).nodes]
            sure = [each.cost for each in found if each.is_sure and each.cost < NEVER]
            cost = min(sure) if sure else max((each.cost for each in found), default=NEVER)
            costs.known[key] = Spare(cost, bool(sure))
        return costs.known[key]  # type: ignore[no-any-return]

    def letters(self, layout: Layout, count: int, costs: Costs) -> int:
        """What as many letters cost at most as it takes to tell more than ``count`` strings apart."""
        key = self, layout, "letters"
        if key not in costs.known:
            prices = [costs.of(self._values.unfolding.lexeme(literal(letter))) for letter in _LETTERS]
            costs.known[key] = min(prices), prices.count(min(prices))
        price, letters = costs.known[key]
        size = count if letters == 1 else 0
        while letters > 1 and letters**size <= count:
            size += 1
        return min(size * int(price), NEVER)

    def _spare_of(self, layout: Layout, node: Node, count: int, costs: Costs) -> Spare:
        if isinstance(node, StringNode) and node.values is None and not node.terms and node.high is None:
            shortest = costs.any_of(self._values.scalar(layout, node))
            return Spare(min(shortest + self.letters(layout, count, costs), NEVER), True)
        if isinstance(node, (ArrayNode, ObjectNode)):
            automaton = self._values.automaton(layout, node)
            if automaton is None:
                return Spare(NEVER, False)
            cost = automaton.least_different(count, costs)
            if cost < NEVER:
                return Spare(cost, True)
            if self._has_unique_items(node):
                # What the others of their items cost is not known beside some values, only what they cost at most.
                return Spare(NEVER, False)
            # What arrays cost is exact if what items cost is, so one of as many arrays costs no more than the dearest.
            is_exact = isinstance(node, ArrayNode) and self._has_no_objects(node.items, *node.prefix)
            values = self._values_of(node, count + 1 if is_exact else _MOST_VALUES)
            if values is None or (not is_exact and len(values) == _MOST_VALUES):
                return Spare(NEVER, False)
            cost = max((self._same_cost(layout, node, value, costs) for value in values), default=0)
            return Spare(cost, len(values) > count)
        # One more than there are others, so one of them is none of these; a few more, so that they serve others too.
        wanted = 1 << (count + 1).bit_length()
        values = self._values_of(node, wanted)
        if values is None:
            return Spare(NEVER, False)
        cost = max((costs.any_of(self._values.scalar(layout, only(node, [value]))) for value in values), default=0)
        return Spare(cost, len(values) > count)

    def _values_of(self, node: Node, count: int) -> list[Instance] | None:
        """So many values of a node, or all; None if that would take too long."""
        try:
            return self._values.few.of_node(node, count)
        except LimitError:
            return None

    def _has_no_objects(self, *handles: Handle) -> bool:
        """Whether no value, however deep inside, is an object."""
        return not any(isinstance(node, ObjectNode) for node in self._nodes_inside(handles))

    def _has_unique_items(self, node: ArrayNode | ObjectNode) -> bool:
        """Whether an array, however deep inside a value, has unique items."""
        inside = [node, *self._nodes_inside(_parts(node))]
        return any(isinstance(each, ArrayNode) and each.unique is not None for each in inside)

    def _nodes_inside(self, handles: Iterable[Handle]) -> list[Node]:
        """What values may be that are valid for some schemas, and all that is inside of these."""
        todo = list(dict.fromkeys(handles))
        seen, found = set(todo), []
        for handle in todo:
            for node in self._values.written.normal(handle).nodes:
                found.append(node)
                if isinstance(node, (ArrayNode, ObjectNode)):
                    inner = [part for part in dict.fromkeys(_parts(node)) if part not in seen]
                    seen.update(inner)
                    todo += inner
        return found

    def _same_cost(self, layout: Layout, node: ArrayNode | ObjectNode, value: Instance, costs: Costs) -> int:
        automaton = self._values.automaton(layout, node)
        if automaton is None or not self._values.allows(node, value):
            return NEVER
        return costs.least(automaton, automaton.start(_NONE.plus(value), True))
