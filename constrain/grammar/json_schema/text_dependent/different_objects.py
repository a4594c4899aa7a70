"""Objects that are different from others, or equal to one.

As long as the members of an object are those of some of the others, what these have beside them is kept in mind.  The
first member that is in none of them decides.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache, lru_cache, partial

from constrain.grammar.ir import HARD, OPEN, Symbol
from constrain.grammar.json_schema.lexical.layout import Layout
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import Text, Words, contains, every, without
from constrain.grammar.json_schema.normal.count_texts import Beginnings
from constrain.grammar.json_schema.normal.few_values import few_words
from constrain.grammar.json_schema.normal.instances import Instance
from constrain.grammar.json_schema.normal.key_classes import is_inexhaustible
from constrain.grammar.json_schema.normal.nodes import ObjectNode
from constrain.grammar.json_schema.text_dependent import object_states as states
from constrain.grammar.json_schema.text_dependent.by_value import ByValue
from constrain.grammar.json_schema.text_dependent.interfaces import Differences, Values
from constrain.grammar.json_schema.text_dependent.object_costs import Member, ObjectCosts
from constrain.grammar.json_schema.text_dependent.object_states import ObjectMembers
from constrain.grammar.json_schema.text_dependent.persistent import PersistentMap, PersistentSet
from constrain.grammar.json_schema.text_dependent.unique_members import MOST_COUNTED, keys_without
from constrain.grammar.languages.regular import Regular
from constrain.grammar.rules_on_demand import Costs, Edge, Right, TextBefore
from constrain.limits import spend

# The names of more objects are counted one object after the other.
_FEW_OTHERS = 8


class ObjectAutomaton:
    """The objects of a node that are different from others, or equal to one.

    Its states are :class:`~.object_states.ObjectState`, and behind keys that others may have
    :class:`~.object_states.BehindName`.
    Where keys run out, the lexemes of further keys leave those out that are there; behind such a key it is a
    :class:`~.object_states.BehindKey`.
    """

    def __init__(self, values: Differences, node: ObjectNode, layout: Layout) -> None:
        self._values = values
        self._layout = layout
        self._members = members = ObjectMembers(values, node, layout)
        self._scarce = {
            keys: Beginnings(keys)
            for keys, _ in members.large_classes
            if members.may_run_out and not is_inexhaustible(keys)
        }
        self._is_different = lru_cache(maxsize=10_000)(self._find_difference)
        self._class_of = lru_cache(maxsize=10_000)(self._find_class)
        self._rest_of_class = lru_cache(maxsize=100)(self._find_rest_of_class)
        self._key_symbol = lru_cache(maxsize=10_000)(self._find_key_symbol)
        self._plentiful = cache(self._find_plentiful)
        # For each name, what adds another object to those of the others that have it.
        self._adders: dict[str, Callable[[ByValue, states.Members, bool], ByValue]] = {}
        # There are always keys that no others have.
        self._has_endless_keys = any(is_inexhaustible(keys) for keys, _ in members.large_classes)

    def start(self, others: Values, is_same: bool) -> states.ObjectState:
        """The state before the opening brace."""
        return states.ObjectState(0, -1, 0, states.NO_KEYS, others.derived(PersistentSet, _add_content), is_same, True)

    def can_differ(self, others: Values) -> bool:
        """Whether any object is none of ``others``."""
        return self._can_end(self.start(others, False))

    def edges(self, state: states.State) -> tuple[list[Right], list[Edge]]:
        """The ways to end in a state, and those to go on."""
        if isinstance(state, states.BehindName):
            return [], self.with_value(state)
        if not isinstance(state, states.ObjectState):
            kind = OPEN | HARD if isinstance(state, states.AheadOfKey) else 0
            return [], [((symbol,), state.then, kind) for symbol in self._values.any(self._layout, state.handle)]
        return self.ends(state), self._like_one(state) if state.is_same else self._unlike(state)

    def _like_one(self, state: states.ObjectState) -> list[Edge]:
        """The ways to go on for an object that must be the other one."""
        (other,) = state.others
        left = self._named(other)
        return [
            self._with_name_alone(state, member, member.name)
            for member in self.members(state)
            if member.name is not None
            and member.name in other
            and not left & ~member.bit & ~self._members.open_names(member.then)
        ]

    def _unlike(self, state: states.ObjectState) -> list[Edge]:
        """The ways to go on for an object that must be none of the others."""
        edges: list[Edge] = []
        for member in self.single_members(state):
            if member.name is not None and self._has_many_ways(state, member):
                edges.append(self._with_name_alone(state, member, member.name))
            else:
                edges += self.with_member(state, member)
        for other in self.other_members(state):
            names = sorted(other.names)
            if self._has_many_ways(state, other):
                edges += [self._with_name_alone(state, other, name) for name in names]
            else:
                edges += [edge for name in names for edge in self.with_member(state, other.named(name))]
            edges += self._with_any_other(state, other)
        return edges

    def _has_many_ways(self, state: states.ObjectState, member: Member) -> bool:
        """Whether a member can be what it may, although there are others."""
        return bool(state.others) and self._members.has_enough(member.then) and self._has_room(member.then)

    def _with_name_alone(self, state: states.ObjectState, member: Member, name: str) -> Edge:
        """The way to go on with a name under which there is a value; of hundreds of names a text has one."""
        spend()
        key = self._key_symbol(name, state.is_empty)
        before = (self._members.open, key) if state.is_empty else (key,)
        return before, states.BehindName(name, member.handle, state.others, member.then), 0

    def _find_key_symbol(self, name: str, is_first: bool) -> Symbol:
        first, later = self._members.named_key(name)
        return self._values.unfolding.key(first if is_first else later, name)

    def ends(self, state: states.ObjectState) -> list[Right]:
        """The ways to end in a state."""
        if not self._ends(state):
            return []
        return [self._members.empty if state.is_empty else (self._members.close,)]

    def members(self, state: states.ObjectState) -> Iterator[Member]:
        """The members that may come next, as far as the values of others do not matter."""
        yield from self.single_members(state)
        for other in self.other_members(state):
            yield from map(other.named, sorted(other.names))
            if not state.is_same:
                yield other

    def single_members(self, state: states.ObjectState) -> Iterator[Member]:
        """Those with a name, and with the keys of small classes."""
        members = self._members
        then = state._replace(size=state.size + 1, is_empty=False)
        for position, (name, handle) in enumerate(members.named):
            bit = 1 << position
            if state.used & bit or not members.possible & bit or (position < state.last and not members.any_order):
                continue
            yield Member(name, bit, handle, then._replace(used=state.used | bit, last=position))
            if members.required & bit and not members.any_order:
                # It cannot be passed by.
                break
        then = then._replace(last=len(members.named))
        for name, handle in members.few_keys.items():
            if name not in state.keys:
                yield Member(name, 0, handle, then._replace(keys=state.keys.plus(name)))

    def other_members(self, state: states.ObjectState) -> list[Member]:
        """Those with any other key, one for each large class."""
        members = self._members
        if not members.large_classes:
            return []
        then = state._replace(size=state.size + 1, is_empty=False, last=len(members.named))
        names: dict[int, list[str]] = {}
        for name in self._unnamed(state.others):
            names.setdefault(self._class_of(name), []).append(name)
        return [
            Member(None, 0, handle, then, keys, frozenset(names.get(place, ())))
            for place, (keys, handle) in enumerate(members.large_classes)
        ]

    def _unnamed(self, others: states.Others) -> Iterable[str]:
        """The names of the others that are not treated alone."""
        if len(others) > _FEW_OTHERS:
            unnamed: PersistentMap[str, int] = others.derived(PersistentMap, self._count_unnamed)
            return unnamed
        names = {name for other in others for name in other}
        spend(len(names))
        return names.difference(self._members.position)

    def _find_class(self, name: str) -> int:
        """The large class that a key is in; -1 if it is in none."""
        classes = self._members.large_classes
        found = [place for place, (keys, _) in enumerate(classes) if is_text(name) and contains(keys, name)]
        return found[0] if found else -1

    def with_member(self, state: states.ObjectState, member: Member) -> list[Edge]:
        """The ways to go on with a member: with the value of some of the others, or with one of none."""
        spend(5)
        if member.name is None:
            return self._with_any_other(state, member)
        before = self._before(state, self._members.named_key(member.name), member.name)
        place = states.BehindName(member.name, member.handle, state.others, member.then)
        return [((*before, *right), after, kind) for right, after, kind in self.with_value(place)]

    def with_value(self, place: states.BehindName) -> list[Edge]:
        """The ways to go on behind a name: with the value of some of the others, or with one of none."""
        here = self._with_name(place.name, place.others)
        then = place.then
        if place.name not in self._members.position:
            then = then._replace(keys=then.keys.plus(place.name))
        if then.is_same and not here.size:
            return []
        further: list[Edge] = []
        for (rests, _), values in here.ways.items():
            spend(5)
            after = then._replace(others=rests)
            if self._can_end(after):
                symbols = self._values.one_of(self._layout, place.handle, values)
                further.extend(((symbol,), after, 0) for symbol in symbols)
        after = self._decided(then)
        if not then.is_same and self._can_end(after):
            symbols = self._values.different(self._layout, place.handle, here.values)
            further.extend(((symbol,), after, 0) for symbol in symbols)
        return further

    def _with_any_other(self, state: states.ObjectState, member: Member) -> list[Edge]:
        """The same with a key that none of the others has."""
        assert member.keys is not None
        after = self._decided(member.then)
        # No key comes twice, so those that were there make no difference: the rest stays what it is from one member to
        # the next.
        names = member.names.union(state.keys) if state.others and member.keys not in self._scarce else member.names
        language = self._rest(member.keys, names, state) if self._can_end(after) else None
        if language is None:
            return []
        before = self._before(state, language, "key")
        if member.keys in self._scarce:
            return [(before, states.AheadOfKey(after, member.handle), OPEN)]
        return [((*before, symbol), after, 0) for symbol in self._values.any(self._layout, member.handle)]

    def _before(self, state: states.ObjectState, key: tuple[Regular, Regular], name: str) -> Right:
        """What stands before a member's value."""
        if state.is_empty:
            return (self._members.open, self._values.unfolding.key(key[0], name))
        return (self._values.unfolding.key(key[1], name),)

    def _rest(self, keys: Text, names: frozenset[str], state: states.ObjectState) -> tuple[Regular, Regular] | None:
        """The keys of a class but for some names and those that are left out; None if there are none."""
        if keys not in self._scarce or not len(state.keys):
            return self._rest_of_class(keys, names)
        rest = every(keys, without(Words(names))) if names else keys
        if not self._scarce[keys].has_more_than(len(names) + len(state.keys)):
            left = every(keys, without(Words(names.union(state.keys))))
            if not few_words(left, 1):
                return None
        return keys_without(self._layout, rest, state.keys)

    def _find_rest_of_class(self, keys: Text, names: frozenset[str]) -> tuple[Regular, Regular] | None:
        rest = every(keys, without(Words(names))) if names else keys
        return self._members.key_of_class(rest) if not names or few_words(rest, 1) else None

    def follow(self, state: states.State, edge: Hashable) -> Hashable:
        """The state behind an edge; behind a key that is not known, what a mask may take for it."""
        return edge

    def close(self, state: states.ObjectState, edge: states.AheadOfKey, text: TextBefore) -> Hashable:
        """The state behind the key that the text ends with."""
        key, then = self._layout.last_key(text), edge.then
        if self._is_left_out(key):
            then = then._replace(keys=then.keys.plus(key))
        return states.BehindKey(then, edge.handle)

    def _keep(self, kept: PersistentSet[str], key: str, is_added: bool) -> PersistentSet[str]:
        if not self._is_left_out(key):
            return kept
        return kept.plus(key) if is_added else kept.minus(key)

    def _is_left_out(self, key: str) -> bool:
        """Whether the lexemes of further keys have to leave a key out, once all is decided."""
        return key in self._members.few_keys or any(
            contains(keys, key) and beginnings.goes_on_in_few(key, MOST_COUNTED)
            for keys, beginnings in self._scarce.items()
        )

    def least(self, state: states.State, costs: Costs) -> int:
        """What it costs to come to an end."""
        return self._costs(costs).least(state)

    def least_behind(
        self, state: states.ObjectState | states.AheadOfKey, edge: states.ObjectState | states.AheadOfKey, costs: Costs
    ) -> int:
        """The same behind a key that is not known, or behind a value that a mask looks ahead to."""
        return self.least(edge, costs)

    def least_different(self, count: int, costs: Costs) -> int:
        """What an object costs at most that has a member which ``count`` others do not have."""
        return self._costs(costs).least_different(count)

    def _costs(self, costs: Costs) -> ObjectCosts:
        if self not in costs.known:
            costs.known[self] = ObjectCosts(self._members, self, costs)
        return costs.known[self]  # type: ignore[no-any-return]

    def _decided(self, state: states.ObjectState) -> states.ObjectState:
        """The state once the object is like none of the others."""
        size = state.size if self._members.high is not None else min(state.size, self._members.low)
        # Once it is decided, no others are there.
        keys = state.keys.derived(PersistentSet, self._keep) if state.others else state.keys
        return state._replace(others=states.NO_OTHERS, keys=keys, size=size)

    def _ends(self, state: states.ObjectState) -> bool:
        if state.is_same:
            return not any(state.others)
        if self._members.required & ~state.used or state.size < self._members.low:
            return False
        return states.NOTHING_LEFT not in state.others

    def _can_end(self, state: states.ObjectState) -> bool:
        """Whether there is a way from a state to an end."""
        members = self._members
        if state.is_same:
            # The names that are still to come have not been passed by.
            (other,) = state.others
            return not self._named(other) & ~members.open_names(state)
        if not members.has_enough(state):
            return False
        if self._has_room(state):
            return True
        return self._is_different(state) if state.others else members.can_have_low(state)

    def _named(self, other: states.Members) -> int:
        """The names of members that are treated alone, as a set of bits."""
        position = self._members.position
        return sum(1 << position[name] for name in other if name in position)

    def _has_room(self, state: states.ObjectState) -> bool:
        """Whether an object can differ by a member to come, whatever the others have: by its key, or by its value."""
        members = self._members
        has_further = members.has_enough(state, 1)
        if has_further and self._has_endless_keys:
            return True
        plentiful = members.open_names(state) & self._plentiful(len(state.others).bit_length())
        return bool(plentiful if has_further else plentiful & members.required) and members.can_have_low(state)

    def _find_plentiful(self, bits: int) -> int:
        """The names under which there are more than ``2 ** bits`` values, as a set of bits."""
        few = self._values.few
        found = 0
        for position, (_, handle) in enumerate(self._members.named):
            if self._values.has_more(("under names", handle), partial(few.of, handle), 1 << bits):
                found |= 1 << position
        return found

    def _find_difference(self, state: states.ObjectState) -> bool:
        free = self._members.open_names(state)
        named = [
            (name, handle, bool(self._members.required >> position & 1))
            for position, (name, handle) in enumerate(self._members.named)
            if free >> position & 1
        ]
        written = {name for position, (name, _) in enumerate(self._members.named) if state.used >> position & 1}
        written.update(state.keys)
        low = max(self._members.low - state.size, 0)
        high = None if self._members.high is None else self._members.high - state.size

        def search(most: int) -> list[Instance]:
            return self._values.few.of_members(named, self._members.classes, frozenset(written), low, high, most)

        count = len(state.others)
        if self._values.has_more((self, free, frozenset(written), low, high), search, count):
            return True
        return any(states.Members.of(rest.content) not in state.others for rest in search(count + 1))

    def _with_name(self, name: str, others: states.Others) -> ByValue:
        """Those of the others that have a name, by its value, each with what is left of it without the member."""
        adder = self._adders.get(name)
        if adder is None:
            adder = self._adders[name] = partial(_add_with_name, name)
        return others.derived(ByValue, adder)

    def _count_unnamed(
        self, counts: PersistentMap[str, int], members: states.Members, is_added: bool
    ) -> PersistentMap[str, int]:
        """How many of the others have a name that is not treated alone."""
        for name in members:
            spend()
            if name not in self._members.position:
                count = (counts.get(name) or 0) + (1 if is_added else -1)
                counts = counts.plus(name, count) if count else counts.minus(name)
        return counts


def _add_content(others: states.Others, value: Instance, is_added: bool) -> states.Others:
    spend(10 * len(value.content))
    members = states.Members.of(value.content)
    return others.plus(members) if is_added else others.minus(members)


def _add_with_name(name: str, here: ByValue, members: states.Members, is_added: bool) -> ByValue:
    spend(10)
    value = members.get(name)
    return here if value is None else here.changed(value, members.without(name), is_added)
