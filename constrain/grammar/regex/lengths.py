"""Lengths of matches: the bounds that ``minLength`` and ``maxLength`` put on a pattern, written into it.

``[a-z][a-z0-9-]*`` of at most 63 characters is ``[a-z][a-z0-9-]{0,62}``.  An expression with its own counter is far
cheaper to follow than the intersection of one without and a counted run of any characters.
"""

from __future__ import annotations

from constrain.grammar.regex.nodes import NOTHING, Alt, Node, Repeat, Seq, alt, rep, seq


def with_length(node: Node, low: int, high: int | None) -> Node | None:
    """The matches of a plain node that are ``low`` to ``high`` code points long; None if that takes an intersection."""
    if (high is not None and node.low > high) or (node.high is not None and node.high < low):
        return NOTHING
    if node.low >= low and (high is None or (node.high is not None and node.high <= high)):
        return node
    if type(node) is Alt:
        parts = [with_length(item, low, high) for item in node.items]
        return None if None in parts else alt(part for part in parts if part is not None)
    if type(node) is Repeat:
        return _repeated(node, low, high)
    if type(node) is Seq:
        varying = [index for index, item in enumerate(node.items) if item.low != item.high]
        if len(varying) == 1:
            index = varying[0]
            fixed = sum(item.low for item in node.items if item.low == item.high)
            inner = with_length(node.items[index], max(0, low - fixed), None if high is None else high - fixed)
            return None if inner is None else seq((*node.items[:index], inner, *node.items[index + 1 :]))
    return None


def _repeated(node: Repeat, low: int, high: int | None) -> Node | None:
    size = node.item.low
    if size and size == node.item.high:
        least = max(node.least, -(-low // size))
        bounds = [bound for bound in (node.most, None if high is None else high // size) if bound is not None]
        most = min(bounds) if bounds else None
        return NOTHING if most is not None and least > most else rep(node.item, least, most, node.at)
    if node.least == 0 and node.most == 1:
        inner = with_length(node.item, low, high)
        return inner if inner is None or low else rep(inner, 0, 1, node.at)
    return None
