"""The intersection of two nodes of the normal form."""

from __future__ import annotations

from decimal import Decimal

from constrain.grammar.json_schema.document import Handle
from constrain.grammar.json_schema.keywords import higher, lower
from constrain.grammar.json_schema.nodes import (
    ArrayNode,
    BooleanNode,
    Bound,
    Conflict,
    Count,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    StringNode,
    describe,
)
from constrain.grammar.json_schema.numbers import NumberForm, is_integral


def intersect_nodes(left: Node, right: Node) -> Node | Conflict:
    """What both describe, as one node; where that is certainly nothing, why."""
    if isinstance(left, NullNode) and isinstance(right, NullNode):
        return left
    if isinstance(left, BooleanNode) and isinstance(right, BooleanNode):
        return _booleans(left, right)
    if isinstance(left, NumberNode) and isinstance(right, NumberNode):
        return _numbers(left, right)
    if isinstance(left, StringNode) and isinstance(right, StringNode):
        return _strings(left, right)
    if isinstance(left, ArrayNode) and isinstance(right, ArrayNode):
        return _arrays(left, right)
    if isinstance(left, ObjectNode) and isinstance(right, ObjectNode):
        return _objects(left, right)
    return Conflict(f"a {left.kind} (at {left.pointer}) is not a {right.kind} (at {right.pointer})", right.pointer)


def conjunction(left: Handle, right: Handle) -> Handle:
    """Both handles in one; a schema counts once."""
    if not left or left == right:
        return right
    if not right:
        return left
    return tuple(dict.fromkeys(left + right))


def _booleans(left: BooleanNode, right: BooleanNode) -> Node | Conflict:
    values = tuple(value for value in left.values if value in right.values)
    if not values:
        return Conflict(f"the values at {left.pointer} and {right.pointer} have none in common", right.pointer)
    return BooleanNode(left.pointer, values)


# -- numbers -------------------------------------------------------------------------------------


def _numbers(left: NumberNode, right: NumberNode) -> Node | Conflict:
    values = left.values
    if values is None:
        values = right.values
    elif right.values is not None:
        values = tuple(value for value in values if value in right.values)
    if left.values and right.values and not values:
        return Conflict(f"the values at {left.pointer} and {right.pointer} have none in common", right.pointer)
    form = max(left.form, right.form)
    return number_node(left.pointer, form, higher(left.low, right.low), lower(left.high, right.high), values)


def number_node(
    pointer: str, form: NumberForm, low: Bound | None, high: Bound | None, values: tuple[Decimal, ...] | None
) -> Node | Conflict:
    """A number node, with those of ``values`` that fit; a conflict where nothing does."""
    if values is not None:
        kept = tuple(value for value in values if _fits(value, form, low, high))
        if not kept:
            which = f"the value {describe(str(values[0]))} is not" if len(values) == 1 else "none of the values is"
            kind = "a number" if form is NumberForm.ANY else "an integer"
            limits = " and ".join(str(bound) for bound in (low, high) if bound is not None)
            return Conflict(f"{which} {kind}{' within ' if limits else ''}{limits}", pointer)
        return NumberNode(pointer, form, None, None, kept)
    if low is not None and high is not None:
        if low.value > high.value or (low.value == high.value and (low.is_open or high.is_open)):
            return Conflict(f"{low} contradicts {high}", low.pointer)
    return NumberNode(pointer, form, low, high)


def _fits(value: Decimal, form: NumberForm, low: Bound | None, high: Bound | None) -> bool:
    if form is not NumberForm.ANY and not is_integral(value):
        return False
    if low is not None and (value < low.value or (low.is_open and value == low.value)):
        return False
    return high is None or not (value > high.value or (high.is_open and value == high.value))


# -- strings -------------------------------------------------------------------------------------


def _strings(left: StringNode, right: StringNode) -> Node | Conflict:
    values = left.values
    if values is None:
        values = right.values
    elif right.values is not None:
        others = set(right.values)
        values = tuple(value for value in values if value in others)
        if not values:
            return Conflict(f"the values at {left.pointer} and {right.pointer} have none in common", right.pointer)
    patterns = tuple(dict.fromkeys(left.patterns + right.patterns))
    return string_node(left.pointer, most(left.low, right.low), least(left.high, right.high), patterns, values)


def string_node(
    pointer: str,
    low: Count | None,
    high: Count | None,
    patterns: tuple[tuple[str, str], ...],
    values: tuple[str, ...] | None,
) -> Node | Conflict:
    """A string node, with those of ``values`` that have the right length; a conflict where nothing fits."""
    conflict = count_conflict(low, high)
    if conflict is not None:
        return conflict
    if values is not None:
        kept = values
        if low is not None:
            kept = tuple(value for value in kept if len(value) >= low.value)
            if not kept:
                return Conflict(f"every value is shorter than {low}", pointer)
        if high is not None:
            kept = tuple(value for value in kept if len(value) <= high.value)
            if not kept:
                return Conflict(f"no value is of the right length: {high}", pointer)
        return StringNode(pointer, None, None, patterns, kept)
    return StringNode(pointer, low, high, patterns)


def most(left: Count | None, right: Count | None) -> Count | None:
    """The stricter of two lower limits."""
    if left is None or right is None:
        return left or right
    return right if right.value > left.value else left


def least(left: Count | None, right: Count | None) -> Count | None:
    """The stricter of two upper limits."""
    if left is None or right is None:
        return left or right
    return right if right.value < left.value else left


def count_conflict(low: Count | None, high: Count | None) -> Conflict | None:
    """The conflict between two limits on a length, if there is one."""
    if low is None or high is None or low.value <= high.value:
        return None
    return Conflict(f"{low} contradicts {high}", low.pointer)


# -- arrays and objects ---------------------------------------------------------------------------


def _arrays(left: ArrayNode, right: ArrayNode) -> Node | Conflict:
    low, high = most(left.low, right.low), least(left.high, right.high)
    conflict = count_conflict(low, high)
    if conflict is not None:
        return conflict
    size = max(len(left.prefix), len(right.prefix))
    prefix = tuple(conjunction(_element(left, index), _element(right, index)) for index in range(size))
    return ArrayNode(left.pointer, prefix, conjunction(left.items, right.items), low, high)


def _element(node: ArrayNode, index: int) -> Handle:
    return node.prefix[index] if index < len(node.prefix) else node.items


def _objects(left: ObjectNode, right: ObjectNode) -> Node | Conflict:
    properties = {
        name: conjunction(handle, right.properties.get(name, right.additional))
        for name, handle in left.properties.items()
    }
    for name, handle in right.properties.items():
        if name not in properties:
            properties[name] = conjunction(left.additional, handle)
    required = right.required | left.required
    return ObjectNode(left.pointer, properties, required, conjunction(left.additional, right.additional))
