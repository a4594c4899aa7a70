"""How far an object has come that is to be different from others, or equal to one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.normal.instances import Instance
from constrain.grammar.persistent import PersistentMap, PersistentSet


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
