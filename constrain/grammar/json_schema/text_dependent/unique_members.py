"""Members with keys of which each may come once, as an automaton whose states hold the keys that an object has so far.

Where a JSON value is the whole text, the engine reads the keys beside the grammar.  Within a longer text nothing tells
it where a value begins, so there the rules themselves say it: which key it was becomes known where a key ends, and the
lexeme of the next key leaves it out.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from constrain.grammar.growing_tree import GrowingTree
from constrain.grammar.ir import HARD, NEVER, OPEN, Symbol
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.lexical.strings import Spelling
from constrain.grammar.json_schema.lexical.texts import GrowingWords, Text, contains, spelled
from constrain.grammar.json_schema.text_dependent.any_order import AnyOrder, Members, MembersInAnyOrder
from constrain.grammar.persistent import PersistentSet
from constrain.grammar.regular import Regular, complement, intersect
from constrain.grammar.rules_on_demand import Automaton, Costs, Edge, Right, TextBefore, UnfoldedAutomata

MOST_COUNTED = 10_000
"""Of so many keys or more in one class, an object is taken never to have all."""


class KeysOfClass(NamedTuple):
    """The keys of a member without a name."""

    keys: Text
    most: int | None
    """How many there are; None for too many to use up."""


class _State(NamedTuple):
    members: Members
    seen: PersistentSet[str]
    """The keys without a name in the schema."""


class _Value(NamedTuple):
    """Behind a key without a name."""

    members: Members
    """Before the key."""
    seen: PersistentSet[str]
    """With the key."""
    way: int


class _Ahead(NamedTuple):
    """The same for a mask that looks beyond the end of a key, which is not known there."""

    members: Members
    way: int


class UniqueMembers:
    """The members of one object; see :mod:`constrain.grammar.rules_on_demand`.

    Parameters
    ----------
    order : AnyOrder
        The members, as if keys could come again.
    keys : dict of int to KeysOfClass
        By member, for those without a name.
    layout : Layout
        How keys are written.
    in_order : bool
        Whether named members come in their order, and others behind them.
    """

    may_open = True

    def __init__(self, order: AnyOrder, keys: dict[int, KeysOfClass], layout: Layout, *, in_order: bool) -> None:
        self.order = order
        self.keys = keys
        self.layout = layout
        self.in_order = in_order

    def begin(self, unfolding: UnfoldedAutomata) -> tuple[Automaton, Hashable]:
        """The automaton for a compiled grammar, and its first state."""
        members = MembersInAnyOrder(self.order, unfolding.is_usable)
        return _Automaton(self, members, unfolding), _State(members.start(), PersistentSet())


class _Automaton:
    def __init__(self, template: UniqueMembers, members: MembersInAnyOrder, unfolding: UnfoldedAutomata) -> None:
        self._order = template.order
        self._keys = template.keys
        self._layout = template.layout
        self._in_order = template.in_order
        self._members = members
        self._unfolding = unfolding
        self._required = [member for member, required in enumerate(template.order.required) if required]

    def edges(self, state: _State | _Value | _Ahead) -> tuple[list[Right], list[Edge]]:
        """The ways to end in a state, and those to go on; an edge is the number of a way."""
        ways = self._members.ways
        if isinstance(state, _Ahead):
            return [], [((ways[state.way].value,), state.way, OPEN | HARD)]
        if isinstance(state, _Value):
            value = ways[state.way].value
            ends: list[Right] = []
            if self._order.close is None and self._members.may_end(self._members.follow(state.members, state.way)):
                ends.append((value,))
            return ends, [((value,), state.way, 0)]
        inner, seen = state
        ends, further = self._members.edges(inner)
        if self._order.close is None:
            # Ends of the members without a name come behind their keys.
            ends = []
        result: list[Edge] = []
        for right, edge, _ in further:
            member = ways[edge].member
            if self._in_order and not self._is_next(member, inner.used, seen):
                continue
            if member not in self._keys:
                result.append((right, edge, 0))
                if self._order.close is None and self._members.may_end(self._members.follow(inner, edge)):
                    ends.append(right)
                continue
            key = self._key(member, right[0], seen, inner.is_empty)
            if key is not None:
                result.append(((key,), edge, OPEN))
        return ends, result

    def _is_next(self, member: int, used: int, seen: PersistentSet[str]) -> bool:
        """Whether a member may follow on those that were used, in order."""
        if len(seen) and member not in self._keys:
            return False
        if member not in self._keys and used >> member:
            return False
        return all(used >> required & 1 for required in self._required if required < member)

    def _key(self, member: int, key: Symbol, seen: PersistentSet[str], is_empty: bool) -> Symbol | None:
        """The keys of a member without those that are there; None if none is left."""
        if not len(seen):
            return key
        keys, most = self._keys[member]
        if most is not None and sum(contains(keys, name) for name in seen) >= most:
            return None
        main = self._layout.key_spelling
        tree: GrowingTree = seen.derived(lambda: GrowingTree(main.text), _add)
        words = GrowingWords(tree, main)

        def spell(spelling: Spelling) -> Regular:
            return intersect(spelled(keys, spelling), complement(spelled(words, spelling)))

        return self._unfolding.lexeme(self._layout.keys(spell)[0 if is_empty else 1], "key")

    def follow(self, state: _State | _Value, edge: int) -> Hashable:
        """The state behind an edge; behind a key, what a mask may take for it."""
        if isinstance(state, _Value):
            return _State(self._members.follow(state.members, edge), state.seen)
        if self._members.ways[edge].member in self._keys:
            return _Ahead(state.members, edge)
        return _State(self._members.follow(state.members, edge), state.seen)

    def close(self, state: _State, edge: int, text: TextBefore) -> Hashable:
        """The state behind the key that the text ends with."""
        return _Value(state.members, state.seen.plus(self._layout.last_key(text)), edge)

    def least(self, state: _State | _Value | _Ahead, costs: Costs) -> int:
        """What the members cost that must still come."""
        if not isinstance(state, _State):
            return self._behind_key(state.members, state.way, costs)
        if not state.members.is_empty:
            return self._rest(state.members, costs)
        _, further = self.edges(state)
        cheapest = NEVER
        for right, edge, kind in further:
            if kind & OPEN:
                behind = self._behind_key(state.members, edge, costs)
            else:
                behind = self._rest(self._members.follow(state.members, edge), costs)
            cheapest = min(cheapest, costs.right(right) + behind)
        return cheapest

    def least_behind(self, state: _State | _Ahead, edge: int, costs: Costs) -> int:
        """The same behind a key, whatever it is, or behind a value that a mask looks ahead to."""
        if isinstance(state, _Ahead):
            return self._rest(self._members.follow(state.members, edge), costs)
        return self._behind_key(state.members, edge, costs)

    def _behind_key(self, members: Members, way: int, costs: Costs) -> int:
        """What the value of a way costs, and what must follow."""
        return costs.of(self._members.ways[way].value) + self._rest(self._members.follow(members, way), costs)

    def _rest(self, members: Members, costs: Costs) -> int:
        """What must follow behind a member."""
        missing = sum(not members.used >> each & 1 for each in self._required)
        if members.pending or members.members + missing < self._order.low:
            # Further keys would be needed, which cost the more the more of them there are already.
            return NEVER
        return self._members.least(members, costs)


def _add(tree: GrowingTree, name: str, is_new: bool) -> GrowingTree:
    return tree.plus(name) if is_new else tree.minus(name)
