"""What the items of an array may be, one after the other, for the sake of what ``contains`` counts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from constrain.grammar.json_schema.document.places import Handle, conjunction, negate
from constrain.grammar.json_schema.normal.intersect import element
from constrain.grammar.json_schema.normal.nodes import ArrayNode, Contains
from constrain.limits import spend


def choices_of(each: Contains, index: int, count: int) -> tuple[tuple[Handle, int], ...]:
    """What an item may be for the sake of one ``contains``, with what it adds to the count."""
    if index < each.start or (each.high is None and count >= each.low):
        return (((), 0),)
    if each.high is None:
        # Not to count an item that would is no fault: there only have to be enough.
        return ((), 0), (each.item, 1)
    if count >= each.high:
        return ((negate(each.item), 0),)
    return (negate(each.item), 0), (each.item, 1)


def ways(node: ArrayNode, index: int, counts: tuple[int, ...]) -> Iterator[tuple[Handle, tuple[int, ...]]]:
    """What the next item may be, with the counts after it."""
    base = element(node, index)
    choices = [choices_of(each, index, count) for each, count in zip(node.contains, counts, strict=True)]
    for chosen in product(*choices):
        spend()
        handle = base
        for part, _ in chosen:
            handle = conjunction(handle, part)
        yield handle, tuple(count + step for count, (_, step) in zip(counts, chosen, strict=True))
