"""Rules for the values of a schema that are different from some others, or equal to one.

As long as the members of an object are those of some of the others, these are kept in mind, and with the first
member that is in none of them all is decided.  So the rules for an object that must not be one of k others are an
automaton whose states hold those of the k that what was written fits to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from constrain.errors import LimitError
from constrain.grammar.ir import NEVER, Symbol
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.layout import Layout, named_keys
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import Text, Words, contains, every, spelled, without
from constrain.grammar.json_schema.normal.few_values import FewValues, few_words, members_of
from constrain.grammar.json_schema.normal.instances import Instance, Number, decimal
from constrain.grammar.json_schema.normal.intersect import element, number_fits
from constrain.grammar.json_schema.normal.key_classes import other_classes
from constrain.grammar.json_schema.normal.nodes import (
    ArrayNode,
    BooleanNode,
    Conflict,
    Node,
    Normal,
    NullNode,
    NumberNode,
    ObjectNode,
    StringNode,
    Term,
    single_number,
    text_of,
)
from constrain.grammar.json_schema.text_dependent.rules_on_demand import Costs, Edge, JsonUnfolding, Right, TextBefore
from constrain.grammar.json_schema.writing.listed_values import MIN_LISTED, is_listed, listed_language
from constrain.grammar.json_schema.writing.scalars import scalar, scalar_name
from constrain.grammar.regular import Empty, Regular, literal

Values = frozenset[Instance]

MAX_LISTED = 2000
"""How many arrays and objects an ``enum`` may list whose values have to be different from each other."""

_MOST_DIGITS, _GREATEST_EXPONENT = 100, 400

# Values of arrays and objects that are gone through to find the one that costs most.
_MOST_VALUES = 500

# More keys than a text can have.
_MANY_KEYS = 1 << 32

# What different strings are made of; the cheapest of these are taken.
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Written(Protocol):
    """The rules of a schema that are there already."""

    any_order: bool

    def normal(self, handle: Handle) -> Normal:
        """The normal form of a handle."""

    def written_value(self, layout: Layout, handle: Handle) -> Symbol | None:
        """The symbol of a value in a layout; None if there is none."""

    def written_container(self, layout: Layout, node: Node) -> Symbol | None:
        """The symbol of an array or object in a layout."""

    def refuse(self, reason: str, pointer: str) -> None:
        """Raise SchemaError for what cannot be enforced."""


class UniqueAutomaton(Protocol):
    """The items of an array that are all different; its states hold them (see :mod:`~.unique_items`)."""

    def begun(self, items: Values) -> tuple[Hashable, int | None]:
        """The state after some items, and the kind of the branch behind the next one; None if that must be the last."""

    def edges(self, state: Any) -> tuple[list[Right], list[Edge]]:
        """The ways to end in a state, and those to go on."""

    def follow(self, state: Any, edge: Any) -> Hashable:
        """The state behind an edge; for an open branch, the one that stands in for what it is in a text."""

    def close(self, state: Any, edge: Any, text: TextBefore) -> Hashable:
        """The state behind an edge to an open branch, in a text."""

    def least(self, state: Any, costs: Costs) -> int:
        """What it costs to reach an end from a state."""

    def least_behind(self, state: Any, edge: Any, costs: Costs) -> int:
        """The same behind an edge to an open branch, whatever the text."""


class Spare(NamedTuple):
    """What a value costs at most that is none of some others, whatever these are."""

    cost: int
    is_sure: bool
    """Whether there is such a value in any case; otherwise that is what it costs if there is one."""


UniqueMaker = Callable[["DifferentValues", ArrayNode, Layout], UniqueAutomaton]


class DifferentValues:
    """Makes the symbols, for one compiled grammar; ``unique`` makes the automata of arrays with ``uniqueItems``."""

    def __init__(self, written: Written, unfolding: JsonUnfolding, few: FewValues, unique: UniqueMaker) -> None:
        self.written = written
        self.unfolding = unfolding
        self.few = few
        self.unique = unique
        self._automata: dict[tuple[Node, Layout], ObjectAutomaton | ArrayAutomaton] = {}
        self._allowed_scalars: dict[Node, dict[Instance, bool]] = {}

    def any(self, layout: Layout, handle: Handle) -> list[Symbol]:
        """The symbol of all values, if there are any."""
        symbol = self.written.written_value(layout, handle)
        return [symbol] if symbol is not None and self.unfolding.is_usable(symbol) else []

    def different(self, layout: Layout, handle: Handle, others: Values) -> list[Symbol]:
        """What derives the values that are none of ``others``."""
        if not others:
            return self.any(layout, handle)
        nodes = self.written.normal(handle).nodes
        by_kind: dict[str, list[Instance]] = {}
        for value in others:
            by_kind.setdefault(value.kind, []).append(value)
        if all(node.kind not in by_kind for node in nodes):
            return self.any(layout, handle)
        symbols, nodes = self._listed(layout, nodes, others)
        for node in nodes:
            mine = frozenset(by_kind.get(node.kind, ()))
            if isinstance(node, (ArrayNode, ObjectNode)):
                if not mine:
                    symbol = self.written.written_container(layout, node)
                    if symbol is not None and self.unfolding.is_usable(symbol):
                        symbols.append(symbol)
                    continue
                automaton = self._automaton(layout, node)
                if automaton is not None and automaton.can_differ(mine):
                    symbols.append(self.unfolding.nonterminal(automaton, automaton.start(mine, False)))
                continue
            rest = excluding(node, mine)
            if rest is not None and self.few.of_node(rest, 1):
                symbols += self._scalar(layout, rest)
        return symbols

    def _listed(self, layout: Layout, nodes: tuple[Node, ...], others: Values) -> tuple[list[Symbol], tuple[Node, ...]]:
        """The symbol of those arrays and objects of a long list that are none of ``others``; and the other nodes."""
        several = [node for node in nodes if is_listed(node)]
        if len(several) < MIN_LISTED or self.written.any_order or layout.inner is None:
            return [], nodes
        if len(several) > MAX_LISTED:
            raise LimitError(f"at {several[0].pointer}: uniqueItems over more than {MAX_LISTED} arrays and objects")
        known = set(several)
        left = [node for node in several if others.isdisjoint(self.few.of_node(node, 1))]
        language = listed_language(left, layout.inner, self.written.refuse)
        symbols = [] if isinstance(language, Empty) else [self.unfolding.lexeme(language, "a value listed")]
        return symbols, tuple(node for node in nodes if node not in known)

    def same(self, layout: Layout, handle: Handle, value: Instance) -> list[Symbol]:
        """What derives one value."""
        symbols: list[Symbol] = []
        for node in self.written.normal(handle).nodes:
            if node.kind != value.kind or not self.allows(node, value):
                continue
            if isinstance(node, (ArrayNode, ObjectNode)):
                if (
                    is_listed(node)
                    and layout.inner is not None
                    and self.written.written_container(layout, node) is None
                ):
                    # The rules of its parts were never written.
                    language = listed_language([node], layout.inner, self.written.refuse)
                    symbols.append(self.unfolding.lexeme(language, "a value listed"))
                    continue
                automaton = self._automaton(layout, node)
                if automaton is not None:
                    symbols.append(self.unfolding.nonterminal(automaton, automaton.start(frozenset((value,)), True)))
            else:
                symbols += self._scalar(layout, only(node, [value]))
        return symbols

    def one_of(self, layout: Layout, handle: Handle, values: list[Instance]) -> list[Symbol]:
        """What derives some scalar values of one kind."""
        symbols: list[Symbol] = []
        for node in self.written.normal(handle).nodes:
            if node.kind == values[0].kind:
                known = self._allowed_scalars.setdefault(node, {})
                for value in values:
                    if value not in known:
                        known[value] = self.allows(node, value)
                allowed = [value for value in values if known[value]]
                is_free = isinstance(node, NumberNode) and node.values is None and not layout.notation.is_usual
                # Together they would be written as numbers of the schema are, which have a spelling of their own.
                for some in [[value] for value in allowed] if is_free else [allowed] if allowed else []:
                    symbols += self._scalar(layout, only(node, some))
        return symbols

    def allows(self, node: Node, value: Instance) -> bool:
        """Whether a value is one of a node, and can be written again: numbers beyond 1e10000 are not."""
        if node.kind != value.kind:
            return False
        content = value.content
        if isinstance(node, NullNode):
            return True
        if isinstance(node, BooleanNode):
            return content in node.values
        if isinstance(node, StringNode):
            return is_text(content) and contains(text_of(node), content)
        if isinstance(node, NumberNode):
            number = decimal(content)
            if number is None:
                return False
            return number in node.values if node.values is not None else number_fits(number, node)
        if isinstance(node, ArrayNode):
            size = len(content)
            if (node.low is not None and size < node.low.value) or (node.high is not None and size > node.high.value):
                return False
            if node.unique is not None and len(set(content)) < size:
                return False
            return all(self._allowed(element(node, index), item) for index, item in enumerate(content))
        assert isinstance(node, ObjectNode)
        members = dict(content)
        size = len(members)
        if (node.low is not None and size < node.low.value) or (node.high is not None and size > node.high.value):
            return False
        if not members.keys() >= node.required.keys():
            return False
        handles = dict(members_of(node))
        classes = other_classes(node)
        for name, member in members.items():
            handle = handles.get(name)
            if handle is None:
                handle = next((handle for keys, handle in classes if contains(keys, name)), None)
            if handle is None or not self._allowed(handle, member):
                return False
        return True

    def is_roomy(self, node: Node) -> bool:
        """Whether all that its values may begin with begins endlessly many; False also if that is not plain to see.

        So it is with strings of any kind and length, with objects that take further keys, and arrays further items.
        """
        if isinstance(node, StringNode):
            return node.values is None and not node.terms and node.high is None
        if isinstance(node, ArrayNode):
            return node.high is None and node.unique is None and bool(self.few.of(node.items, 1))
        if isinstance(node, ObjectNode):
            names = frozenset(filter(is_text, (name for name, _ in members_of(node))))
            free = without(Words(names)) if names else every()
            return node.high is None and any(
                keys == free and self.few.of(handle, 1) for keys, handle in other_classes(node)
            )
        return False

    def spare(self, layout: Layout, handle: Handle, count: int, costs: Costs) -> Spare:
        """What the cheapest value that is none of ``count`` others costs at most."""
        key = self, layout, handle, count
        if key not in costs.known:
            # Within itself a value is no cheaper.
            costs.known[key] = Spare(NEVER, False)
            found = [self._spare_of(layout, node, count, costs) for node in self.written.normal(handle).nodes]
            sure = [each.cost for each in found if each.is_sure and each.cost < NEVER]
            cost = min(sure) if sure else max((each.cost for each in found), default=NEVER)
            costs.known[key] = Spare(cost, bool(sure))
        return costs.known[key]  # type: ignore[no-any-return]

    def letters(self, layout: Layout, count: int, costs: Costs) -> int:
        """What as many letters cost at most as it takes to tell more than ``count`` strings apart."""
        key = self, layout, "letters"
        if key not in costs.known:
            prices = [costs.of(self.unfolding.lexeme(literal(letter))) for letter in _LETTERS]
            costs.known[key] = min(prices), prices.count(min(prices))
        price, letters = costs.known[key]
        size = count if letters == 1 else 0
        while letters > 1 and letters**size <= count:
            size += 1
        return min(size * int(price), NEVER)

    def _spare_of(self, layout: Layout, node: Node, count: int, costs: Costs) -> Spare:
        if isinstance(node, StringNode) and node.values is None and not node.terms and node.high is None:
            shortest = costs.any_of(self._scalar(layout, node))
            return Spare(min(shortest + self.letters(layout, count, costs), NEVER), True)
        if isinstance(node, (ArrayNode, ObjectNode)):
            automaton = self._automaton(layout, node)
            if automaton is None:
                return Spare(NEVER, False)
            cost = automaton.least_different(count, costs)
            if cost < NEVER:
                return Spare(cost, True)
            # What arrays cost is exact if what items cost is, so one of as many arrays costs no more than the dearest.
            is_exact = isinstance(node, ArrayNode) and self._has_no_objects(node.items, *node.prefix)
            values = self._values_of(node, count + 1 if is_exact else _MOST_VALUES)
            if values is None or (not is_exact and len(values) == _MOST_VALUES):
                return Spare(NEVER, False)
            cost = max((self._same_cost(layout, node, value, costs) for value in values), default=0)
            return Spare(cost, len(values) > count)
        # One more than there are others, so one of them is none of these; a few more, so that they serve others too.
        wanted = 1 << (count + 1).bit_length()
        values = self.few.of_node(node, wanted)
        cost = max((costs.any_of(self._scalar(layout, only(node, [value]))) for value in values), default=0)
        return Spare(cost, len(values) > count)

    def _values_of(self, node: Node, count: int) -> list[Instance] | None:
        """So many values of a node, or all; None if that would take too long."""
        try:
            return self.few.of_node(node, count)
        except LimitError:
            return None

    def _has_no_objects(self, *handles: Handle) -> bool:
        """Whether no value, however deep inside, is an object."""
        todo, seen = list(handles), set(handles)
        for handle in todo:
            for node in self.written.normal(handle).nodes:
                if isinstance(node, ObjectNode):
                    return False
                if isinstance(node, ArrayNode):
                    inner = {node.items, *node.prefix} - seen
                    seen |= inner
                    todo += inner
        return True

    def _same_cost(self, layout: Layout, node: ArrayNode | ObjectNode, value: Instance, costs: Costs) -> int:
        automaton = self._automaton(layout, node)
        if automaton is None or not self.allows(node, value):
            return NEVER
        return costs.least(automaton, automaton.start(frozenset((value,)), True))

    def _allowed(self, handle: Handle, value: Instance) -> bool:
        return any(self.allows(node, value) for node in self.written.normal(handle).nodes)

    def _scalar(self, layout: Layout, node: Node) -> list[Symbol]:
        core = scalar(node, self.written.refuse, layout.notation)
        return [] if isinstance(core, Conflict) else [self.unfolding.lexeme(layout.value(core), scalar_name(node))]

    def _automaton(self, layout: Layout, node: ArrayNode | ObjectNode) -> ObjectAutomaton | ArrayAutomaton | None:
        key = node, layout
        known = self._automata.get(key)
        if known is None:
            inner = layout.inner
            if inner is None:
                return None
            kind = ArrayAutomaton if isinstance(node, ArrayNode) else ObjectAutomaton
            known = self._automata[key] = kind(self, node, inner)  # type: ignore[arg-type]
        return known


def excluding(node: Node, values: Values) -> Node | None:
    """A scalar node without some values; None if nothing is left, as far as that is plain to see."""
    if not values:
        return node
    if isinstance(node, NullNode):
        return None
    if isinstance(node, BooleanNode):
        booleans = tuple(value for value in node.values if Instance("boolean", value) not in values)
        return replace(node, values=booleans) if booleans else None
    if isinstance(node, StringNode):
        words = frozenset(filter(is_text, (value.content for value in values)))
        if node.values is not None:
            left = tuple(value for value in node.values if value not in words)
            return replace(node, values=left) if left else None
        return replace(node, terms=(*node.terms, Term(without(Words(words)), node.pointer)))
    assert isinstance(node, NumberNode)
    if node.values is not None:
        known = {decimal(value.content) for value in values}
        kept = tuple(value for value in node.values if value not in known)
        return replace(node, values=kept) if kept else None
    numbers = [number for value in values if (number := _moderate(value.content)) is not None]
    # What is too long or too large to be left out one by one is left out with all of its kind.
    is_moderate = node.is_moderate or len(numbers) < len(values)
    return replace(node, excluded=(*node.excluded, *sorted(numbers)), is_moderate=is_moderate)


@lru_cache(maxsize=1 << 14)
def _moderate(value: Number) -> Decimal | None:
    """A number as a Decimal; None if it has more digits, or is larger or smaller, than any MODERATE_NUMBER."""
    number = decimal(value)
    if number is None or len(value.digits) > _MOST_DIGITS or abs(number.adjusted()) > _GREATEST_EXPONENT:
        return None
    return number


def only(node: Node, values: list[Instance]) -> Node:
    """A scalar node with just some of its values."""
    if isinstance(node, BooleanNode):
        return replace(node, values=tuple(value.content for value in values))
    if isinstance(node, StringNode):
        return StringNode(node.pointer, values=tuple(value.content for value in values))
    if isinstance(node, NumberNode):
        numbers = [number for value in values if (number := decimal(value.content)) is not None]
        if len(numbers) < len(values):
            raise LimitError(f"at {node.pointer}: a number of more than 10,000 digits that has to come again")
        if len(numbers) == 1:
            return single_number(node, numbers[0])
        return NumberNode(node.pointer, node.form, values=tuple(numbers), has_fraction=node.has_fraction)
    return node


# -- arrays --------------------------------------------------------------------------------------


class _Items(NamedTuple):
    size: int
    """How many items there are; up to where that matters, once all is decided."""
    others: Values
    """The arrays that begin with the same items."""
    is_same: bool
    """Whether it must be the one of ``others``, or none of them."""


class _Begun(NamedTuple):
    """In place of a state, behind an item that makes an array different: that of :class:`UniqueAutomaton` before it."""

    state: Any


class ArrayAutomaton:
    """The arrays of a node that are different from others, or equal to one.

    Its states are :class:`_Items`, and once an array with ``uniqueItems`` is different, those of another automaton.
    """

    def __init__(self, values: DifferentValues, node: ArrayNode, layout: Layout) -> None:
        self._values = values
        self._node = node
        self._layout = layout
        self._low = 0 if node.low is None else node.low.value
        self._high = None if node.high is None else node.high.value
        lexeme = values.unfolding.lexeme
        self._open = lexeme(layout.open_array)
        self._comma = lexeme(layout.comma)
        self._close = lexeme(layout.close_array)
        self._empty: Right = (self._open, self._close) if layout.empty_array is None else (lexeme(layout.empty_array),)
        self._may_go_on = lru_cache(maxsize=10_000)(self._find_way_on)
        self._unique = None if node.unique is None else values.unique(values, node, layout)

    def start(self, others: Values, is_same: bool) -> Hashable:
        """The state before the opening bracket."""
        return _Items(0, others, is_same)

    def can_differ(self, others: Values) -> bool:
        """Whether any array is none of ``others``."""
        return self._may_end(0, others) or self._may_go_on(0, others)

    def edges(self, state: Any) -> tuple[list[Right], list[Edge]]:
        """The ways to end in a state, and those to go on."""
        if not isinstance(state, _Items):
            assert self._unique is not None
            return self._unique.edges(state)
        index, others, is_same = state
        ends: list[Right] = []
        further: list[Edge] = []
        before: Right = () if index else (self._open,)
        if index == 0 and self._ends(0, others, is_same):
            ends.append(self._empty)
        if index == 0 and not self._goes_on(0, others, is_same):
            return ends, further
        handle = element(self._node, index)
        groups: dict[Instance, set[Instance]] = {}
        for other in others:
            if len(other.content) > index:
                groups.setdefault(other.content[index], set()).add(other)
        before_it: Values = frozenset()
        if self._unique is not None and not is_same:
            before_it = frozenset(self._prefix(index, others))
            groups = {item: group for item, group in groups.items() if item not in before_it}
        ways = [(self._values.same(self._layout, handle, item), frozenset(group)) for item, group in groups.items()]
        if not is_same:
            others_here = {other.content[index] for other in others if len(other.content) > index}
            new = self._values.different(self._layout, handle, before_it.union(others_here))
            if self._unique is None:
                ways.append((new, frozenset()))
            else:
                begun, kind = self._unique.begun(before_it)
                for symbol in new:
                    if index + 1 >= self._low:
                        ends.append((*before, symbol, self._close))
                    if kind is not None:
                        further.append(((*before, symbol, self._comma), _Begun(begun), kind))
        for symbols, left in ways:
            after = index + 1
            ends_here = self._ends(after, left, is_same)
            goes_on = self._goes_on(after, left, is_same)
            if not left and not is_same and self._high is None:
                after = min(after, max(self._low, len(self._node.prefix), 1))
            for symbol in symbols:
                if ends_here:
                    ends.append((*before, symbol, self._close))
                if goes_on:
                    further.append(((*before, symbol, self._comma), _Items(after, left, is_same), 0))
        return ends, further

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
            for right, edge, _ in further:
                rest = costs.least(self, edge) if isinstance(edge, _Items) else self.least_behind(here, edge, costs)
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

    def _prefix(self, count: int, others: Values) -> tuple[Instance, ...]:
        """The items so far: those that all of the others begin with."""
        return next((other.content[:count] for other in others), ())

    def _ends(self, count: int, others: Values, is_same: bool) -> bool:
        if is_same:
            return all(len(other.content) == count for other in others)
        return self._may_end(count, others)

    def _goes_on(self, count: int, others: Values, is_same: bool) -> bool:
        if is_same:
            return all(len(other.content) > count for other in others)
        return self._may_go_on(count, others)

    def _may_end(self, count: int, others: Values) -> bool:
        return self._low <= count and all(len(other.content) != count for other in others)

    def _find_way_on(self, count: int, others: Values) -> bool:
        """Whether there is an array with ``count`` items and more that is none of ``others``."""
        if self._high is not None and count >= self._high:
            return False
        rests = {other.content[count:] for other in others}
        return any(
            rest.content and rest.content not in rests
            for rest in self._values.few.of_items(self._node, self._prefix(count, others), len(rests) + 2, count)
        )


# -- objects -------------------------------------------------------------------------------------


Member = tuple[str, Instance]
Members = frozenset[Member]

_SCALARS = frozenset(("null", "boolean", "number", "string"))


class _Members(NamedTuple):
    used: int
    """The names that were written, as a set of bits."""
    last: int
    """The position of the last of them; one beyond all once another key was written."""
    size: int
    """How many members there are; up to where that matters, once all is decided."""
    keys: frozenset[str]
    """What was written of the keys without a name that ``others`` have."""
    others: frozenset[Members]
    """What the objects that have the same members have beside these: objects that lack the same are alike from here."""
    is_same: bool
    """Whether it must be the one of ``others``, or none of them."""
    is_empty: bool


class ObjectAutomaton:
    """The objects of a node that are different from others, or equal to one; its states are :class:`_Members`."""

    def __init__(self, values: DifferentValues, node: ObjectNode, layout: Layout) -> None:
        self._values = values
        self._node = node
        self._layout = layout
        self._any_order = values.written.any_order
        self._low = 0 if node.low is None else node.low.value
        self._high = None if node.high is None else node.high.value
        self._named = [(name, handle) for name, handle in members_of(node) if is_text(name)]
        self._position = {name: position for position, (name, _) in enumerate(self._named)}
        self._required = sum(1 << self._position[name] for name in node.required)
        self._classes = [
            (keys, handle) for keys, handle in other_classes(node) if values.any(layout, handle) and few_words(keys, 1)
        ]
        self._possible = sum(
            1 << position for position, (_, handle) in enumerate(self._named) if values.any(layout, handle)
        )
        lexeme = values.unfolding.lexeme
        self._open = lexeme(layout.open_object)
        self._close = lexeme(layout.close_object)
        self._empty: Right = (
            (self._open, self._close) if layout.empty_object is None else (lexeme(layout.empty_object),)
        )
        self._is_different = lru_cache(maxsize=10_000)(self._find_difference)
        self._has_endless_keys = values.is_roomy(node)
        # A text of n unique items asks for these n times for each of them.
        self._same: dict[tuple[Handle, Instance], list[Symbol]] = {}
        self._parts: dict[Members, dict[str, tuple[Instance, frozenset[Members]]]] = {}

    @property
    def named(self) -> list[tuple[str, Handle]]:
        """The names that are treated alone, in order."""
        return self._named

    @property
    def classes(self) -> list[tuple[Text, Handle]]:
        """The classes of other keys."""
        return self._classes

    def key_cost(self, languages: tuple[Regular, Regular], costs: Costs, is_first: bool) -> int:
        """What the cheapest of some keys costs, with its colon, and with its comma unless it is the first."""
        return costs.of(self._values.unfolding.key(languages[0 if is_first else 1], "key"))

    def value_cost(self, handle: Handle, costs: Costs) -> int:
        """What the cheapest value costs."""
        return costs.any_of(self._values.any(self._layout, handle))

    def key_of_class(self, keys: Text) -> tuple[Regular, Regular]:
        """The keys of a class, as the first of an object and as a later one."""
        body = spelled(keys, self._layout.notation.spelling)
        return self._layout.key(body), self._layout.next_key(body)

    def named_key(self, name: str) -> tuple[Regular, Regular]:
        """The key of a name, likewise."""
        return named_keys(self._layout, name)

    def start(self, others: Values, is_same: bool) -> _Members:
        """The state before the opening brace."""
        return _Members(0, -1, 0, frozenset(), frozenset(other.content for other in others), is_same, True)

    def can_differ(self, others: Values) -> bool:
        """Whether any object is none of ``others``."""
        return self._can_end(self.start(others, False))

    def edges(self, state: _Members) -> tuple[list[Right], list[Edge]]:
        """The ways to end in a state, and those to go on."""
        ends: list[Right] = []
        further: list[Edge] = []
        before: Right = (self._open,) if state.is_empty else ()
        if self._ends(state):
            ends.append(self._empty if state.is_empty else (self._close,))
        members = [self._parts.get(other) or self._split(other) for other in state.others]

        def add(key: Symbol, name: str, handle: Handle, then: _Members) -> None:
            """A member with a name: with the value of some of the others, or with one of none."""
            groups: dict[Instance, frozenset[Members]] = {}
            for have in members:
                part = have.get(name)
                if part is not None:
                    value, rest = part
                    known = groups.get(value)
                    groups[value] = rest if known is None else known | rest
            # Scalars that leave the same to be written are one way: n objects with one member each are one, and not n.
            ways: dict[tuple[frozenset[Members], str | Instance], list[Instance]] = {}
            for value, rest in groups.items():
                ways.setdefault((rest, value.kind if value.kind in _SCALARS else value), []).append(value)
            for (rest, _), values in ways.items():
                after = then._replace(others=rest)
                if self._can_end(after):
                    symbols = self._same_as(handle, values)
                    further.extend(((*before, key, symbol), after, 0) for symbol in symbols)
            after = self._decided(then)
            if not state.is_same and self._can_end(after):
                symbols = self._values.different(self._layout, handle, frozenset(groups))
                further.extend(((*before, key, symbol), after, 0) for symbol in symbols)

        for position, (name, handle) in enumerate(self._named):
            bit = 1 << position
            if state.used & bit or not self._possible & bit or (position < state.last and not self._any_order):
                continue
            if state.is_same and any(name not in have for have in members):
                continue
            then = state._replace(used=state.used | bit, last=position, size=state.size + 1, is_empty=False)
            add(self._key(named_keys(self._layout, name), name, state), name, handle, then)
        for keys, handle in self._classes:
            names = {name for have in members for name in have if name not in self._position}
            names = {name for name in names if is_text(name) and contains(keys, name)}
            then = state._replace(last=len(self._named), size=state.size + 1, is_empty=False)
            for name in sorted(names - state.keys):
                key = self._key(named_keys(self._layout, name), name, state)
                add(key, name, handle, then._replace(keys=state.keys | {name}))
            after = self._decided(then)
            if not state.is_same and self._can_end(after):
                rest = every(keys, without(Words(frozenset(names)))) if names else keys
                if not names or few_words(rest, 1):
                    body = spelled(rest, self._layout.notation.spelling)
                    key = self._key((self._layout.key(body), self._layout.next_key(body)), "key", state)
                    symbols = self._values.any(self._layout, handle)
                    further.extend(((*before, key, symbol), after, 0) for symbol in symbols)
        return ends, further

    def follow(self, state: _Members, edge: Hashable) -> Hashable:
        """The state behind an edge."""
        return edge

    def close(self, state: _Members, edge: Hashable, text: TextBefore) -> Hashable:
        """No branch is open."""
        raise AssertionError("no branch is open")

    def _same_as(self, handle: Handle, values: list[Instance]) -> list[Symbol]:
        if len(values) > 1:
            return self._values.one_of(self._layout, handle, values)
        key = handle, values[0]
        symbols = self._same.get(key)
        if symbols is None:
            symbols = self._same[key] = self._values.same(self._layout, handle, values[0])
        return symbols

    def _split(self, other: Members) -> dict[str, tuple[Instance, frozenset[Members]]]:
        """The members by their names, each with what is left without it."""
        parts = self._parts[other] = {name: (value, frozenset((other - {(name, value)},))) for name, value in other}
        return parts

    def least(self, state: _Members, costs: Costs) -> int:
        """What it costs to come to an end that is none of the others: with the first member that they do not have.

        If there is none, or others have what is required, with their members as far as need be.
        """
        if not state.others and not state.is_same:
            return self._least_of_any(state, costs)
        todo = [state]
        while todo:
            here = todo[-1]
            ends, further = self.edges(here)
            ways = [costs.right(right) for right in ends]
            ways += [
                costs.right(right) + self._least_of_any(edge, costs)
                for right, edge, _ in further
                if not edge.others and not edge.is_same
            ]
            like = self._like_others(here, [(right, edge) for right, edge, _ in further if edge.others], bool(ways))
            missing = [edge for _, edge in like if (self, edge) not in costs.known]
            if missing:
                todo += missing
                continue
            ways += [costs.right(right) + costs.known[self, edge] for right, edge in like]
            costs.known[self, here] = min(min(ways, default=NEVER), NEVER)
            todo.pop()
        return costs.known[self, state]  # type: ignore[no-any-return]

    def _like_others(
        self, state: _Members, further: list[tuple[Right, _Members]], is_any: bool
    ) -> list[tuple[Right, _Members]]:
        """Of the ways to go on like some of the others, those with the first required member, or else the first."""
        required = self._required & ~state.used
        for _, edge in further:
            if edge.used & ~state.used & required:
                return [(right, other) for right, other in further if other.used == edge.used]
        if is_any or not further:
            return []
        first = further[0][1]
        return [(right, other) for right, other in further if (other.used, other.keys) == (first.used, first.keys)]

    def least_behind(self, state: _Members, edge: Hashable, costs: Costs) -> int:
        """No branch is open."""
        raise AssertionError("no branch is open")

    def least_different(self, count: int, costs: Costs) -> int:
        """What an object costs at most that has a member which ``count`` others do not have."""
        start = _Members(0, -1, 0, frozenset(), frozenset(), False, True)
        least = NEVER
        for position, (_, handle) in enumerate(self._named):
            if self._possible >> position & 1:
                spare = self._values.spare(self._layout, handle, count, costs)
                if spare.is_sure:
                    least = min(least, self._least_with(1 << position, start, costs, {position: spare.cost}))
        if self._high is None:
            names = frozenset(name for name, _ in self._named)
            free = without(Words(names)) if names else every()
            for keys, handle in self._classes:
                if keys == free:
                    # A key that others do not have, however many they have.
                    key = self.key_cost(self.key_of_class(keys), costs, False)
                    key += self._values.letters(self._layout, _MANY_KEYS, costs)
                    rest = self._least_with(0, start, costs, {})
                    least = min(least, rest + key + self.value_cost(handle, costs))
        return least

    def _prices(self, costs: Costs) -> _Prices:
        key = self, "prices"
        if key not in costs.known:
            costs.known[key] = _Prices(self, costs)
        return costs.known[key]  # type: ignore[no-any-return]

    def _least_of_any(self, state: _Members, costs: Costs) -> int:
        """What the cheapest members cost that are still needed, and the closing brace."""
        key = self, "any", state.used, state.last, state.size, state.is_empty
        if key not in costs.known:
            costs.known[key] = self._least_with(self._required & ~state.used, state, costs, {})
        return costs.known[key]  # type: ignore[no-any-return]

    def _least_with(self, names: int, state: _Members, costs: Costs, values: dict[int, int]) -> int:
        """The same with some names at least, of which some have values of a given cost."""
        prices = self._prices(costs)
        names |= self._required & ~state.used
        size = names.bit_count()
        if state.is_empty and size == 0 and self._low == 0:
            return costs.right(self._empty)
        if self._high is not None and state.size + size > self._high:
            return NEVER
        total = 0
        for position in range(len(self._named)):
            if names >> position & 1:
                total += prices.keys[position] + values.get(position, prices.values[position])
        wanted = max(self._low - state.size - size, 0)
        free = self._open_names(state) & ~names
        for price, which in prices.ordered:
            if wanted == 0:
                break
            if which is None:
                total, wanted = total + wanted * price, 0
            elif free >> which & 1:
                total, wanted = total + price, wanted - 1
        if wanted:
            return NEVER
        if state.is_empty:
            total += costs.of(self._open) - (prices.comma if total < NEVER else 0)
        return min(total + costs.of(self._close), NEVER)

    def _key(self, languages: tuple[Regular, Regular], name: str, state: _Members) -> Symbol:
        return self._values.unfolding.key(languages[0 if state.is_empty else 1], name)

    def _decided(self, state: _Members) -> _Members:
        """The state once the object is like none of the others."""
        size = state.size if self._high is not None else min(state.size, self._low)
        return state._replace(others=frozenset(), keys=frozenset(), size=size)

    def _open_names(self, state: _Members) -> int:
        """The names that may still be written, as a set of bits."""
        free = self._possible & ~state.used
        return free if self._any_order else free & ~((1 << (state.last + 1)) - 1)

    def _ends(self, state: _Members) -> bool:
        if state.is_same:
            return not any(state.others)
        if self._required & ~state.used or state.size < self._low:
            return False
        return all(state.others)

    def _can_end(self, state: _Members) -> bool:
        """Whether there is a way from a state to an end."""
        free = self._open_names(state)
        if state.is_same:
            # The names that are still to come have not been passed by.
            (other,) = state.others
            return not sum(1 << self._position[name] for name, _ in other if name in self._position) & ~free
        if self._required & ~state.used & ~free:
            return False
        required = (self._required & ~state.used).bit_count()
        if self._high is not None and state.size + required > self._high:
            return False
        if self._has_endless_keys:
            return True
        if not state.others:
            return bool(self._classes) or state.size + free.bit_count() >= self._low
        return self._is_different(state)

    def _find_difference(self, state: _Members) -> bool:
        free = self._open_names(state)
        named = [
            (name, handle, bool(self._required >> position & 1))
            for position, (name, handle) in enumerate(self._named)
            if free >> position & 1
        ]
        written = {name for position, (name, _) in enumerate(self._named) if state.used >> position & 1} | state.keys
        found = self._values.few.of_members(
            named,
            self._classes,
            frozenset(written),
            max(self._low - state.size, 0),
            None if self._high is None else self._high - state.size,
            len(state.others) + 1,
        )
        return any(rest.content not in state.others for rest in found)


class _Prices:
    """What the members of an object cost that may have any value: each name, and the cheapest key without a name."""

    def __init__(self, automaton: ObjectAutomaton, costs: Costs) -> None:
        named = [automaton.named_key(name) for name, _ in automaton.named]
        self.keys = [automaton.key_cost(key, costs, False) for key in named]
        self.values = [automaton.value_cost(handle, costs) for _, handle in automaton.named]
        ordered: list[tuple[int, int | None]] = [
            (key + value, position) for position, (key, value) in enumerate(zip(self.keys, self.values, strict=True))
        ]
        others = [automaton.key_of_class(keys) for keys, _ in automaton.classes]
        for key, (_, handle) in zip(others, automaton.classes, strict=True):
            ordered.append((automaton.key_cost(key, costs, False) + automaton.value_cost(handle, costs), None))
        self.ordered = sorted(ordered, key=lambda each: each[0])
        # How much less a key costs without the comma, at least.
        saved = [
            automaton.key_cost(key, costs, False) - automaton.key_cost(key, costs, True) for key in (*named, *others)
        ]
        self.comma = min(saved, default=0)
