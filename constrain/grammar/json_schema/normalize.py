"""From keywords to the normal form: which nodes a handle stands for.

Each schema is read once.  What stands beside each other in one schema object - the assertions per type, ``enum``,
``const``, ``$ref``, ``anyOf`` - is a conjunction, and a handle is one too: all of it is the intersection of lists of
nodes, made node by node.
"""

from __future__ import annotations

from constrain.errors import LimitError
from constrain.grammar.json_schema.document import Constant, Handle, Location
from constrain.grammar.json_schema.intersect import count_conflict, intersect_nodes, number_node
from constrain.grammar.json_schema.keywords import TYPES, Assertions, read
from constrain.grammar.json_schema.nodes import (
    ANY,
    ArrayNode,
    BooleanNode,
    Bound,
    Conflict,
    Node,
    Normal,
    NullNode,
    NumberNode,
    ObjectNode,
    StringNode,
)
from constrain.grammar.json_schema.numbers import NumberForm
from constrain.grammar.json_schema.values import value_nodes

# Each anyOf that stands beside another multiplies the nodes.
MAX_NODES = 10_000
"""How many alternatives one schema may have."""

MAX_CONJUNCTIONS = 20_000
"""How many different conjunctions of schemas may come up: recursion through them can reach every subset."""


class Normalizer:
    """Turns handles into normal form, each once."""

    def __init__(self) -> None:
        self._done: dict[Handle, Normal] = {}
        self._open: set[Location] = set()
        self._conjunctions = 0

    def normal(self, handle: Handle) -> Normal:
        """The normal form of a handle.

        Raises SchemaError for keywords that are wrong or not supported, and for references that lead in a circle.
        """
        known = self._done.get(handle)
        if known is not None:
            return known
        if len(handle) == 1:
            result = self._schema(handle[0])
        else:
            self._conjunctions += 1
            if self._conjunctions > MAX_CONJUNCTIONS:
                raise LimitError(f"at {handle[0].pointer}: more than {MAX_CONJUNCTIONS} combinations of schemas")
            result = ANY
            for location in handle:
                result = _intersect(result, self.normal(location.handle), location.pointer)
        self._done[handle] = result
        return result

    def _schema(self, location: Location) -> Normal:
        if location.schema is False:
            return Normal((), Conflict("the schema is false: nothing is valid", location.pointer))
        if isinstance(location.schema, Constant):
            return value_nodes((location.schema.value,), location)
        if location in self._open:
            location.fail("the schema leads back to itself by $ref and anyOf alone")
        self._open.add(location)
        assertions = read(location)
        result = ANY
        if assertions.const is not None:
            result = value_nodes(assertions.const, location, "const")
        if assertions.enum is not None:
            result = _intersect(result, value_nodes(assertions.enum, location, "enum"), location.pointer)
        base = _typed_nodes(assertions, location)
        if base is not None:
            result = _intersect(result, base, location.pointer)
        if assertions.ref is not None:
            result = _intersect(result, self.normal(assertions.ref), location.pointer)
        if assertions.any_of is not None:
            result = _intersect(result, self._any_of(assertions.any_of, location), location.pointer)
        self._open.remove(location)
        return result

    def _any_of(self, branches: tuple[Handle, ...], location: Location) -> Normal:
        nodes: dict[Node, None] = {}
        conflicts = []
        for branch in branches:
            normal = self.normal(branch)
            nodes.update(dict.fromkeys(normal.nodes))
            if normal.conflict is not None:
                conflicts.append(normal.conflict)
        if nodes:
            return Normal(tuple(nodes))
        reason = "; ".join(f"{conflict.reason} (at {conflict.pointer})" for conflict in conflicts[:3])
        return Normal((), Conflict(f"no branch of anyOf can be satisfied: {reason}", f"{location.pointer}/anyOf"))


def _intersect(left: Normal, right: Normal, pointer: str) -> Normal:
    if left is ANY:
        return right
    if right is ANY or not left.nodes:
        return left
    if not right.nodes:
        return right
    if len(left.nodes) * len(right.nodes) > MAX_NODES * 10:
        raise LimitError(f"at {pointer}: too many alternatives to combine ({len(left.nodes)} by {len(right.nodes)})")
    nodes: list[Node] = []
    conflicts: list[Conflict] = []
    for first in left.nodes:
        for second in right.nodes:
            # What two types have in common is nothing, and no news unless there is nothing else.
            if first.kind == second.kind:
                both = intersect_nodes(first, second)
                if isinstance(both, Conflict):
                    conflicts.append(both)
                else:
                    nodes.append(both)
    if len(nodes) > MAX_NODES:
        raise LimitError(f"at {pointer}: more than {MAX_NODES} alternatives")
    if nodes:
        return Normal(tuple(nodes))
    if not conflicts:
        kinds, others = (_kinds(normal) for normal in (left, right))
        places = f"(at {left.nodes[0].pointer}) contradicts {others} (at {right.nodes[0].pointer})"
        return Normal((), Conflict(f"{kinds} {places}", right.nodes[0].pointer))
    return Normal((), conflicts[0])


def _kinds(normal: Normal) -> str:
    return "type " + " or ".join(dict.fromkeys(node.kind for node in normal.nodes))


# -- the assertions about each type ------------------------------------------------------------


def _typed_nodes(assertions: Assertions, location: Location) -> Normal | None:
    """The nodes of all types that are allowed, each with what is asserted of it; None if nothing is."""
    # What a class defines as a default is no assertion: only what was read is in the instance.
    asserted = vars(assertions).keys()
    types = assertions.types
    if types is None:
        if asserted <= _COMBINATORS:
            return None
        types = TYPES
    pointer = location.pointer
    nodes: list[Node] = []
    conflict = None
    if "string" in types:
        conflict = count_conflict(assertions.min_length, assertions.max_length)
        if conflict is None:
            patterns = () if assertions.pattern is None else ((assertions.pattern, pointer + "/pattern"),)
            nodes.append(StringNode(pointer, assertions.min_length, assertions.max_length, patterns))
    if "number" in types or "integer" in types:
        number = _number(assertions, location, types)
        if isinstance(number, Conflict):
            conflict = number
        else:
            nodes.append(number)
    if "object" in types:
        nodes.append(ObjectNode(pointer, assertions.properties or {}, assertions.required or {}, assertions.additional))
    if "array" in types:
        array_conflict = count_conflict(assertions.min_items, assertions.max_items)
        if array_conflict is None:
            items = assertions.additional_items if assertions.items_is_array else assertions.items
            nodes.append(ArrayNode(pointer, assertions.prefix, items, assertions.min_items, assertions.max_items))
        else:
            conflict = array_conflict
    if "boolean" in types:
        nodes.append(BooleanNode(pointer))
    if "null" in types:
        nodes.append(NullNode(pointer))
    return Normal(tuple(nodes), None if nodes else conflict)


_COMBINATORS = frozenset(("const", "enum", "ref", "any_of"))


def _number(assertions: Assertions, location: Location, types: frozenset[str]) -> Node | Conflict:
    form = NumberForm.ANY if "number" in types else location.resource.dialect.integer
    low, high = assertions.low, assertions.high
    if low is None and high is None:
        return NumberNode(location.pointer, form)
    if low is not None and assertions.low_is_open:
        low = Bound(low.value, True, low.pointer)
    if high is not None and assertions.high_is_open:
        high = Bound(high.value, True, high.pointer)
    return number_node(location.pointer, form, low, high, None)
