"""Members with keys of which each may come once, as an automaton whose states hold the keys that an object has so far.

Which key it was becomes known where a key ends, and the lexeme of the next key leaves it out.  So it is within a longer
text, where nothing tells the engine where a JSON value begins.  Where a value is the whole text, the engine reads the
keys beside the grammar, and the rules see to what it does not: that a new key is left.  There the states hold only the
keys behind whose beginnings an object may have all there are.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from constrain.errors import LimitError
from constrain.grammar.ir import BY_KEYS, FAR, HARD, NEVER, OPEN, Symbol
from constrain.grammar.json_schema.lexical.layout import Layout, named_keys
from constrain.grammar.json_schema.lexical.strings import Spelling
from constrain.grammar.json_schema.lexical.texts import GrowingWords, Text, spelled
from constrain.grammar.json_schema.normal.count_texts import Beginnings
from constrain.grammar.json_schema.normal.few_values import few_words
from constrain.grammar.json_schema.text_dependent.any_order import AnyOrder, Before, Members, MembersInAnyOrder
from constrain.grammar.json_schema.text_dependent.persistent import PersistentSet
from constrain.grammar.languages.growing_tree import GrowingTree
from constrain.grammar.languages.regular import Regular, complement, intersect
from constrain.grammar.rules_on_demand import Automaton, Costs, Edge, Right, TextBefore, UnfoldedAutomata

MOST_COUNTED = 10_000
"""Of so many keys or more, in one class or with the same beginning, an object is taken never to have all."""


class KeysOfClass(NamedTuple):
    """The keys of a member without a name."""

    keys: Text
    is_marked: bool
    """Whether the engine sees to it that none comes twice."""
    is_endless: bool
    """Whether every beginning of a key goes on to endlessly many."""


class _State(NamedTuple):
    members: Members
    seen: tuple[PersistentSet[str], ...]
    """Of each class, the keys that are left out."""


class _Value(NamedTuple):
    """Behind a key without a name."""

    members: Members
    """Before the key."""
    seen: tuple[PersistentSet[str], ...]
    """With the key."""
    way: int


class _Ahead(NamedTuple):
    """The same for a mask that looks beyond the end of a key, which is not known there."""

    members: Members
    way: int
    n_seen: int
    """How many keys are left out, that one included."""


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
    """

    decided_by = BY_KEYS

    def __init__(self, order: AnyOrder, keys: dict[int, KeysOfClass], layout: Layout) -> None:
        self.order = order
        self.keys = keys
        self.layout = layout

    def behind(self, before: Before) -> UniqueMembers:
        """The same members, behind others."""
        return UniqueMembers(self.order.behind(before), self.keys, self.layout)

    def begin(self, unfolding: UnfoldedAutomata) -> tuple[Automaton, Hashable]:
        """The automaton for a compiled grammar, and its first state."""
        members = MembersInAnyOrder(self.order, unfolding.is_usable)
        return _Automaton(self, members, unfolding), _State(members.start, (PersistentSet(),) * len(self.keys))


