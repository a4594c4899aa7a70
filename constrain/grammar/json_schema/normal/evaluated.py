"""``unevaluatedProperties`` and ``unevaluatedItems``: what holds for members and items that nothing else looked at.

Nodes say what was looked at where they were made while tracking (see :class:`~.normalize.Normalizer`).
"""

from __future__ import annotations

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
            node = _copy_object(node)
            node.seen = seen if tracking else ()
        elif isinstance(node, ArrayNode):
            items, few = node.seen, node.seen_contains
            if assertions.unevaluated_items is not None:
                node = _with_items(node, assertions.unevaluated_items)
                items = None
            node = _copy_array(node)
            node.seen, node.seen_contains = (items, few) if tracking else (0, ())
        nodes.append(node)
    return Normal(tuple(nodes), result.conflict)


def _copy_object(node: ObjectNode) -> ObjectNode:
    members = (node.properties, node.required, node.additional, node.rules, node.some)
    return ObjectNode(node.pointer, *members, node.low, node.high)


def _copy_array(node: ArrayNode) -> ArrayNode:
    counts = (node.low, node.high, node.contains, node.unique, node.repeated)
    return ArrayNode(node.pointer, node.prefix, node.items, *counts)


def _with_members(node: ObjectNode, value: Handle) -> ObjectNode:
    seen = some(*node.seen)
    node = _copy_object(node)
    node.properties = {
        name: handle if is_text(name) and contains(seen, name) else conjunction(handle, value)
        for name, handle in node.properties.items()
    }
    unseen = without(seen)
    if unseen != NO_TEXTS and value:
        node.rules += (KeyRule(unseen, value),)
    return node


def _with_items(node: ArrayNode, value: Handle) -> ArrayNode:
    if node.seen is None:
        return node
    value = either(value, *node.seen_contains)
    size = max(node.seen, len(node.prefix))
    prefix = tuple(
        element(node, index) if index < node.seen else conjunction(element(node, index), value) for index in range(size)
    )
    node = _copy_array(node)
    node.prefix, node.items = prefix, conjunction(node.items, value)
    return node
