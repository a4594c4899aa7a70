"""``unevaluatedProperties`` and ``unevaluatedItems``: what holds for members and items that nothing else looked at.

Nodes say what was looked at where they were made while tracking (see :class:`~.normalize.Normalizer`).
"""

from __future__ import annotations

from dataclasses import replace

from constrain.grammar.json_schema.document.places import Handle, conjunction, either
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import ALL_TEXTS, NO_TEXTS, contains, some, without
from constrain.grammar.json_schema.normal.assertions import Assertions
from constrain.grammar.json_schema.normal.intersect import element
from constrain.grammar.json_schema.normal.nodes import ArrayNode, KeyRule, Node, Normal, ObjectNode


def demand_unevaluated(result: Normal, assertions: Assertions, tracking: bool) -> Normal:
    """The normal form with what the two keywords demand; ``tracking`` is whether it still is to say what was seen."""
    nodes: list[Node] = []
    for node in result.nodes:
        if isinstance(node, ObjectNode):
            seen = node.seen
            if assertions.unevaluated_properties is not None:
                node = _with_members(node, assertions.unevaluated_properties)
                seen = (ALL_TEXTS,)
            node = replace(node, seen=seen if tracking else (), constant=None)
        elif isinstance(node, ArrayNode):
            items, few = node.seen, node.seen_contains
            if assertions.unevaluated_items is not None:
                node = _with_items(node, assertions.unevaluated_items)
                items = None
            items, few = (items, few) if tracking else (0, ())
            node = replace(node, seen=items, seen_contains=few, constant=None)
        nodes.append(node)
    return Normal(tuple(nodes), result.conflict)


def _with_members(node: ObjectNode, value: Handle) -> ObjectNode:
    seen = some(*node.seen)
    properties = {
        name: handle if is_text(name) and contains(seen, name) else conjunction(handle, value)
        for name, handle in node.properties.items()
    }
    unseen = without(seen)
    rules = (KeyRule(unseen, value),) if unseen != NO_TEXTS and value else ()
    return replace(node, properties=properties, rules=node.rules + rules)


def _with_items(node: ArrayNode, value: Handle) -> ArrayNode:
    if node.seen is None:
        return node
    value = either(value, *node.seen_contains)
    size = max(node.seen, len(node.prefix))
    prefix = tuple(
        element(node, index) if index < node.seen else conjunction(element(node, index), value) for index in range(size)
    )
    return replace(node, prefix=prefix, items=conjunction(node.items, value))
