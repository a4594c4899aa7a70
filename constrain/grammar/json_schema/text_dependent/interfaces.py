"""What the automata of different values ask of the other rules, and of each other."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol

from constrain.grammar.ir import NEVER, Symbol
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.normal.few_values import FewValues
from constrain.grammar.json_schema.normal.instances import Instance
from constrain.grammar.json_schema.normal.nodes import Node
from constrain.grammar.json_schema.text_dependent.persistent import PersistentSet
from constrain.grammar.json_schema.writing.context import Written
from constrain.grammar.rules_on_demand import Automaton, Costs, UnfoldedAutomata

Values = PersistentSet[Instance]


class UniqueAutomaton(Automaton, Protocol):
    """The items of an array that are all different; its states hold them (see :mod:`~.unique_items`)."""

    def begun(self, items: Values) -> tuple[Hashable, int | None]:
        """The state after some items, and the kind of the branch behind the next one; None if that must be the last."""


class Spare(NamedTuple):
    """What a value costs at most that is none of some others, whatever these are."""

    cost: int
    is_sure: bool
    """Whether there is such a value in any case; otherwise that is what it costs if there is one."""


class Differences(Protocol):
    """Makes the symbols of values that are different from others, or equal to one; for one compiled grammar."""

    written: Written
    unfolding: UnfoldedAutomata
    few: FewValues

    def any(self, layout: Layout, handle: Handle) -> list[Symbol]:
        """What derives all values, if there are any."""

    def different(self, layout: Layout, handle: Handle, others: Values) -> list[Symbol]:
        """What derives the values that are none of ``others``."""

    def apart(
        self, layout: Layout, handle: Handle, others: Values, is_first: Callable[[Node], bool]
    ) -> tuple[list[Symbol], list[Symbol]]:
        """The same, first what some nodes derive and then what the others do."""

    def one_of(self, layout: Layout, handle: Handle, values: Values) -> list[Symbol]:
        """What derives one value, or any of several scalars of one kind."""

    def has_more(self, key: Hashable, search: Callable[[int], list[Instance]], count: int) -> bool | None:
        """Whether ``search`` finds more values than ``count``; None if that would take too long."""

    def is_roomy(self, node: Node, longest: int = NEVER) -> bool:
        """Whether every beginning of a value, of ``longest`` bytes at most, is that of more than a text can hold."""

    def spare(self, layout: Layout, handle: Handle, count: int, costs: Costs) -> Spare:
        """What the cheapest value that is none of ``count`` others costs at most."""

    def letters(self, layout: Layout, count: int, costs: Costs) -> int:
        """What as many letters cost at most as it takes to tell more than ``count`` strings apart."""
