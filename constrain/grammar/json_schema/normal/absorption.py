"""Alternatives that are part of another one: they demand all that it does, and say nothing new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.intersect import element, member

# Comparing all alternatives with each other is quadratic in their number.
_MAX_COMPARED = 400

_Node = TypeVar("_Node", n.ArrayNode, n.ObjectNode)


def without_parts(nodes: list[n.Node]) -> list[n.Node]:
    """The nodes without those that are part of another one of the same type; maybe not without all of them."""
    objects = [node for node in nodes if isinstance(node, n.ObjectNode)]
    drop: set[n.Node] = set()
    if 1 < len(objects) <= _MAX_COMPARED:
        names = list(dict.fromkeys(name for node in objects for name in node.properties))
        drop |= _demanding_more(objects, lambda node: _object_demands(node, names), _see_the_same_members)
    arrays = [node for node in nodes if isinstance(node, n.ArrayNode)]
    if 1 < len(arrays) <= _MAX_COMPARED:
        width = max(len(node.prefix) for node in arrays)
        counts = list(dict.fromkeys(each for node in arrays for each in node.contains))
        drop |= _demanding_more(arrays, lambda node: _array_demands(node, width, counts), _see_the_same_items)
    return [node for node in nodes if node not in drop] if drop else nodes


def _demanding_more(
    nodes: list[_Node], demands_of: Callable[[_Node], Iterable[object]], see_the_same: Callable[[_Node, _Node], bool]
) -> set[_Node]:
    """Those that demand all that another one does, and so are part of it."""
    # All demands of one node are bits of one integer, so that two nodes are compared by one operation.
    bits: dict[object, int] = {}
    masks: list[tuple[int, _Node]] = []
    for node in nodes:
        mask = 0
        for demand in demands_of(node):
            mask |= bits.setdefault(demand, 1 << len(bits))
        masks.append((mask, node))
    masks.sort(key=lambda one: one[0].bit_count())
    kept: list[tuple[int, _Node]] = []
    drop: set[_Node] = set()
    for mask, node in masks:
        outside = ~mask
        for other_mask, other in kept:
            if not other_mask & outside and see_the_same(node, other) and _sizes_include(node, other):
                drop.add(node)
                break
        else:
            kept.append((mask, node))
    return drop


def _object_demands(node: n.ObjectNode, names: list[str]) -> list[object]:
    demands: list[object] = [("required", name) for name in node.required]
    demands += node.additional
    demands += node.rules
    demands += [("some", rule) for rule in node.some]
    # Of names that it does not have it demands what it does of all others.
    properties, additional = node.properties, node.additional
    if node.rules:
        return demands + [(name, place) for name in names for place in member(node, name)]
    if not additional:
        return demands + [(name, place) for name, handle in properties.items() for place in handle]
    return demands + [(name, place) for name in names for place in properties.get(name, additional)]


def _array_demands(node: n.ArrayNode, width: int, counts: list[n.Contains]) -> Iterator[object]:
    """What is said of each item, behind the first ``width`` of all others, and of how many are as ``counts`` say."""
    for index in range(width if node.items else len(node.prefix)):
        yield from ((index, place) for place in element(node, index))
    yield from node.items
    yield from (word for word in ("unique", "repeated") if getattr(node, word) is not None)
    for demand in node.contains:
        # Whoever demands more of the same items demands this too.
        for each in counts:
            if (each.item, each.start) == (demand.item, demand.start):
                if 0 < each.low <= demand.low:
                    yield each.item, each.start, "low", each.low
                if each.high is not None and demand.high is not None and each.high >= demand.high:
                    yield each.item, each.start, "high", each.high


def _see_the_same_members(mine: n.ObjectNode, theirs: n.ObjectNode) -> bool:
    return mine.seen == theirs.seen


def _see_the_same_items(mine: n.ArrayNode, theirs: n.ArrayNode) -> bool:
    return mine.seen == theirs.seen and mine.seen_contains == theirs.seen_contains


def _sizes_include(mine: n.ArrayNode | n.ObjectNode, theirs: n.ArrayNode | n.ObjectNode) -> bool:
    """Whether the numbers of parts that ``mine`` allows are allowed by ``theirs`` too."""
    if theirs.low is not None and (mine.low is None or mine.low.value < theirs.low.value):
        return False
    return theirs.high is None or (mine.high is not None and mine.high.value <= theirs.high.value)
