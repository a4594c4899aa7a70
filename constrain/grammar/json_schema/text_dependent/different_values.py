"""Rules for the values of a schema that are different from some others, or equal to one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache, lru_cache, partial

from constrain.errors import LimitError
from constrain.grammar.ir import Symbol
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.few_values import FewValues
from constrain.grammar.json_schema.normal.instances import Instance
from constrain.grammar.json_schema.text_dependent.different_arrays import ArrayAutomaton
from constrain.grammar.json_schema.text_dependent.different_objects import ObjectAutomaton
from constrain.grammar.json_schema.text_dependent.interfaces import UniqueAutomaton, Values
from constrain.grammar.json_schema.text_dependent.known_scalars import KnownNumbers, KnownStrings, excluding, only
from constrain.grammar.json_schema.text_dependent.membership import Membership
from constrain.grammar.json_schema.text_dependent.persistent import PersistentSet
from constrain.grammar.json_schema.text_dependent.spare_values import SpareValues
from constrain.grammar.json_schema.writing.context import Written
from constrain.grammar.json_schema.writing.listed_values import MIN_LISTED, is_listed, listed_language
from constrain.grammar.json_schema.writing.scalars import scalar, scalar_name
from constrain.grammar.languages.regular import Empty, Regular
from constrain.grammar.rules_on_demand import UnfoldedAutomata

MAX_LISTED = 2000
"""How many arrays and objects an ``enum`` may list whose values have to be different from each other."""

UniqueMaker = Callable[["DifferentValues", n.ArrayNode, Layout], UniqueAutomaton]

_NONE: Values = PersistentSet()


class DifferentValues:
    """Makes the symbols, for one compiled grammar; ``unique`` makes the automata of arrays with ``uniqueItems``."""

    def __init__(self, written: Written, unfolding: UnfoldedAutomata, few: FewValues, unique: UniqueMaker) -> None:
        self.written = written
        self.unfolding = unfolding
        self.few = few
        self._unique = unique
        membership = Membership(written, few)
        self.allows, self.has = membership.allows, membership.has
        self.is_roomy = membership.is_roomy
        spare_values = SpareValues(self)
        self.spare, self.letters = spare_values.spare, spare_values.letters
        # Objects that have the same keys left ask for the same.
        self._different = lru_cache(maxsize=1000)(self._find_different)
        self.automaton = cache(self._make_automaton)
        self._known = cache(self._make_known)
        # How many values were asked for, and how many there were.
        self._found: dict[Hashable, tuple[int, int]] = {}
        self._single = cache(self.same)

    def any(self, layout: Layout, handle: Handle) -> list[Symbol]:
        """The symbol of all values, if there are any."""
        symbol = self.written.written_value(layout, handle)
        return [symbol] if symbol is not None and self.unfolding.is_usable(symbol) else []

    def different(self, layout: Layout, handle: Handle, others: Values) -> list[Symbol]:
        """What derives the values that are none of ``others``."""
        return self._different(layout, handle, others) if others else self.any(layout, handle)

    def _find_different(self, layout: Layout, handle: Handle, others: Values) -> list[Symbol]:
        nodes = self.written.normal(handle).nodes
        by_kind = others.derived(dict, _by_kind)
        if all(node.kind not in by_kind for node in nodes):
            return self.any(layout, handle)
        return self._of_nodes(layout, nodes, others)

    def apart(
        self, layout: Layout, handle: Handle, others: Values, is_first: Callable[[n.Node], bool]
    ) -> tuple[list[Symbol], list[Symbol]]:
        """The same, first what some nodes derive and then what the others do."""
        nodes = self.written.normal(handle).nodes
        first = tuple([node for node in nodes if is_first(node)])
        rest = tuple([node for node in nodes if not is_first(node)])
        if not first or not rest:
            symbols = self.different(layout, handle, others)
            return (symbols, []) if first else ([], symbols)
        return self._of_nodes(layout, first, others), self._of_nodes(layout, rest, others)

    def _of_nodes(self, layout: Layout, nodes: tuple[n.Node, ...], others: Values) -> list[Symbol]:
        by_kind = others.derived(dict, _by_kind)
        symbols, nodes = self._listed(layout, nodes, others)
        for node in nodes:
            mine = by_kind.get(node.kind, _NONE)
            if isinstance(node, (n.ArrayNode, n.ObjectNode)):
                if not mine:
                    symbol = self.written.written_container(layout, node)
                    if symbol is not None and self.unfolding.is_usable(symbol):
                        symbols.append(symbol)
                    continue
                automaton = self.automaton(layout, node)
                if automaton is not None and automaton.can_differ(mine):
                    symbols.append(self.unfolding.nonterminal(automaton, automaton.start(mine, False)))
            elif isinstance(node, (n.StringNode, n.NumberNode)) and mine:
                known = self._known(layout, node)
                if self._has_left(node, known, mine):
                    symbols += self._lexeme(layout, *known.different(mine))
            else:
                rest = excluding(node, mine)
                if rest is not None and self.few.of_node(rest, 1):
                    symbols += self.scalar(layout, rest)
        return symbols

    def _has_left(self, node: n.StringNode | n.NumberNode, known: KnownStrings | KnownNumbers, values: Values) -> bool:
        """Whether a node has any value beside some."""
        count = known.count(values)
        if count is not None:
            has_more = self.has_more(node, lambda most: self.few.of_node(node, most), count)
            if has_more is not None:
                return has_more
        rest = excluding(node, values)
        return rest is not None and bool(self.few.of_node(rest, 1))

    def has_more(self, key: Hashable, search: Callable[[int], list[Instance]], count: int) -> bool | None:
        """Whether ``search`` finds more values than ``count``; None if that would take too long.

        It is asked for twice as many each time, so seldom.  ``key`` says what it looks for.
        """
        wanted, found = self._found.get(key, (0, 0))
        if wanted <= count and found == wanted:
            wanted = 1 << count.bit_length()
            try:
                found = len(search(wanted))
            except LimitError:
                return None
            self._found[key] = wanted, found
        return found > count

    def _listed(
        self, layout: Layout, nodes: tuple[n.Node, ...], others: Values
    ) -> tuple[list[Symbol], tuple[n.Node, ...]]:
        """The symbol of those arrays and objects of a long list that are none of ``others``; and the other nodes."""
        several = [node for node in nodes if is_listed(node)]
        if len(several) < MIN_LISTED or self.written.any_order or layout.inner is None:
            return [], nodes
        if len(several) > MAX_LISTED:
            raise LimitError(f"uniqueItems over more than {MAX_LISTED} arrays and objects", several[0].pointer)
        known = set(several)
        left = [node for node in several if not any(value in others for value in self.few.of_node(node, 1))]
        language = listed_language(left, layout.inner, self.written.refuse)
        symbols = [] if isinstance(language, Empty) else [self.unfolding.lexeme(language, "a value listed")]
        return symbols, tuple(node for node in nodes if node not in known)

    def same(self, layout: Layout, handle: Handle, value: Instance) -> list[Symbol]:
        """What derives one value."""
        symbols: list[Symbol] = []
        for node in self.written.normal(handle).nodes:
            if node.kind != value.kind or not self.allows(node, value):
                continue
            if isinstance(node, (n.ArrayNode, n.ObjectNode)):
                if (
                    is_listed(node)
                    and layout.inner is not None
                    and self.written.written_container(layout, node) is None
                ):
                    # The rules of its parts were never written.
                    language = listed_language([node], layout.inner, self.written.refuse)
                    symbols.append(self.unfolding.lexeme(language, "a value listed"))
                    continue
                automaton = self.automaton(layout, node)
                if automaton is not None:
                    symbols.append(self.unfolding.nonterminal(automaton, automaton.start(_NONE.plus(value), True)))
            else:
                symbols += self.scalar(layout, only(node, [value]))
        return symbols

    def one_of(self, layout: Layout, handle: Handle, values: Values) -> list[Symbol]:
        """What derives one value, or any of several scalars of one kind."""
        if len(values) == 1:
            return self._single(layout, handle, values.any_element())
        kind = values.any_element().kind
        symbols: list[Symbol] = []
        for node in self.written.normal(handle).nodes:
            if node.kind != kind:
                continue
            if isinstance(node, (n.StringNode, n.NumberNode)):
                symbols += self._lexeme(layout, *self._known(layout, node).same(values))
                continue
            allowed = [value for value in values if self.allows(node, value)]
            if allowed:
                symbols += self.scalar(layout, only(node, allowed))
        return symbols

    def scalar(self, layout: Layout, node: n.Node) -> list[Symbol]:
        """The symbol of a scalar node, if it has a value."""
        core = scalar(node, self.written.refuse, layout.notation)
        return [] if isinstance(core, n.Conflict) else self._lexeme(layout, core, scalar_name(node))

    def _make_automaton(
        self, layout: Layout, node: n.ArrayNode | n.ObjectNode
    ) -> ObjectAutomaton | ArrayAutomaton | None:
        """The automaton of an array or object; None where nothing may be nested."""
        inner = layout.inner
        if inner is None:
            return None
        if isinstance(node, n.ObjectNode):
            return ObjectAutomaton(self, node, inner)
        unique = None if node.unique is None else self._unique(self, node, inner)
        return ArrayAutomaton(self, node, inner, unique)

    def _make_known(self, layout: Layout, node: n.StringNode | n.NumberNode) -> KnownStrings | KnownNumbers:
        allows, refuse = partial(self.allows, node), self.written.refuse
        if isinstance(node, n.StringNode):
            return KnownStrings(node, layout.notation, allows, refuse)
        return KnownNumbers(node, layout.notation, allows, refuse)

    def _lexeme(self, layout: Layout, core: Regular, name: str) -> list[Symbol]:
        return [] if isinstance(core, Empty) else [self.unfolding.lexeme(layout.value(core), name)]


def _by_kind(kinds: dict[str, Values], value: Instance, is_added: bool) -> dict[str, Values]:
    """The values of each kind that there is."""
    mine = kinds.get(value.kind, _NONE)
    kinds = {**kinds, value.kind: mine.plus(value) if is_added else mine.minus(value)}
    if not kinds[value.kind]:
        del kinds[value.kind]
    return kinds
