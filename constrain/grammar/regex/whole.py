"""What a pattern asks of the whole text: the outermost anchors, and search as against full match."""

from __future__ import annotations

from constrain.grammar.regex import nodes as n


def whole_text(node: n.Node, anchored: bool) -> n.Node:
    """The tree of the whole texts: those that ``node`` matches or, not ``anchored``, in which it matches somewhere.

    Nearly every pattern has its anchors outermost, ``^...$``.  Taking them off here leaves such a
    pattern without assertions, and without anything around it.
    """
    groups: dict[tuple[bool, bool], list[n.Node]] = {}
    for part in node.items if type(node) is n.Alt else (node,):
        items = list(part.items) if type(part) is n.Seq else [part]
        left = right = anchored
        while items and type(items[0]) is n.Before and _is_text_edge(items[0]):
            left = True
            del items[0]
        while items and type(items[-1]) is n.After and _is_text_edge(items[-1]):
            right = True
            del items[-1]
        if not left:
            _relax(items, 0)
        if not right:
            _relax(items, -1)
        if not items and not (left and right):
            return n.ANYTHING
        groups.setdefault((left, right), []).append(n.seq(items))
    return n.alt(
        n.seq((*([] if left else [n.ANYTHING]), n.alt(parts), *([] if right else [n.ANYTHING])))
        for (left, right), parts in groups.items()
    )


def _is_text_edge(edge: n.Edge) -> bool:
    return edge.edge and not edge.points


def _relax(items: list[n.Node], end: int) -> None:
    """Drop what is pointless next to any text: ``[0-9]+`` is found where a digit is.  ``end`` is the index, 0 or -1."""
    while items and items[end].tier == n.PLAIN and items[end].nullable:
        del items[end]
    if items:
        last = items[end]
        if type(last) is n.Repeat and last.tier == n.PLAIN:
            items[end] = n.rep(last.item, last.least, last.least, last.at)
