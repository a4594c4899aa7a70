"""Scalar nodes without some of their values, or with just some."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from constrain.errors import LimitError
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import Words, without
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.instances import Instance, decimal
from constrain.grammar.json_schema.text_dependent.known_scalars import moderate


def excluding(node: n.Node, values: Collection[Instance]) -> n.Node | None:
    """A scalar node without some values; None where a list of values is used up.  Other nodes may be empty too."""
    if not values:
        return node
    if isinstance(node, n.NullNode):
        return None
    if isinstance(node, n.BooleanNode):
        booleans = tuple(value for value in node.values if Instance("boolean", value) not in values)
        return replace(node, values=booleans) if booleans else None
    if isinstance(node, n.StringNode):
        words = frozenset(filter(is_text, (value.content for value in values)))
        if node.values is not None:
            left = tuple(value for value in node.values if value not in words)
            return replace(node, values=left) if left else None
        return replace(node, terms=(*node.terms, n.Term(without(Words(words)), node.pointer)))
    assert isinstance(node, n.NumberNode)
    if node.values is not None:
        known = {decimal(value.content) for value in values}
        kept = tuple(value for value in node.values if value not in known)
        return replace(node, values=kept) if kept else None
    numbers = [number for value in values if (number := moderate(value.content)) is not None]
    # What is too long or too large to be left out one by one is left out with all of its kind.
    is_moderate = node.is_moderate or len(numbers) < len(values)
    return replace(node, excluded=(*node.excluded, *sorted(numbers)), is_moderate=is_moderate)


def only(node: n.Node, values: Sequence[Instance]) -> n.Node:
    """A scalar node with just some of its values."""
    if isinstance(node, n.BooleanNode):
        return replace(node, values=tuple(value.content for value in values))
    if isinstance(node, n.StringNode):
        return n.StringNode(node.pointer, values=tuple(value.content for value in values))
    if isinstance(node, n.NumberNode):
        numbers = [number for value in values if (number := decimal(value.content)) is not None]
        if len(numbers) < len(values):
            raise LimitError("a number of more than 10,000 digits that has to come again", node.pointer)
        if len(numbers) == 1:
            return n.single_number(node, numbers[0])
        return n.NumberNode(node.pointer, node.form, values=tuple(numbers), has_fraction=node.has_fraction)
    return node
