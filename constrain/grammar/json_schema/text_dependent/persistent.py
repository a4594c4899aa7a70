"""Immutable maps and sets of which a version with one entry more, or less, is made in the time of a look-up.

They are tries over the bits of hashes (Bagwell, 2000): a new version shares all nodes with the old one but those on the
path to the entry.  Two maps with the same entries have tries of the same shape, whatever the order in which the entries
came, so they are compared by their nodes, and shared nodes need no look.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
R = TypeVar("R")

_BITS = 4
_WIDTH = 1 << _BITS
_HASH_MASK = (1 << 64) - 1


class _Leaf(NamedTuple):
    """The entries whose keys have one hash: nearly always one."""

    hash: int
    entries: dict[Any, Any]


# A branch is a tuple of _WIDTH nodes or None.  There are two leaves below it at least, or it would be the leaf itself.
_Node = Any


class PersistentMap(Generic[K, V]):
    """An immutable map."""

    __slots__ = ("_root", "_size")

    def __init__(self) -> None:
        self._root: _Node = None
        self._size = 0

    def get(self, key: K) -> V | None:
        """The value of a key; None if there is none."""
        number = hash(key) & _HASH_MASK
        node, rest = self._root, number
        while type(node) is tuple:
            node = node[rest & (_WIDTH - 1)]
            rest >>= _BITS
        return None if node is None or node.hash != number else node.entries.get(key)

    def plus(self, key: K, value: V) -> PersistentMap[K, V]:
        """The map in which ``key`` has this value."""
        number = hash(key) & _HASH_MASK
        root, is_new = _plus(self._root, 0, number, key, value)
        return self._with(root, self._size + is_new)

    def minus(self, key: K) -> PersistentMap[K, V]:
        """The map without ``key``, which must be there."""
        number = hash(key) & _HASH_MASK
        return self._with(_minus(self._root, 0, number, key), self._size - 1)

    def items(self) -> Iterator[tuple[K, V]]:
        """All entries, in an order of no meaning."""
        stack = [self._root]
        while stack:
            node = stack.pop()
            if type(node) is tuple:
                stack += node
            elif node is not None:
                yield from node.entries.items()

    def any_key(self) -> K:
        """One of the keys; there must be one."""
        node = self._root
        while type(node) is tuple:
            node = next(filter(None, node))
        return next(iter(node.entries))  # type: ignore[no-any-return]

    def __contains__(self, key: K) -> bool:
        number = hash(key) & _HASH_MASK
        node, rest = self._root, number
        while type(node) is tuple:
            node = node[rest & (_WIDTH - 1)]
            rest >>= _BITS
        return node is not None and node.hash == number and key in node.entries

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self.items())

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PersistentMap):
            return NotImplemented
        # Tuples compare their parts by identity first.
        return self._size == other._size and bool(self._root == other._root)

    __hash__ = None  # type: ignore[assignment]

    def _with(self, root: _Node, size: int) -> PersistentMap[K, V]:
        other: PersistentMap[K, V] = PersistentMap()
        other._root, other._size = root, size
        return other


def _plus(node: _Node, depth: int, number: int, key: Any, value: Any) -> tuple[_Node, bool]:
    """A node with one entry more, and whether its key is new."""
    if node is None:
        return _Leaf(number, {key: value}), True
    if type(node) is _Leaf:
        if node.hash == number:
            return _Leaf(number, {**node.entries, key: value}), key not in node.entries
        branch: list[_Node] = [None] * _WIDTH
        branch[node.hash >> _BITS * depth & (_WIDTH - 1)] = node
        node = tuple(branch)
    place = number >> _BITS * depth & (_WIDTH - 1)
    child, is_new = _plus(node[place], depth + 1, number, key, value)
    return (*node[:place], child, *node[place + 1 :]), is_new


def _minus(node: _Node, depth: int, number: int, key: Any) -> _Node:
    """A node without an entry that it has."""
    if type(node) is _Leaf:
        entries = {other: value for other, value in node.entries.items() if other != key}
        return _Leaf(number, entries) if entries else None
    place = number >> _BITS * depth & (_WIDTH - 1)
    child = _minus(node[place], depth + 1, number, key)
    left = [other for other in (*node[:place], child, *node[place + 1 :]) if other is not None]
    if len(left) == 1 and type(left[0]) is _Leaf:
        return left[0]
    return (*node[:place], child, *node[place + 1 :])


class PersistentSet(Generic[K]):
    """An immutable set.

    It knows the set that it was made from, and so what follows from its elements by what they change in what follows
    from that set's.
    """

    __slots__ = ("_before", "_derived", "_element", "_hash", "_map")

    def __init__(self) -> None:
        self._map: PersistentMap[K, bool] = PersistentMap()
        self._hash = 0
        self._before: PersistentSet[K] | None = None
        self._element: K | None = None
        self._derived: dict[Any, Any] = {}

    @classmethod
    def of(cls, elements: Iterable[K]) -> PersistentSet[K]:
        """The set of some elements."""
        found = cls()
        for element in elements:
            found = found.plus(element)
        return found

    def plus(self, element: K) -> PersistentSet[K]:
        """The set with an element more, or this one if it has it."""
        if element in self._map:
            return self
        return self._changed(element, self._map.plus(element, True), hash(element))

    def minus(self, element: K) -> PersistentSet[K]:
        """The set without an element, or this one if it does not have it."""
        if element not in self._map:
            return self
        return self._changed(element, self._map.minus(element), -hash(element))

    def _changed(self, element: K, entries: PersistentMap[K, bool], step: int) -> PersistentSet[K]:
        other: PersistentSet[K] = PersistentSet()
        other._map, other._hash = entries, (self._hash + step) & _HASH_MASK
        other._before, other._element = self, element
        return other

    def any_element(self) -> K:
        """One of the elements; there must be one."""
        return self._map.any_key()

    def derived(self, begin: Callable[[], R], step: Callable[[R, K, bool], R]) -> R:
        """What follows from the elements, one after the other.

        Parameters
        ----------
        begin : callable () -> R
            What follows from the empty set.
        step : callable (R, element, bool) -> R
            What follows from a set with an element more (True) or less (False), given what follows without that change;
            it must not depend on the order of the changes.  The result is kept for the set under ``step``, but that of
            a set that was made from no other is not: it may be one for all who begin with it, and would keep alive
            what ``step`` belongs to.
        """
        here: PersistentSet[K] = self
        changes: list[PersistentSet[K]] = []
        while here._before is not None and step not in here._derived:
            changes.append(here)
            here = here._before
        result: R = begin() if here._before is None else here._derived[step]
        for change in reversed(changes):
            element: K = change._element  # type: ignore[assignment]
            result = step(result, element, element in change._map)
        if changes:
            self._derived[step] = result
        return result

    def __contains__(self, element: object) -> bool:
        return element in self._map  # type: ignore[operator]

    def __len__(self) -> int:
        return len(self._map)

    def __iter__(self) -> Iterator[K]:
        return iter(self._map)

    def __hash__(self) -> int:
        return hash((self._hash, len(self._map)))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PersistentSet):
            return NotImplemented
        return self._hash == other._hash and self._map == other._map
