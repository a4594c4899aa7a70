"""What the items of an array may be, one after the other, for the sake of what ``contains`` counts."""

from __future__ import annotations

from collections.abc import Callable
from operator import add

from constrain.grammar.json_schema.document.places import Handle, conjunction, negate
from constrain.grammar.json_schema.normal.intersect import element
from constrain.grammar.json_schema.normal.nodes import ArrayNode, Contains, Normal
from constrain.limits import spend

Steps = tuple[int, ...]
"""What an item adds to the count of each ``contains``."""


class NextItems:
    """What the next item of an array may be; places that say the same about it share the answer.

    Parameters
    ----------
    node : ArrayNode
    normal : callable
        The normal form of a handle.
    """

    def __init__(self, node: ArrayNode, normal: Callable[[Handle], Normal]) -> None:
        self._node = node
        self._normal = normal
        self._known: dict[tuple[object, ...], list[tuple[Handle, Steps]]] = {}

    def of(self, index: int, counts: tuple[int, ...]) -> list[tuple[Handle, tuple[int, ...]]]:
        """The schemas that it may have, each with the counts after it; those without values are left out."""
        choices = [_choices(each, index, count) for each, count in zip(self._node.contains, counts, strict=True)]
        base = element(self._node, index)
        key = (base, *choices)
        found = self._known.get(key)
        if found is None:
            # One demand after the other: most combinations are known to be contradictory long before they are whole.
            found = [(base, ())]
            for choice in choices:
                longer = []
                for handle, steps in found:
                    for part, step in choice:
                        spend()
                        both = conjunction(handle, part)
                        if not part or both == handle or self._normal(both).nodes:
                            longer.append((both, (*steps, step)))
                found = longer
            self._known[key] = found
        return [(handle, tuple(map(add, counts, steps))) for handle, steps in found]


def _choices(each: Contains, index: int, count: int) -> tuple[tuple[Handle, int], ...]:
    """What an item may be for the sake of one ``contains``, with what it adds to the count."""
    if index < each.start or (each.high is None and count >= each.low):
        return (((), 0),)
    if each.high is None:
        # Not to count an item that would is no fault: there only have to be enough.
        return ((), 0), (each.item, 1)
    if count >= each.high:
        return ((negate(each.item), 0),)
    return (negate(each.item), 0), (each.item, 1)


def kinds_of_items(node: ArrayNode) -> list[Handle]:
    """All that an item may have to be: by its place, and for the sake of each ``contains`` (see :class:`NextItems`)."""
    found = dict.fromkeys(element(node, index) for index in range(len(node.prefix) + 1))
    for each in node.contains:
        # Only where there may be too many does an item have to be none of them.
        parts = (each.item,) if each.high is None else (each.item, negate(each.item))
        found |= dict.fromkeys(conjunction(handle, part) for handle in found for part in parts)
    return list(found)
