"""What a pattern asks of the whole text: the outermost anchors, and search as against full match."""

from __future__ import annotations

from constrain.grammar.regex.nodes import (
    ANYTHING,
    PLAIN,
    After,
    Alt,
    Before,
    Edge,
    Node,
    Repeat,
    Seq,
    alt,
    rep,
    seq,
)


def whole_text(node: Node, anchored: bool) -> Node:
    """The tree of the whole texts: those that ``node`` matches or, not ``anchored``, in which it matches somewhere.

    Nearly every pattern has its anchors outermost, ``^...$``.  Taking them off here leaves such a
    pattern without assertions, and without anything around it.
    """
    groups: dict[tuple[bool, bool], list[Node]] = {}
    for part in node.items if type(node) is Alt else (node,):
        items = list(part.items) if type(part) is Seq else [part]
        left = right = anchored
        while items and type(items[0]) is Before and _is_text_edge(items[0]):
            left = True
            del items[0]
        while items and type(items[-1]) is After and _is_text_edge(items[-1]):
            right = True
            del items[-1]
        if not left:
            _relax(items, 0)
        if not right:
            _relax(items, -1)
        if not items and not (left and right):
            return ANYTHING
        groups.setdefault((left, right), []).append(seq(items))
    return alt(
        seq((*([] if left else [ANYTHING]), alt(parts), *([] if right else [ANYTHING])))
        for (left, right), parts in groups.items()
    )


def _is_text_edge(edge: Edge) -> bool:
    return edge.edge and not edge.points


def _relax(items: list[Node], end: int) -> None:
    """Drop what is pointless next to any text: ``[0-9]+`` is found where a digit is.  ``end`` is the index, 0 or -1."""
    while items and items[end].tier == PLAIN and items[end].nullable:
        del items[end]
    if items:
        last = items[end]
        if type(last) is Repeat and last.tier == PLAIN:
            items[end] = rep(last.item, last.least, last.least, last.at)
