"""Evaluating an expression of Lark's notation from the leaves up, without recursion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from constrain.grammar.lark.source import Node, Source
from constrain.grammar.lark.tree import Token, Tree
from constrain.limits import spend

MAX_REPEAT = 1_000_000
"""The largest number in ``~n..m``: far above what a generation can reach."""


# What has tokens alone below it, and trees alone.
_OF_TOKENS = {"terminal", "nonterminal", "literal", "range", "special", "block", "reference"}
_OF_TREES = {"expansion", "expansions", "maybe", "conjunction", "negation"}


def fold(tree: Node, combine: Callable[[Node, list[Any]], Any]) -> Any:
    """``combine(node, values)`` for the whole tree, where ``values`` are those of its subtrees.

    Tokens are handed through as they are, and ``values`` is not to be changed.  An alias is not handed to ``combine``
    (what it names is), nor is the name of what is used with arguments or a number.
    """
    # First all trees, each before its parts and those from the right; backwards, each comes behind its parts.
    order: list[tuple[Node, list[Node | Token], int]] = []
    todo = [tree]
    while todo:
        node = todo.pop()
        kind = node.data
        parts = node.children
        if kind in _OF_TOKENS:
            order.append((node, parts, 0))
            continue
        if kind not in _OF_TREES:
            parts = _parts(node)
            inner = [part for part in parts if type(part) is Tree]
            order.append((node, parts, len(inner)))
            todo += inner
        else:
            order.append((node, parts, len(parts)))
            todo += parts  # type: ignore[arg-type]
    spend(2 * len(order))
    values: list[Any] = []
    for node, parts, count in reversed(order):
        if count == 0:
            values.append(combine(node, parts))
            continue
        # Tokens stand behind trees.
        arguments = values[-count:]
        del values[-count:]
        if len(parts) > count:
            arguments += parts[count:]
        values.append(arguments[0] if node.data == "alias" else combine(node, arguments))
    return values[0]


def _parts(node: Node) -> list[Node | Token]:
    if node.data == "alias":
        return node.children[:1]
    if node.data in ("template_usage", "parametric"):
        return node.children[1:]
    return node.children


def bounds(node: Node, source: Source) -> tuple[int, int | None]:
    """The lowest and highest count of an ``expr`` node; None for no highest.

    Raises
    ------
    GrammarError
        If the counts are negative, in the wrong order, or larger than :data:`MAX_REPEAT`.
    """
    operator = node.children[1]
    if isinstance(operator, Token) and operator.type == "COUNTS":
        return _counts(operator, source)
    if operator in ("?", "*", "+"):
        return (1 if operator == "+" else 0), (1 if operator == "?" else None)
    counts = [_count(token, str(token), source) for token in node.children[2:] if isinstance(token, Token)]
    low, high = counts[0], counts[-1]
    if low > high:
        assert isinstance(operator, Token)
        raise source.error(f"the counts {low}..{high} are in the wrong order", operator)
    return low, high


def _counts(token: Token, source: Source) -> tuple[int, int | None]:
    """The counts of ``{2}``, ``{2,}``, ``{,5}`` and ``{2,5}``."""
    low, comma, high = (part.strip() for part in str(token)[1:-1].partition(","))
    lowest = _count(token, low or "0", source)
    if not comma:
        return lowest, lowest
    highest = _count(token, high, source) if high else None
    if highest is not None and lowest > highest:
        raise source.error(f"the counts {{{low},{high}}} are in the wrong order", token)
    return lowest, highest


def _count(token: Token, text: str, source: Source) -> int:
    digits = text.lstrip("+-").lstrip("0") or "0"
    if text.startswith("-") and digits != "0":
        raise source.error(f"a negative count {text}", token)
    if len(digits) > len(str(MAX_REPEAT)) or int(digits) > MAX_REPEAT:
        shown = digits if len(digits) < 20 else f"{digits[:10]}..."
        raise source.error(f"the count {shown} is above the limit of {MAX_REPEAT}", token)
    return int(digits)
