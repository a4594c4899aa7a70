"""Back-references to groups of few texts, which are regular: ``(a|b)x\\1`` is ``axa|bxb``.

A reference is resolved where the sequence that it stands in ends.  Its group is an item of that sequence too, so it has
matched exactly once when the reference is reached.
"""

from __future__ import annotations

from itertools import product
from math import prod

from constrain.errors import GrammarError
from constrain.grammar.regex.nodes import PLAIN, Alt, Chars, Look, Node, Repeat, Seq, alt, seq
from constrain.limits import spend

MAX_TEXTS = 256
"""Texts of a group that is referred to, and their product over a pattern: a part is written as often."""

MAX_WRITTEN = 200_000
"""Nodes of what is written out for references, as many as a pattern may have characters."""


class Reference(Node):
    """What the item at ``group`` in the same sequence has matched, one of ``texts``; in no tree that is ready."""

    __slots__ = ("group", "texts")

    def __init__(self, group: int, texts: list[str]) -> None:
        self.group, self.texts = group, texts


class Capture:
    """A group that has closed: it is the item at ``place`` of a sequence, as long as no quantifier follows it."""

    __slots__ = ("items", "node", "place", "reference")

    def __init__(self, items: list[Node], node: Node) -> None:
        self.items, self.place, self.node = items, len(items), node
        # All references to the group are this one.
        self.reference: Reference | None = None


def resolved(items: list[Node]) -> Node:
    """A sequence without its references: the same one for each text of each group that is referred to.

    Raises GrammarError if that is too long.
    """
    groups = {item.group: item.texts for item in items if isinstance(item, Reference)}
    if not groups:
        return seq(items)
    # What stands before the first group and behind the last reference is written once.
    first = min(groups)
    end = max(index for index, item in enumerate(items) if isinstance(item, Reference)) + 1
    longest = {group: max(map(len, texts)) for group, texts in groups.items()}
    size = sum(
        longest[item.group] if isinstance(item, Reference) else longest.get(index) or _size(item)
        for index, item in enumerate(items[first:end], first)
    )
    size *= prod(map(len, groups.values()))
    if size > MAX_WRITTEN:
        raise GrammarError(
            f"the pattern has {size} parts when its back-references are written out; the limit is {MAX_WRITTEN}"
        )
    spend(size)
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


def _size(node: Node) -> int:
    """How many nodes a part has."""
    spend()
    if isinstance(node, Seq | Alt):
        return 1 + sum(map(_size, node.items))
    if isinstance(node, Repeat):
        return 1 + _size(node.item)
    return 1 + _size(node.body) if isinstance(node, Look) else 1


def texts_of(node: Node) -> list[str] | None:
    """All texts that a part matches, if they are few and nothing around it decides about them."""
    if node.tier != PLAIN or node.high is None or node.high > MAX_TEXTS:
        return None
    return _texts(node)


def _texts(node: Node) -> list[str] | None:
    # No part matches nothing at all, so none of a part with few texts has more.
    spend()
    if type(node) is Chars:
        if sum(last - first + 1 for first, last in node.points) > MAX_TEXTS:
            return None
        return [chr(point) for first, last in node.points for point in range(first, last + 1)]
    found: list[str] | None
    if type(node) is Alt:
        found = []
        for item in node.items:
            texts = _texts(item)
            found = None if texts is None else _few([*found, *texts])
            if found is None:
                return None
        return found
    found = [""]
    if type(node) is Seq:
        for item in node.items:
            texts = _texts(item)
            found = None if texts is None else _followed(found, texts)
            if found is None:
                return None
        return found
    if type(node) is Repeat and node.most is not None:
        texts = _texts(node.item)
        if texts is None:
            return None
        for count in range(node.most):
            longer = _followed(found, texts if count < node.least else ["", *texts])
            # Once more makes no difference, and so does any other time.
            if longer is None or longer == found:
                return longer
            found = longer
        return found
    return None


def _followed(texts: list[str], others: list[str]) -> list[str] | None:
    """Each of some texts with each of others behind it, if they are few."""
    spend(len(texts) * len(others))
    return _few([text + other for text in texts for other in others])


def _few(texts: list[str]) -> list[str] | None:
    distinct = list(dict.fromkeys(texts))
    return distinct if len(distinct) <= MAX_TEXTS else None


def _literal(text: str) -> Node:
    return seq(Chars(((ord(each), ord(each)),)) for each in text)
