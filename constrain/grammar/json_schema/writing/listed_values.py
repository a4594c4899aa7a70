"""Long lists of arrays and objects in ``enum``, as one regular language.

A list of a hundred thousand records as rules would have a rule for each, and all of them would be begun at the first
bracket.  As one tree of what is written, with the beginnings that records share spelled once, it costs what a
list of strings does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from constrain.errors import SchemaError
from constrain.grammar.json_schema.document.document import type_name
from constrain.grammar.json_schema.lexical.layout import Layout, named_keys
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.assertions import check_names
from constrain.grammar.json_schema.normal.values import number_as_written
from constrain.grammar.json_schema.writing.scalars import constant, scalar
from constrain.grammar.languages.prefix_tree import Sequences
from constrain.grammar.languages.regular import EMPTY, Regular
from constrain.limits import spend

MIN_LISTED = 16
"""Fewer arrays and objects are written as rules, which messages tell more about."""

# Values that are nested deeper are written as rules too, since reading them here takes Python's stack.
_MAX_DEPTH = 40

# So many keys are told apart as quickly as a whole; of more, the beginnings that they share are spelled once.
_FEW_KEYS = 256


def is_listed(node: n.Node) -> bool:
    """Whether a node is an array or object that stands in ``enum`` or ``const``, and can be written here."""
    return isinstance(node, (n.ArrayNode, n.ObjectNode)) and node.constant is not None and _is_flat(node.constant)


def _is_flat(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            one
            for inner in level
            for one in (inner.values() if isinstance(inner, dict) else inner)
            if isinstance(one, (list, tuple, dict))
        ]
        if not level:
            return True
    return False


def listed_language(
    nodes: Sequence[n.Node], layout: Layout, refuse: Callable[[str, str], None], *, is_root: bool = False
) -> Regular:
    """How the values of some nodes (:func:`is_listed`) are written, keys in the order of the schema.

    ``layout`` is that of what stands in them; at the root there is nothing in front of the first bracket.
    """
    texts = _Texts(refuse)
    found = []
    for node in nodes:
        assert isinstance(node, (n.ArrayNode, n.ObjectNode))
        text = texts.container(node.constant, layout, node.pointer, is_root)
        if text is not None:
            found.append(text)
    return texts.sequences.tree(found) if found else EMPTY


class _Texts:
    """What values look like, as texts of :class:`~constrain.grammar.languages.prefix_tree.Sequences`."""

    def __init__(self, refuse: Callable[[str, str], None]) -> None:
        self.sequences = Sequences()
        self._refuse = refuse
        self._scalars: dict[tuple[object, ...], str | None] = {}
        self._keys: dict[tuple[Layout, str, bool], str] = {}

    def container(self, value: Any, layout: Layout, pointer: str, is_root: bool) -> str | None:
        """An array or object with all that is in it; None if it holds what no text can."""
        spend(1 + len(value))
        is_object = isinstance(value, dict)
        empty = layout.empty_object if is_object else layout.empty_array
        if not value and empty is not None:
            return self.sequences.text(empty)
        if is_root:
            opening = layout.first_object if is_object else layout.first_array
        else:
            opening = layout.open_object if is_object else layout.open_array
        parts = [self.sequences.character(opening)]
        if is_object:
            check_names(value, pointer)
            for name, member in value.items():
                written = self._value(member, layout, pointer)
                if written is None or not is_text(name):
                    return None
                parts.append(self._key(layout, name, len(parts) == 1))
                parts.append(written)
        else:
            for item in value:
                written = self._value(item, layout, pointer)
                if written is None:
                    return None
                if len(parts) > 1:
                    parts.append(self.sequences.character(layout.comma))
                parts.append(written)
        parts.append(self.sequences.character(layout.close_object if is_object else layout.close_array))
        return "".join(parts)

    def _key(self, layout: Layout, name: str, is_first: bool) -> str:
        key = (layout, name, is_first)
        if key not in self._keys:
            language = named_keys(layout, name)[0 if is_first else 1]
            spell = self.sequences.character if len(self._keys) < _FEW_KEYS else self.sequences.text
            self._keys[key] = spell(language)
        return self._keys[key]

    def _value(self, value: Any, layout: Layout, pointer: str) -> str | None:
        if isinstance(value, (list, tuple, dict)):
            return None if layout.inner is None else self.container(value, layout.inner, pointer, False)
        # Decimals are equal if their values are, and may be written differently.
        key = (layout, type(value), str(value) if isinstance(value, Decimal) else value)
        if key not in self._scalars:
            core: Regular | n.Conflict | None
            if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
                # Nearly all scalars of long lists are numbers, each another one.
                number = number_as_written(value, pointer)
                core = constant(number, NumberForm.ANY, has_fraction=False, notation=layout.notation)
            else:
                node = _scalar_node(value, pointer)
                core = None if node is None else scalar(node, self._refuse, layout.notation)
            assert not isinstance(core, n.Conflict)
            self._scalars[key] = None if core is None else self.sequences.text(layout.value(core))
        return self._scalars[key]


def _scalar_node(value: Any, pointer: str) -> n.Node | None:
    if isinstance(value, str):
        return n.StringNode(pointer, values=(value,)) if is_text(value) else None
    if value is None:
        return n.NullNode(pointer)
    if isinstance(value, bool):
        return n.BooleanNode(pointer, (value,))
    raise SchemaError(f"a value must be JSON, not {type_name(value)}", pointer)
