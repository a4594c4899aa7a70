"""The keys that an object does not name, in classes, and how many there are of each.

A class may run out: ``^[ab]$`` has two keys, and no object has a key twice.
"""

from __future__ import annotations

from constrain.errors import LimitError
from constrain.grammar.json_schema.document.places import Handle, conjunction
from constrain.grammar.json_schema.lexical.strings import EVERY_WAY, is_text
from constrain.grammar.json_schema.lexical.texts import (
    Text,
    Words,
    every,
    is_surely_empty,
    some,
    spelled,
    without,
)
from constrain.grammar.json_schema.normal.count_texts import count_texts
from constrain.grammar.json_schema.normal.nodes import ObjectNode
from constrain.grammar.languages.endless import is_endless

MAX_CLASSES = 128
"""How many classes of keys the patterns of one object may tell apart."""

FEW_KEYS = 64
"""Of a class with so few keys each is a member of its own, where they may run out."""

KeyClass = tuple[Text, Handle, tuple[int, ...]]
"""Keys, the schema of their members, and the rules of ``some`` that speak of them."""


def key_classes(node: ObjectNode) -> list[KeyClass]:
    """The keys without a name in the schema, in classes that nothing said about them tells apart."""
    names = frozenset(filter(is_text, {**node.properties, **node.required}))
    classes: list[KeyClass] = [(without(Words(names)) if names else every(), node.additional, ())]

    def split(keys: Text, value: Handle, met: tuple[int, ...]) -> None:
        nonlocal classes
        parts = []
        for part, handle, meets in classes:
            inside = every(part, keys)
            if is_surely_empty(inside):
                parts.append((part, handle, meets))
                continue
            parts.append((inside, conjunction(handle, value), meets + met))
            outside = every(part, without(keys))
            if not is_surely_empty(outside):
                parts.append((outside, handle, meets))
        if len(parts) > MAX_CLASSES:
            raise LimitError(f"its patterns tell more than {MAX_CLASSES} classes of keys apart", node.pointer)
        classes = parts

    for rule in node.rules:
        split(rule.keys, rule.value, ())
    for index, rule in enumerate(node.some):
        split(rule.keys, (), (index,))
    merged: dict[tuple[Handle, tuple[int, ...]], list[Text]] = {}
    for keys, handle, meets in classes:
        merged.setdefault((handle, meets), []).append(keys)
    return [(some(*texts), handle, meets) for (handle, meets), texts in merged.items()]


def other_classes(node: ObjectNode) -> list[tuple[Text, Handle]]:
    """The same without the rules."""
    return [(keys, handle) for keys, handle, _ in key_classes(node)]


def is_inexhaustible(keys: Text) -> bool:
    """Whether every beginning of a key goes on to endlessly many; False also where no quick rule decides."""
    return is_endless(spelled(keys, EVERY_WAY), EVERY_WAY.body)


def count_keys(keys: Text, most: int) -> int:
    """How many keys there are, or ``most`` if there are more.  Raises LimitError if that is not clear."""
    return most if most > 0 and is_inexhaustible(keys) else count_texts(keys, most)
