"""Whether a schema has a value, and whether it has so many that a text never runs out of them."""

from __future__ import annotations

from constrain.grammar.ir import NEVER
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import Words, contains, every, without
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.few_values import FewValues, members_of
from constrain.grammar.json_schema.normal.instances import Instance, decimal
from constrain.grammar.json_schema.normal.intersect import element, number_fits
from constrain.grammar.json_schema.normal.key_classes import other_classes
from constrain.grammar.json_schema.writing.context import Written

ROOM = 8
"""So many characters of any kind are more strings than a text can hold: 95 of ASCII are the fewest there are."""


class Membership:
    """For one compiled grammar."""

    def __init__(self, written: Written, few: FewValues) -> None:
        self._written = written
        self._few = few

    def allows(self, node: n.Node, value: Instance) -> bool:
        """Whether a value is one of a node, and can be written again: numbers beyond 1e10000 are not."""
        if node.kind != value.kind:
            return False
        content = value.content
        if isinstance(node, n.NullNode):
            return True
        if isinstance(node, n.BooleanNode):
            return content in node.values
        if isinstance(node, n.StringNode):
            return is_text(content) and contains(n.text_of(node), content)
        if isinstance(node, n.NumberNode):
            number = decimal(content)
            if number is None:
                return False
            return number in node.values if node.values is not None else number_fits(number, node)
        if isinstance(node, n.ArrayNode):
            if not n.has_size_of(node, len(content)):
                return False
            if node.unique is not None and len(set(content)) < len(content):
                return False
            return all(self.has(element(node, index), item) for index, item in enumerate(content))
        assert isinstance(node, n.ObjectNode)
        members = dict(content)
        if not n.has_size_of(node, len(members)) or not members.keys() >= node.required.keys():
            return False
        handles = dict(members_of(node))
        classes = other_classes(node)
        for name, member in members.items():
            handle = handles.get(name)
            if handle is None:
                handle = next((handle for keys, handle in classes if contains(keys, name)), None)
            if handle is None or not self.has(handle, member):
                return False
        return True

    def is_roomy(self, node: n.Node, longest: int = NEVER) -> bool:
        """Whether every beginning of a value, of ``longest`` bytes at most, is that of more than a text can hold.

        False also where no quick rule decides.  It is so with strings of any kind and length, with objects that take
        further keys, and arrays further items.
        """
        if isinstance(node, n.StringNode):
            is_long = node.high is None or node.high.value >= longest + ROOM
            return node.values is None and not node.terms and is_long
        if isinstance(node, n.ArrayNode):
            return node.high is None and node.unique is None and bool(self._few.of(node.items, 1))
        if isinstance(node, n.ObjectNode):
            names = frozenset(filter(is_text, (name for name, _ in members_of(node))))
            free = without(Words(names)) if names else every()
            return node.high is None and any(
                keys == free and self._few.of(handle, 1) for keys, handle in other_classes(node)
            )
        return False

    def has(self, handle: Handle, value: Instance) -> bool:
        """Whether a value is one of a schema, and can be written again."""
        return any(self.allows(node, value) for node in self._written.normal(handle).nodes)
