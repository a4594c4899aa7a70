"""What it costs to end an object that is to be different from others, or equal to one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, Protocol

from constrain.grammar.ir import NEVER
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.texts import Text, Words, every, without
from constrain.grammar.json_schema.text_dependent import object_states as states
from constrain.grammar.json_schema.text_dependent.object_states import ObjectMembers
from constrain.grammar.languages.regular import Regular
from constrain.grammar.rules_on_demand import Costs, Edge, Right

# More keys than a text can have.
_MANY_KEYS = 1 << 32


class Member(NamedTuple):
    """A member that may come next."""

    name: str | None
    """None for any other key of a class."""
    bit: int
    """Of a name that is treated alone, as in :attr:`~.object_states.ObjectState.used`."""
    handle: Handle
    then: states.ObjectState
    """The state behind it, but for what others have beside it."""
    keys: Text | None = None
    """The class of a key that is not known."""
    names: frozenset[str] = frozenset()
    """The keys of that class that others have."""

    def named(self, name: str) -> Member:
        """The member with a key that others have."""
        return Member(name, 0, self.handle, self.then)


Way = tuple[Right, states.ObjectState]
"""What a member may be, and what it leads to."""


class Ways(Protocol):
    """The objects themselves; see :class:`~.different_objects.ObjectAutomaton`."""

    def ends(self, state: states.ObjectState) -> list[Right]:
        """The ways to end in a state."""

    def members(self, state: states.ObjectState) -> Iterator[Member]:
        """The members that may come next."""

    def single_members(self, state: states.ObjectState) -> Iterator[Member]:
        """Those with a name that is treated alone, or with a key of a small class."""

    def other_members(self, state: states.ObjectState) -> list[Member]:
        """Those with any other key of a large class."""

    def with_member(self, state: states.ObjectState, member: Member) -> list[Edge]:
        """The ways to go on with a member."""

    def with_value(self, place: states.BehindName) -> list[Edge]:
        """The ways to go on behind a name."""


class ObjectCosts:
    """For the objects of one node, given what symbols cost.

    A member is looked at only if it may be cheaper than those that were: what it costs to find its value, which has to
    be none of those that others have, is much more than to say what it costs at least.
    """

    def __init__(self, members: ObjectMembers, ways: Ways, costs: Costs) -> None:
        self._members = members
        self._values = members.values
        self._layout = members.layout
        self._ways = ways
        self.costs = costs
        self._prices = _Prices(members, costs)
        # Of objects that no others matter for, the states without others.
        self._least: dict[states.ObjectState, int] = {}

    def least(self, state: states.State) -> int:
        """What it costs to come to an end that is none of the others: with the first member that they do not have.

        If there is none, or others have what is required, with their members as far as need be.
        """
        if isinstance(state, states.BehindName):
            ways = self._ways.with_value(state)
            return min([self.costs.right(right) + self.least(edge) for right, edge, _ in ways], default=NEVER)
        if not isinstance(state, states.ObjectState):
            return self._prices.value(state.handle) + self._of_any(state.then)
        if not state.others and not state.is_same:
            return self._of_any(state)
        found: dict[states.ObjectState, tuple[int, list[Way]]] = {}
        todo = [state]
        while todo:
            here = todo[-1]
            if here not in found:
                found[here] = self._like_one(here) if here.is_same else self._cheapest(here)
            least, like = found[here]
            missing = [edge for _, edge in like if edge not in self._least]
            if missing:
                todo += missing
                continue
            for right, edge in like:
                least = min(least, self.costs.right(right) + self._least[edge])
            self._least[here] = min(least, NEVER)
            todo.pop()
        return self._least[state]

    def _like_one(self, state: states.ObjectState) -> tuple[int, list[Way]]:
        """The same for an object that must be the other one."""
        ends = self._ways.ends(state)
        if ends:
            return min(map(self.costs.right, ends)), []
        required = self._members.required & ~state.used
        for member in sorted(self._ways.members(state), key=lambda member: not member.bit & required):
            like = [(right, edge) for right, edge, _ in self._ways.with_member(state, member)]
            if like:
                return NEVER, like
        return NEVER, []

    def _cheapest(self, state: states.ObjectState) -> tuple[int, list[Way]]:
        """What the cheapest end costs that is none of the others from the next member on; and ways to go on like some.

        These are the ways with the first member that is required and that some have, or else with the first of all
        where there are no other ways.
        """
        search = _Search(self, self._ways, state)
        required = self._members.required & ~state.used
        needed: list[Way] = []
        members: list[Member] = []
        for member in self._ways.single_members(state):
            if member.bit & required and not needed:
                needed = search.look(member)
            else:
                members.append(member)
        others = self._ways.other_members(state)
        members += others
        bounds = [self._bound(member, state) for member in members]
        like: dict[int, list[Way]] = {}
        for place in sorted(range(len(members)), key=bounds.__getitem__):
            if search.may_be_cheaper(bounds[place]):
                like[place] = search.look(members[place])
        for other in others:
            # A letter costs 1 at least.
            bound = self._bound(other.named(""), state)
            for name in sorted(other.names):
                if name not in state.keys and search.may_be_cheaper(bound + len(name)):
                    like[len(members) + len(like)] = search.look(other.named(name))
        if needed or search.is_found:
            return search.least, needed
        return search.least, next((like[place] for place in sorted(like) if like[place]), [])

    def _bound(self, member: Member, state: states.ObjectState) -> int:
        """What it costs at least to come to an end with a member that the others do not have."""
        before = self.costs.of(self._members.open) if state.is_empty else 0
        prices = self._prices
        return before + prices.key(member, state.is_empty) + prices.value(member.handle) + self._of_any(member.then)

    def least_different(self, count: int) -> int:
        """What an object costs at most that has a member which ``count`` others do not have."""
        members, costs = self._members, self.costs
        start = states.ObjectState(0, -1, 0, states.NO_KEYS, states.NO_OTHERS, False, True)
        least = NEVER
        plain = self._with(0, start, {})
        for position, (_, handle) in enumerate(members.named):
            if members.possible >> position & 1:
                spare = self._values.spare(self._layout, handle, count, costs)
                if spare.is_sure:
                    least = min(least, self._with(1 << position, start, {position: spare.cost}))
        if members.high is None or members.required.bit_count() < members.high:
            for keys, handle in members.classes:
                # The cheapest key, and under it a value that none of them has there.
                spare = self._values.spare(self._layout, handle, count, costs)
                if spare.is_sure:
                    least = min(least, plain + self._prices.of_class(keys) + spare.cost)
        if members.high is None:
            names = frozenset(members.position)
            free = without(Words(names)) if names else every()
            for keys, handle in members.classes:
                if keys == free:
                    # A key that others do not have, however many they have.
                    key = self._prices.of_class(keys) + self._values.letters(self._layout, _MANY_KEYS, costs)
                    least = min(least, plain + key + self._prices.value(handle))
        return least

    def _of_any(self, state: states.ObjectState) -> int:
        """What the cheapest members cost that are still needed, and the closing brace, if no others matter."""
        key = state._replace(others=states.NO_OTHERS)
        if key not in self._least:
            self._least[key] = self._with(0, state, {})
        return self._least[key]

    def _with(self, names: int, state: states.ObjectState, values: dict[int, int]) -> int:
        """The same with some names at least, of which some have values of a given cost."""
        members, prices, costs = self._members, self._prices, self.costs
        names |= members.required & ~state.used
        size = names.bit_count()
        if state.is_empty and size == 0 and members.low == 0:
            return costs.right(members.empty)
        if members.high is not None and state.size + size > members.high:
            return NEVER
        total = 0
        for position in range(len(members.named)):
            if names >> position & 1:
                total += prices.keys[position] + values.get(position, prices.values[position])
        wanted = max(members.low - state.size - size, 0)
        free = members.open_names(state) & ~names
        for price, which in prices.ordered:
            if wanted == 0:
                break
            if which is None:
                total, wanted = total + wanted * price, 0
            elif which not in state.keys if isinstance(which, str) else free >> which & 1:
                total, wanted = total + price, wanted - 1
        if wanted:
            return NEVER
        if state.is_empty:
            total += costs.of(members.open) - (prices.comma if total < NEVER else 0)
        return min(total + costs.of(members.close), NEVER)


class _Search:
    """For the cheapest way on from a state that leads to an object unlike the others."""

    def __init__(self, costs: ObjectCosts, ways: Ways, state: states.ObjectState) -> None:
        self._object_costs = costs
        self._ways = ways
        self._state = state
        ends = ways.ends(state)
        self.least = min(map(costs.costs.right, ends), default=NEVER)
        self.is_found = bool(ends)

    def may_be_cheaper(self, bound: int) -> bool:
        """Whether a way that costs so much at least has to be looked at."""
        return not self.is_found or bound < self.least

    def look(self, member: Member) -> list[Way]:
        """Look at the ways with a member; those with which the object is still like some others."""
        like: list[Way] = []
        for right, edge, kind in self._ways.with_member(self._state, member):
            if kind or not edge.others:
                self.least = min(self.least, self._object_costs.costs.right(right) + self._object_costs.least(edge))
                self.is_found = True
            else:
                like.append((right, edge))
        return like


class _Prices:
    """What the members of an object cost that may have any value.

    Each name, each key of a small class, and the cheapest key of a large one.
    """

    def __init__(self, members: ObjectMembers, costs: Costs) -> None:
        self._members = members
        self._costs = costs
        self.value = cache(self._cheapest_value)
        # As the first of an object, and as a later one, with its comma.
        self._by_position = [self._both(members.named_key(name)) for name, _ in members.named]
        self._by_name = {name: self._both(members.named_key(name)) for name in members.few_keys}
        self._by_class = {keys: self._both(members.key_of_class(keys)) for keys, _ in members.large_classes}
        self._shortest = self._both(members.named_key("")) if members.large_classes else (0, 0)
        self.keys = [later for _, later in self._by_position]
        self.values = [self.value(handle) for _, handle in members.named]
        ordered: list[tuple[int, int | str | None]] = [
            (key + value, position) for position, (key, value) in enumerate(zip(self.keys, self.values, strict=True))
        ]
        for name, handle in members.few_keys.items():
            ordered.append((self._by_name[name][1] + self.value(handle), name))
        for keys, handle in members.large_classes:
            ordered.append((self._by_class[keys][1] + self.value(handle), None))
        self.ordered = sorted(ordered, key=lambda each: each[0])
        # How much less a key costs without the comma, at least.
        both = (*self._by_position, *self._by_name.values(), *self._by_class.values())
        self.comma = min((later - first for first, later in both), default=0)

    def _both(self, languages: tuple[Regular, Regular]) -> tuple[int, int]:
        first, later = (self._costs.of(self._members.values.unfolding.key(each, "key")) for each in languages)
        return first, later

    def _cheapest_value(self, handle: Handle) -> int:
        """What the cheapest value costs."""
        return self._costs.any_of(self._members.values.any(self._members.layout, handle))

    def of_class(self, keys: Text) -> int:
        """What the cheapest key of a class costs that is not the first of its object."""
        return self._both(self._members.key_of_class(keys))[1]

    def key(self, member: Member, is_first: bool) -> int:
        """What a member's key costs at least."""
        which = 0 if is_first else 1
        if member.bit:
            return self._by_position[member.bit.bit_length() - 1][which]
        if member.name is None:
            assert member.keys is not None
            return self._by_class[member.keys][which]
        if member.name in self._by_name:
            return self._by_name[member.name][which]
        # A letter costs 1 at least.
        return self._shortest[which] + len(member.name)
