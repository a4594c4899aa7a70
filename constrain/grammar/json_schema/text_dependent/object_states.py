"""How far an object has come that is to be different from others, or equal to one; and the members that it may have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.layout import Layout, named_keys
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import Text, spelled
from constrain.grammar.json_schema.normal.count_texts import few_strings
from constrain.grammar.json_schema.normal.few_values import few_words, members_of
from constrain.grammar.json_schema.normal.instances import Instance
from constrain.grammar.json_schema.normal.key_classes import FEW_KEYS, count_keys, other_classes
from constrain.grammar.json_schema.normal.nodes import ObjectNode, size_range
from constrain.grammar.json_schema.text_dependent.interfaces import Differences
from constrain.grammar.json_schema.text_dependent.persistent import PersistentMap, PersistentSet
from constrain.grammar.languages.regular import Regular
from constrain.grammar.rules_on_demand import Right


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

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Members) and self._hash == other._hash and self._values == other._values


Others = PersistentSet[Members]

NO_OTHERS: Others = PersistentSet()
NOTHING_LEFT = Members.of(())
NO_KEYS: PersistentSet[str] = PersistentSet()


class ObjectState(NamedTuple):
    """What was written of an object."""

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


class BehindName(NamedTuple):
    """Behind a key that others may have: what its value may be is only worked out where a text comes to it."""

    name: str
    handle: Handle
    others: Others
    """Before the member."""
    then: ObjectState
    """Behind the value, but for what is left of the others."""


class BehindKey(NamedTuple):
    """Behind a key of a class where keys run out."""

    then: ObjectState
    """Behind the value, with the key."""
    handle: Handle


class AheadOfKey(NamedTuple):
    """The same for a mask that looks beyond the end of a key, which is not known there."""

    then: ObjectState
    """Without the key."""
    handle: Handle
    is_ahead: bool = True
    """Tuples of as many fields that are equal would be one state."""


State = ObjectState | BehindName | BehindKey | AheadOfKey


# -- the members of a node: by names that the schema tells apart, or by keys of a class -------------------


class ObjectMembers:
    """The members of one node in one layout, as far as they do not depend on other objects.

    Attributes
    ----------
    low, high : int, int or None
        How many there must be, and may be.
    named : list of (str, Handle)
        The names that are treated alone, in order.
    position : dict of str to int
        Their positions.
    required, possible : int
        Those that must be there, and those that have a value, as sets of bits.
    classes : list of (Text, Handle)
        The classes of other keys, with a value and a key at least.
    few_keys : dict of str to Handle
        The keys of small classes, one by one: the engine does not see to it that none comes twice.
    large_classes : list of (Text, Handle)
        The other classes.
    may_run_out : bool
        Whether the keys may come to an end; where one of any kind may come, there is always another one.
    """

    def __init__(self, values: Differences, node: ObjectNode, layout: Layout) -> None:
        self.values = values
        self.layout = layout
        self.any_order = values.written.any_order
        self.low, self.high = size_range(node)
        self.named = [(name, handle) for name, handle in members_of(node) if is_text(name)]
        self.position = {name: position for position, (name, _) in enumerate(self.named)}
        self.required = sum(1 << self.position[name] for name in node.required)
        self.possible = sum(
            1 << position for position, (_, handle) in enumerate(self.named) if values.any(layout, handle)
        )
        others = other_classes(node)
        self.classes = [(keys, handle) for keys, handle in others if values.any(layout, handle) and few_words(keys, 1)]
        self.may_run_out = len(self.classes) < len(others)
        self.few_keys: dict[str, Handle] = {}
        self.large_classes: list[tuple[Text, Handle]] = []
        for keys, handle in self.classes:
            words = few_strings(keys, FEW_KEYS)
            if words is None:
                self.large_classes.append((keys, handle))
            else:
                self.few_keys.update(dict.fromkeys(sorted(filter(is_text, words)), handle))
        # How many keys without a name there are, up to where that matters.
        self._n_others = len(self.few_keys)
        for keys, _ in self.large_classes:
            self._n_others += count_keys(keys, self.low - self._n_others) if self._n_others < self.low else 0
        lexeme = values.unfolding.lexeme
        self.open = lexeme(layout.open_object)
        self.close = lexeme(layout.close_object)
        self.empty: Right = (self.open, self.close) if layout.empty_object is None else (lexeme(layout.empty_object),)

    def key_of_class(self, keys: Text) -> tuple[Regular, Regular]:
        """The keys of a class, as the first of an object and as a later one."""
        return self.layout.keys(partial(spelled, keys))

    def named_key(self, name: str) -> tuple[Regular, Regular]:
        """The key of a name, likewise."""
        return named_keys(self.layout, name)

    def open_names(self, state: ObjectState) -> int:
        """The names that may still be written, as a set of bits."""
        free = self.possible & ~state.used
        return free if self.any_order else free & ~((1 << (state.last + 1)) - 1)

    def has_enough(self, state: ObjectState, further: int = 0) -> bool:
        """Whether an object that has come to a state can have what is required, and so many ``further`` members."""
        free = self.open_names(state)
        missing = self.required & ~state.used
        if missing & ~free:
            return False
        return self.high is None or state.size + missing.bit_count() + further <= self.high

    def can_have_low(self, state: ObjectState) -> bool:
        """Whether an object that is like no others can have as many members as it must."""
        return state.used.bit_count() + self.open_names(state).bit_count() + self._n_others >= self.low