class _Automaton:
    def __init__(self, template: UniqueMembers, members: MembersInAnyOrder, unfolding: UnfoldedAutomata) -> None:
        self._order = template.order
        self._keys = template.keys
        self._places = {member: place for place, member in enumerate(template.keys)}
        self._layout = template.layout
        self._members = members
        self._unfolding = unfolding
        self._beginnings = cache(Beginnings)
        # Short keys of each member, and of some members all there are.
        self._words: dict[tuple[int, int], list[Symbol] | None] = {}
        self._all_words: dict[int, list[Symbol]] = {}

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
            if member not in self._keys:
                result.append((right, edge, 0))
                if self._order.close is None and self._members.may_end(self._members.follow(inner, edge)):
                    ends.append(right)
                continue
            key = self._key(member, right[0], seen[self._places[member]], inner.is_empty)
            if key is not None:
                result.append(((key,), edge, OPEN))
        return ends, result

    def _key(self, member: int, key: Symbol, seen: PersistentSet[str], is_empty: bool) -> Symbol | None:
        """The keys of a member without those that are there; None if none is left."""
        if not len(seen):
            return key
        keys, is_marked, is_endless = self._keys[member]
        if not is_endless and not self._beginnings(keys).has_more_than(len(seen)):
            return None
        language = keys_without(self._layout, keys, seen)[0 if is_empty else 1]
        return (self._unfolding.key if is_marked else self._unfolding.lexeme)(language, "key")

    def follow(self, state: _State | _Value | _Ahead, edge: int) -> Hashable:
        """The state behind an edge; behind a key, what a mask may take for it."""
        if isinstance(state, _Value):
            return _State(self._members.follow(state.members, edge), state.seen)
        assert isinstance(state, _State)
        if self._members.ways[edge].member in self._keys:
            return _Ahead(state.members, edge, sum(map(len, state.seen)) + 1)
        return _State(self._members.follow(state.members, edge), state.seen)

    def close(self, state: _State, edge: int, text: TextBefore) -> Hashable:
        """The state behind the key that the text ends with."""
        member = self._members.ways[edge].member
        key = self._layout.last_key(text)
        seen, place = state.seen, self._places[member]
        if self._is_left_out(self._keys[member], key):
            seen = (*seen[:place], seen[place].plus(key), *seen[place + 1 :])
        return _Value(state.members, seen, edge)

    def _is_left_out(self, of_class: KeysOfClass, key: str) -> bool:
        """Whether the lexemes of further keys have to leave a key out."""
        return not of_class.is_marked or self._beginnings(of_class.keys).goes_on_in_few(key, MOST_COUNTED)

    def least(self, state: _State | _Value | _Ahead, costs: Costs) -> int:
        """What the members cost that must still come."""
        if isinstance(state, _Ahead):
            return self._behind_key(state.members, state.way, state.n_seen, costs)
        count = sum(map(len, state.seen))
        if isinstance(state, _Value):
            return self._behind_key(state.members, state.way, count, costs)
        if not state.members.is_empty and self._members.needed_of_any(state.members) == 0:
            return self._members.least(state.members, costs)
        cheapest = NEVER
        for right, edge, kind in self.edges(state)[1]:
            if kind & OPEN:
                behind = self._behind_key(state.members, edge, count + 1, costs)
            else:
                behind = self._rest(self._members.follow(state.members, edge), count, costs)
            cheapest = min(cheapest, costs.right(right) + behind)
        return cheapest

    def least_behind(self, state: _State | _Ahead, edge: int, costs: Costs) -> int:
        """The same behind a key, whatever it is, or behind a value that a mask looks ahead to."""
        if isinstance(state, _Ahead):
            return self._rest(self._members.follow(state.members, edge), state.n_seen, costs)
        return self._behind_key(state.members, edge, sum(map(len, state.seen)) + 1, costs)

    def _behind_key(self, members: Members, way: int, count: int, costs: Costs) -> int:
        """What the value of a way costs, and what must follow; ``count`` keys are left out then."""
        return costs.of(self._members.ways[way].value) + self._rest(self._members.follow(members, way), count, costs)

    def _rest(self, members: Members, count: int, costs: Costs) -> int:
        """What must follow behind a member, if ``count`` keys are left out."""
        needed = self._members.needed_of_any(members)
        if needed == 0:
            return self._members.least(members, costs)
        if needed >= NEVER:
            return NEVER
        close = 0 if self._order.close is None else costs.of(self._order.close)
        dearest = self._dearest(count + needed, bool(members.pending), costs)
        return dearest if dearest >= FAR else close + needed * dearest

    def _dearest(self, count: int, is_pending: bool, costs: Costs) -> int:
        """What is enough for one more member, if there are ``count`` keys in the end.

        The more keys are left out, the more the next one costs.
        """
        known: dict[tuple[int, bool], int] = costs.known.setdefault(self, {})
        price = known.get((count, is_pending))
        if price is None:
            prices: list[int] = []
            always: list[int] = []
            for way in self._members.ways:
                of_class = self._keys.get(way.member)
                lexemes = [way.next_key] if of_class is None else self._cheap_keys(way.member, of_class.keys, count)
                if lexemes is not None and not lexemes:
                    # There are no such keys.
                    continue
                dearest = FAR if lexemes is None else max(map(costs.of, lexemes))
                prices.append(min(dearest + costs.of(way.value), NEVER))
                if not self._order.named[way.member] and (of_class is None or len(lexemes or ()) >= count):
                    always.append(prices[-1])
            # Of a class with as many keys there is always one.
            price = min(always) if always and not is_pending else max(prices, default=NEVER)
            known[count, is_pending] = price
        return price

    def _cheap_keys(self, member: int, keys: Text, count: int) -> list[Symbol] | None:
        """The lexemes of ``count`` keys that are short, or of all there are; None if that takes too long to find."""
        whole = self._all_words.get(member)
        if whole is not None:
            return whole[:count]
        if (member, count) not in self._words:
            lexemes: list[Symbol] | None = None
            with suppress(LimitError):
                words = few_words(keys, count)
                lexemes = [self._unfolding.lexeme(named_keys(self._layout, word)[1], "key") for word in words]
                if len(words) < count:
                    self._all_words[member] = lexemes
            self._words[member, count] = lexemes
        return self._words[member, count]


def keys_without(layout: Layout, keys: Text, seen: PersistentSet[str]) -> tuple[Regular, Regular]:
    """:meth:`Layout.keys` of a class without some names, which are those of another set and one more, or one less."""
    main = layout.key_spelling
    words = GrowingWords(seen.derived(lambda: GrowingTree(main.text), _add), main)

    def spell(spelling: Spelling) -> Regular:
        return intersect(spelled(keys, spelling), complement(spelled(words, spelling)))

    return layout.keys(spell)


def _add(tree: GrowingTree, name: str, is_new: bool) -> GrowingTree:
    return tree.plus(name) if is_new else tree.minus(name)
