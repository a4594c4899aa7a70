"""Objects that are different from others, or equal to one.

As long as the members of an object are those of some of the others, what these have beside them is kept in mind.  The
first member that is in none of them decides.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache, partial
from typing import NamedTuple

from constrain.grammar.growing_tree import GrowingTree
from constrain.grammar.ir import HARD, NEVER, OPEN, Symbol
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.layout import Layout, named_keys
from constrain.grammar.json_schema.lexical.strings import Spelling, is_text
from constrain.grammar.json_schema.lexical.texts import GrowingWords, Text, Words, contains, every, spelled, without
from constrain.grammar.json_schema.normal.count_texts import Beginnings, few_strings
from constrain.grammar.json_schema.normal.few_values import few_words, members_of
from constrain.grammar.json_schema.normal.instances import Instance
from constrain.grammar.json_schema.normal.key_classes import FEW_KEYS, count_keys, is_inexhaustible, other_classes
from constrain.grammar.json_schema.normal.nodes import ObjectNode
from constrain.grammar.json_schema.text_dependent.by_value import NOTHING, ByValue
from constrain.grammar.json_schema.text_dependent.interfaces import Differences, Values
from constrain.grammar.json_schema.text_dependent.unique_members import MOST_COUNTED
from constrain.grammar.persistent import PersistentMap, PersistentSet
from constrain.grammar.regular import Regular, complement, intersect
from constrain.grammar.rules_on_demand import Costs, Edge, Right, TextBefore
from constrain.limits import spend


class Members:
    """The members of an object, or what is left of them: immutable, and one is taken away in the time of a look-up."""

    __slots__ = ("_hash", "_values")

    def __init__(self, values: PersistentMap[str, Instance], number: int) -> None:
        self._values = values
        self._hash = number

    @classmethod
    def of(cls, members: Iterable[tuple[str, Instance]]) -> Members:
        """Members by their names and values."""
        values: PersistentMap[str, Instance] = PersistentMap()
        number = 0
        for member in members:
            values = values.plus(*member)
            number ^= hash(member)
        return cls(values, number)

    def get(self, name: str) -> Instance | None:
        """The value under a name; None if there is none."""
        return self._values.get(name)

    def without(self, name: str) -> Members:
        """These without a name, which they must have."""
        return Members(self._values.minus(name), self._hash ^ hash((name, self._values.get(name))))

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._values.items())

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Members) and self._hash == other._hash and self._values == other._values


Others = PersistentSet[Members]

_NONE: Others = PersistentSet()
_NOTHING_LEFT = Members.of(())
_NO_KEYS: PersistentSet[str] = PersistentSet()

# More keys than a text can have.
_MANY_KEYS = 1 << 32


class _Members(NamedTuple):
    used: int
    """The names that were written, as a set of bits."""
    last: int
    """The position of the last of them; one beyond all once another key was written."""
    size: int
    """How many members there are; up to where that matters, once all is decided."""
    keys: PersistentSet[str]
    """What was written of the keys that are left out then, and of those without a name that ``others`` have."""
    others: Others
    """What the objects that have the same members have beside these: objects that lack the same are alike from here."""
    is_same: bool
    """Whether it must be the one of ``others``, or none of them."""
    is_empty: bool


class _Value(NamedTuple):
    """Behind a key of a class where keys run out."""

    then: _Members
    """Behind the value, with the key."""
    handle: Handle


class _Ahead(NamedTuple):
    """The same for a mask that looks beyond the end of a key, which is not known there."""

    then: _Members
    """Without the key."""
    handle: Handle
    is_ahead: bool = True
    """Tuples of as many fields that are equal would be one state."""


class ObjectAutomaton:
    """The objects of a node that are different from others, or equal to one; its states are :class:`_Members`.

    Where keys run out, the lexemes of further keys leave those out that are there; behind such a key it is a
    :class:`_Value`.
    """

    def __init__(self, values: Differences, node: ObjectNode, layout: Layout) -> None:
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
        # The keys of small classes, one by one: the engine does not see to it that none comes twice.
        self._few_keys: dict[str, Handle] = {}
        self._large_classes: list[tuple[Text, Handle]] = []
        for keys, handle in self._classes:
            words = few_strings(keys, FEW_KEYS)
            if words is None:
                self._large_classes.append((keys, handle))
            else:
                self._few_keys.update(dict.fromkeys(sorted(filter(is_text, words)), handle))
        # How many keys without a name there are, up to where that matters.
        self._n_others = len(self._few_keys)
        for keys, _ in self._large_classes:
            self._n_others += count_keys(keys, self._low - self._n_others) if self._n_others < self._low else 0
        # Where a key of any kind may come, there is always another one.
        may_run_out = len(self._classes) < len(other_classes(node))
        self._scarce = {
            keys: Beginnings(keys) for keys, _ in self._large_classes if may_run_out and not is_inexhaustible(keys)
        }
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
        # For each name, what adds another object to those of the others that have it.
        self._adders: dict[str, Callable[[ByValue, Members, bool], ByValue]] = {}
        self._has_endless_keys = values.is_roomy(node)

    @property
    def named(self) -> list[tuple[str, Handle]]:
        """The names that are treated alone, in order."""
        return self._named

    @property
    def few_keys(self) -> dict[str, Handle]:
        """The other keys of small classes."""
        return self._few_keys

    @property
    def large_classes(self) -> list[tuple[Text, Handle]]:
        """The other classes of keys."""
        return self._large_classes

    def key_cost(self, languages: tuple[Regular, Regular], costs: Costs, is_first: bool) -> int:
        """What the cheapest of some keys costs, with its colon, and with its comma unless it is the first."""
        return costs.of(self._values.unfolding.key(languages[0 if is_first else 1], "key"))

    def value_cost(self, handle: Handle, costs: Costs) -> int:
        """What the cheapest value costs."""
        return costs.any_of(self._values.any(self._layout, handle))

    def key_of_class(self, keys: Text) -> tuple[Regular, Regular]:
        """The keys of a class, as the first of an object and as a later one."""
        return self._layout.keys(partial(spelled, keys))

    def named_key(self, name: str) -> tuple[Regular, Regular]:
        """The key of a name, likewise."""
        return named_keys(self._layout, name)

    def start(self, others: Values, is_same: bool) -> _Members:
        """The state before the opening brace."""
        return _Members(0, -1, 0, _NO_KEYS, others.derived(PersistentSet, _add_content), is_same, True)

    def can_differ(self, others: Values) -> bool:
        """Whether any object is none of ``others``."""
        return self._can_end(self.start(others, False))

    def edges(self, state: _Members | _Value | _Ahead) -> tuple[list[Right], list[Edge]]:
        """The ways to end in a state, and those to go on."""
        if not isinstance(state, _Members):
            kind = OPEN | HARD if isinstance(state, _Ahead) else 0
            return [], [((symbol,), state.then, kind) for symbol in self._values.any(self._layout, state.handle)]
        ends: list[Right] = []
        further: list[Edge] = []
        before: Right = (self._open,) if state.is_empty else ()
        if self._ends(state):
            ends.append(self._empty if state.is_empty else (self._close,))

        def add(key: Symbol, name: str, handle: Handle, then: _Members, here: ByValue) -> None:
            """A member with a name: with the value of some of the others, or with one of none."""
            for (rests, _), values in here.ways.items():
                spend(5)
                after = then._replace(others=rests)
                if self._can_end(after):
                    symbols = self._values.one_of(self._layout, handle, values)
                    further.extend(((*before, key, symbol), after, 0) for symbol in symbols)
            after = self._decided(then)
            if not state.is_same and self._can_end(after):
                symbols = self._values.different(self._layout, handle, here.values)
                further.extend(((*before, key, symbol), after, 0) for symbol in symbols)

        for position, (name, handle) in enumerate(self._named):
            bit = 1 << position
            if state.used & bit or not self._possible & bit or (position < state.last and not self._any_order):
                continue
            spend(5)
            here = self._with_name(name, state.others)
            if not state.is_same or here.size:
                then = state._replace(used=state.used | bit, last=position, size=state.size + 1, is_empty=False)
                add(self._key(named_keys(self._layout, name), name, state), name, handle, then, here)
            if self._required & bit and not self._any_order:
                # It cannot be passed by.
                break
        unnamed = state.others.derived(PersistentMap, self._count_unnamed) if self._classes else PersistentMap()
        then = state._replace(last=len(self._named), size=state.size + 1, is_empty=False)

        def add_key(name: str, handle: Handle) -> None:
            """A member with a key that has no name in the schema."""
            spend(5)
            key = self._key(named_keys(self._layout, name), name, state)
            here = NOTHING if unnamed.get(name) is None else self._with_name(name, state.others)
            add(key, name, handle, then._replace(keys=state.keys.plus(name)), here)

        for name, handle in self._few_keys.items():
            if name not in state.keys:
                add_key(name, handle)
        for keys, handle in self._large_classes:
            names = {name for name, _ in unnamed.items() if is_text(name) and contains(keys, name)}
            for name in sorted(name for name in names if name not in state.keys):
                add_key(name, handle)
            after = self._decided(then)
            language = None if state.is_same or not self._can_end(after) else self._rest(keys, names, state)
            if language is None:
                continue
            key = self._key(language, "key", state)
            if keys in self._scarce:
                further.append(((*before, key), _Ahead(after, handle), OPEN))
            else:
                symbols = self._values.any(self._layout, handle)
                further.extend(((*before, key, symbol), after, 0) for symbol in symbols)
        return ends, further

    def _rest(self, keys: Text, names: set[str], state: _Members) -> tuple[Regular, Regular] | None:
        """The keys of a class but for some names and those that are left out; None if there are none."""
        rest = every(keys, without(Words(frozenset(names)))) if names else keys
        if keys not in self._scarce or not len(state.keys):
            return self.key_of_class(rest) if not names or few_words(rest, 1) else None
        if not self._scarce[keys].has_more_than(len(names) + len(state.keys)):
            left = every(keys, without(Words(frozenset(names.union(state.keys)))))
            if not few_words(left, 1):
                return None
        main = self._layout.key_spelling
        words = GrowingWords(state.keys.derived(lambda: GrowingTree(main.text), _add_word), main)

        def spell(spelling: Spelling) -> Regular:
            return intersect(spelled(rest, spelling), complement(spelled(words, spelling)))

        return self._layout.keys(spell)

    def follow(self, state: _Members | _Value | _Ahead, edge: Hashable) -> Hashable:
        """The state behind an edge; behind a key that is not known, what a mask may take for it."""
        return edge

    def close(self, state: _Members, edge: _Ahead, text: TextBefore) -> Hashable:
        """The state behind the key that the text ends with."""
        key, then = self._layout.last_key(text), edge.then
        if self._is_left_out(key):
            then = then._replace(keys=then.keys.plus(key))
        return _Value(then, edge.handle)

    def _keep(self, kept: PersistentSet[str], key: str, is_added: bool) -> PersistentSet[str]:
        if not self._is_left_out(key):
            return kept
        return kept.plus(key) if is_added else kept.minus(key)

    def _is_left_out(self, key: str) -> bool:
        """Whether the lexemes of further keys have to leave a key out, once all is decided."""
        return key in self._few_keys or any(
            contains(keys, key) and beginnings.goes_on_in_few(key, MOST_COUNTED)
            for keys, beginnings in self._scarce.items()
        )

    def least(self, state: _Members | _Value | _Ahead, costs: Costs) -> int:
        """What it costs to come to an end that is none of the others: with the first member that they do not have.

        If there is none, or others have what is required, with their members as far as need be.
        """
        if not isinstance(state, _Members):
            return self.value_cost(state.handle, costs) + self._least_of_any(state.then, costs)
        if not state.others and not state.is_same:
            return self._least_of_any(state, costs)
        todo = [state]
        while todo:
            here = todo[-1]
            ends, further = self.edges(here)
            ways = [costs.right(right) for right in ends]
            ways += [costs.right(right) + self.least(edge, costs) for right, edge, kind in further if kind]
            further = [each for each in further if not each[2]]
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

    def least_behind(self, state: _Members | _Ahead, edge: _Members | _Ahead, costs: Costs) -> int:
        """The same behind a key that is not known, or behind a value that a mask looks ahead to."""
        return self.least(edge, costs)

    def least_different(self, count: int, costs: Costs) -> int:
        """What an object costs at most that has a member which ``count`` others do not have."""
        start = _Members(0, -1, 0, _NO_KEYS, _NONE, False, True)
        least = NEVER
        plain = self._least_with(0, start, costs, {})
        for position, (_, handle) in enumerate(self._named):
            if self._possible >> position & 1:
                spare = self._values.spare(self._layout, handle, count, costs)
                if spare.is_sure:
                    least = min(least, self._least_with(1 << position, start, costs, {position: spare.cost}))
        if self._high is None or self._required.bit_count() < self._high:
            for keys, handle in self._classes:
                # The cheapest key, and under it a value that none of them has there.
                spare = self._values.spare(self._layout, handle, count, costs)
                if spare.is_sure:
                    least = min(least, plain + self.key_cost(self.key_of_class(keys), costs, False) + spare.cost)
        if self._high is None:
            names = frozenset(name for name, _ in self._named)
            free = without(Words(names)) if names else every()
            for keys, handle in self._classes:
                if keys == free:
                    # A key that others do not have, however many they have.
                    key = self.key_cost(self.key_of_class(keys), costs, False)
                    key += self._values.letters(self._layout, _MANY_KEYS, costs)
                    least = min(least, plain + key + self.value_cost(handle, costs))
        return least

    def _prices(self, costs: Costs) -> _Prices:
        key = self, "prices"
        if key not in costs.known:
            costs.known[key] = _Prices(self, costs)
        return costs.known[key]  # type: ignore[no-any-return]

    def _least_of_any(self, state: _Members, costs: Costs) -> int:
        """What the cheapest members cost that are still needed, and the closing brace."""
        key = self, "any", state.used, state.last, state.size, state.keys, state.is_empty
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
            elif which not in state.keys if isinstance(which, str) else free >> which & 1:
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
        # Once it is decided, no others are there.
        keys = state.keys.derived(PersistentSet, self._keep) if state.others else state.keys
        return state._replace(others=_NONE, keys=keys, size=size)

    def _open_names(self, state: _Members) -> int:
        """The names that may still be written, as a set of bits."""
        free = self._possible & ~state.used
        return free if self._any_order else free & ~((1 << (state.last + 1)) - 1)

    def _ends(self, state: _Members) -> bool:
        if state.is_same:
            return not any(state.others)
        if self._required & ~state.used or state.size < self._low:
            return False
        return _NOTHING_LEFT not in state.others

    def _can_end(self, state: _Members) -> bool:
        """Whether there is a way from a state to an end."""
        free = self._open_names(state)
        if state.is_same:
            # The names that are still to come have not been passed by.
            (other,) = state.others
            return not sum(1 << self._position[name] for name in other if name in self._position) & ~free
        if self._required & ~state.used & ~free:
            return False
        required = (self._required & ~state.used).bit_count()
        if self._high is not None and state.size + required > self._high:
            return False
        if self._has_endless_keys:
            return True
        if not state.others:
            return state.used.bit_count() + free.bit_count() + self._n_others >= self._low
        return self._is_different(state)

    def _find_difference(self, state: _Members) -> bool:
        free = self._open_names(state)
        named = [
            (name, handle, bool(self._required >> position & 1))
            for position, (name, handle) in enumerate(self._named)
            if free >> position & 1
        ]
        written = {name for position, (name, _) in enumerate(self._named) if state.used >> position & 1}
        written.update(state.keys)
        low = max(self._low - state.size, 0)
        high = None if self._high is None else self._high - state.size

        def search(most: int) -> list[Instance]:
            return self._values.few.of_members(named, self._classes, frozenset(written), low, high, most)

        count = len(state.others)
        if self._values.has_more((self, free, frozenset(written), low, high), search, count):
            return True
        return any(Members.of(rest.content) not in state.others for rest in search(count + 1))

    def _with_name(self, name: str, others: Others) -> ByValue:
        """Those of the others that have a name, by its value, each with what is left of it without the member."""
        adder = self._adders.get(name)
        if adder is None:
            adder = self._adders[name] = partial(_add_with_name, name)
        return others.derived(_nothing, adder)

    def _count_unnamed(
        self, counts: PersistentMap[str, int], members: Members, is_added: bool
    ) -> PersistentMap[str, int]:
        """How many of the others have a name that is not treated alone."""
        for name in members:
            spend()
            if name not in self._position:
                count = (counts.get(name) or 0) + (1 if is_added else -1)
                counts = counts.plus(name, count) if count else counts.minus(name)
        return counts


def _nothing() -> ByValue:
    return NOTHING


def _add_content(others: Others, value: Instance, is_added: bool) -> Others:
    spend(10 * len(value.content))
    members = Members.of(value.content)
    return others.plus(members) if is_added else others.minus(members)


def _add_word(tree: GrowingTree, name: str, is_new: bool) -> GrowingTree:
    return tree.plus(name) if is_new else tree.minus(name)


def _add_with_name(name: str, here: ByValue, members: Members, is_added: bool) -> ByValue:
    spend(10)
    value = members.get(name)
    return here if value is None else here.changed(value, members.without(name), is_added)


class _Prices:
    """What the members of an object cost that may have any value.

    Each name, each key of a small class, and the cheapest key of a large one.
    """

    def __init__(self, automaton: ObjectAutomaton, costs: Costs) -> None:
        named = [automaton.named_key(name) for name, _ in automaton.named]
        self.keys = [automaton.key_cost(key, costs, False) for key in named]
        self.values = [automaton.value_cost(handle, costs) for _, handle in automaton.named]
        ordered: list[tuple[int, int | str | None]] = [
            (key + value, position) for position, (key, value) in enumerate(zip(self.keys, self.values, strict=True))
        ]
        others: list[tuple[tuple[Regular, Regular], Handle, str | None]] = [
            (automaton.named_key(name), handle, name) for name, handle in automaton.few_keys.items()
        ]
        others += [(automaton.key_of_class(keys), handle, None) for keys, handle in automaton.large_classes]
        for key, handle, name in others:
            ordered.append((automaton.key_cost(key, costs, False) + automaton.value_cost(handle, costs), name))
        self.ordered = sorted(ordered, key=lambda each: each[0])
        # How much less a key costs without the comma, at least.
        saved = [
            automaton.key_cost(key, costs, False) - automaton.key_cost(key, costs, True)
            for key in (*named, *(key for key, _, _ in others))
        ]
        self.comma = min(saved, default=0)
