"""Back-references to groups of few texts, which are regular: ``(a|b)x\\1`` is ``axa|bxb``.

A reference is resolved where the sequence that it stands in ends.  Its group is an item of that sequence too, so it has
matched exactly once when the reference is reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from math import prod

from constrain.grammar.regex.nodes import PLAIN, Alt, Chars, Node, Repeat, Seq, alt, seq
from constrain.limits import spend

MAX_TEXTS = 256
"""Texts of a group that is referred to, and their product over a pattern: a part is written as often."""


class Reference(Node):
    """What the item at ``group`` in the same sequence has matched, one of ``texts``; in no tree that is ready."""

    __slots__ = ("group", "texts")

    def __init__(self, group: int, texts: tuple[str, ...]) -> None:
        self.group, self.texts = group, texts
        self.tier = PLAIN
        self.low, self.high = min(map(len, texts), default=0), max(map(len, texts), default=0)
        self.nullable, self.reads = self.low == 0, False


def resolved(items: list[Node]) -> Node:
    """A sequence without its references: the same one for each text of each group that is referred to."""
    groups = {item.group: item.texts for item in items if isinstance(item, Reference)}
    if not groups:
        return seq(items)
    # What stands before the first group and behind the last reference is written once.
    first = min(groups)
    end = max(index for index, item in enumerate(items) if isinstance(item, Reference)) + 1
    spend((end - first) * prod(map(len, groups.values())))
    ways = []
    for texts in product(*groups.values()):
        written = {group: _literal(text) for group, text in zip(groups, texts, strict=True)}
        ways.append(
            seq(
                written[item.group] if isinstance(item, Reference) else written.get(index, item)
                for index, item in enumerate(items[first:end], first)
            )
        )
    return seq([*items[:first], alt(ways), *items[end:]])


def texts_of(node: Node) -> tuple[str, ...] | None:
    """All texts that a part matches, if they are few and nothing around it decides about them."""
    if node.tier != PLAIN or node.high is None or node.high > MAX_TEXTS:
        return None
    texts = _texts(node)
    found = None if texts is None else tuple(dict.fromkeys(islice(texts, MAX_TEXTS + 1)))
    return None if found is None or len(found) > MAX_TEXTS else found


def _texts(node: Node) -> Iterator[str] | None:
    if type(node) is Chars:
        return (chr(point) for first, last in node.points for point in range(first, last + 1))
    if type(node) is Alt:
        parts = [_texts(item) for item in node.items]
        return None if None in parts else (text for part in parts if part is not None for text in part)
    if type(node) is Seq:
        return _joined(list(node.items))
    if type(node) is Repeat and node.most is not None:
        counts = [_joined([node.item] * count) for count in range(node.least, node.most + 1)]
        return None if None in counts else (text for part in counts if part is not None for text in part)
    return None


def _joined(items: list[Node]) -> Iterator[str] | None:
    parts: list[list[str]] = []
    for item in items:
        texts = _texts(item)
        if texts is None:
            return None
        parts.append(list(islice(texts, MAX_TEXTS + 1)))
        if prod(map(len, parts)) > MAX_TEXTS:
            return None
    return map("".join, product(*parts))


def _literal(text: str) -> Node:
    return seq(Chars(((ord(each), ord(each)),)) for each in text)
