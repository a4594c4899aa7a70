"""The assertions about each type, as nodes."""

from __future__ import annotations

from collections.abc import Callable

from constrain.errors import LimitError
from constrain.grammar.json_schema.document.document import Location
from constrain.grammar.json_schema.document.places import Handle, Never
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.lexical.texts import ALL_TEXTS, NO_TEXTS, Text, Words, is_regular, some, without
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.assertions import TYPES, Assertions
from constrain.grammar.json_schema.normal.intersect import bound_by_rules, count_conflict, settle_number, string_node

COMBINATORS = frozenset(
    (
        *("const", "enum", "ref", "dynamic_ref", "any_of", "all_of", "one_of", "excluded", "condition", "then"),
        *("otherwise", "dependencies", "nullable", "is_loose", "unevaluated_properties", "unevaluated_items"),
        *("min_contains", "max_contains"),
    )
)
"""The assertions that are not about values of one type."""

MAX_MATCHES = 50_000
"""How many names may be compared with patterns, each with each, in one schema."""

NamesOf = Callable[[Handle], Text]
"""The strings that are valid for a schema, as a set."""


def typed_nodes(assertions: Assertions, location: Location, tracking: bool, names_of: NamesOf) -> n.Normal | None:
    """The nodes of all types that are allowed, each with what is asserted of it; None if nothing is.

    ``tracking`` is whether the nodes shall say which members and items were evaluated.
    """
    # What a class defines as a default is no assertion: only what was read is in the instance.
    asserted = vars(assertions).keys()
    types = assertions.types
    if types is None:
        if asserted <= COMBINATORS:
            return None
        types = TYPES
    elif assertions.nullable:
        types |= {"null"}
    pointer = location.pointer
    made: list[n.Node | n.Conflict] = []
    if "string" in types:
        made.append(_string(assertions, pointer))
    if "number" in types or "integer" in types:
        made.append(_number(assertions, location, types))
    if "object" in types:
        made.append(_object(assertions, location, tracking, names_of))
    if "array" in types:
        made.append(_array(assertions, location, tracking))
    if "boolean" in types:
        made.append(n.BooleanNode(pointer))
    if "null" in types:
        made.append(n.NullNode(pointer))
    nodes = tuple([one for one in made if not isinstance(one, n.Conflict)])
    conflict = None if nodes else next((one for one in reversed(made) if isinstance(one, n.Conflict)), None)
    return n.Normal(nodes, conflict, None if assertions.types is None else f"{pointer}/type")


_TEXT_ASSERTIONS = frozenset(("min_length", "max_length", "terms", "words"))


def _string(assertions: Assertions, pointer: str) -> n.Node | n.Conflict:
    return string_node(pointer, assertions.min_length, assertions.max_length, assertions.terms, assertions.words)


def _number(assertions: Assertions, location: Location, types: frozenset[str]) -> n.Node | n.Conflict:
    form = NumberForm.ANY if "number" in types else location.resource.dialect.integer
    low, high = assertions.low, assertions.high
    if low is not None and assertions.low_is_open:
        low = n.Bound(low.value, True, low.pointer)
    if high is not None and assertions.high_is_open:
        high = n.Bound(high.value, True, high.pointer)
    return settle_number(n.NumberNode(location.pointer, form, low, high, divisors=assertions.divisors))


def _object(assertions: Assertions, location: Location, tracking: bool, names_of: NamesOf) -> n.Node | n.Conflict:
    pointer = location.pointer
    properties = assertions.properties or {}
    additional = assertions.additional or ()
    rules: tuple[n.KeyRule, ...] = ()
    if assertions.patterns:
        if len(properties) * len(assertions.patterns) > MAX_MATCHES:
            raise LimitError(f"more than {MAX_MATCHES} pairs of a property and a pattern", pointer)
        properties = {name: bound_by_rules(value, assertions.patterns, name) for name, value in properties.items()}
        rules = tuple(rule for rule in assertions.patterns if rule.value)
        if additional:
            rest = without(some(*(rule.keys for rule in assertions.patterns)))
            if rest != NO_TEXTS:
                rules += (n.KeyRule(rest, additional),)
            additional = ()
    if assertions.property_names:
        wrong = without(names_of(assertions.property_names))
        where = f"{pointer}/propertyNames"
        if not is_regular(wrong):
            location.resource.document.leave_out(f"names that are {without(wrong)} are not supported", where)
        elif wrong != NO_TEXTS:
            rule = n.KeyRule(wrong, Never(where, "propertyNames excludes this name").handle)
            properties = {name: bound_by_rules(value, (rule,), name) for name, value in properties.items()}
            rules += (rule,)
    node = n.ObjectNode(pointer, properties, assertions.required or {}, additional, rules)
    node.low, node.high = assertions.min_properties, assertions.max_properties
    if node.low is not None or node.high is not None:
        conflict = count_conflict(node.low, node.high)
        if conflict is not None:
            return conflict
        if node.high is not None and len(node.required) > node.high.value:
            where = next(iter(node.required.values()))
            return n.Conflict(f"{len(node.required)} names are required (at {where}): {node.high}", node.high.pointer)
    if tracking:
        if assertions.additional is not None:
            node.seen = (ALL_TEXTS,)
        else:
            node.seen = tuple(rule.keys for rule in assertions.patterns)
            if properties:
                node.seen += (Words(frozenset(properties)),)
    return node


def _array(assertions: Assertions, location: Location, tracking: bool) -> n.Node | n.Conflict:
    conflict = count_conflict(assertions.min_items, assertions.max_items)
    if conflict is not None:
        return conflict
    items = assertions.additional_items if assertions.items_is_array else assertions.items
    node = n.ArrayNode(location.pointer, assertions.prefix, items or (), assertions.min_items, assertions.max_items)
    node.unique = assertions.unique
    if assertions.contains is not None:
        low = 1 if assertions.min_contains is None else assertions.min_contains.value
        high = None if assertions.max_contains is None else assertions.max_contains.value
        if high is not None and low > high:
            assert assertions.max_contains is not None
            where = assertions.min_contains or f"minContains 1 (at {location.pointer}/contains)"
            return n.Conflict(f"{where} contradicts {assertions.max_contains}", assertions.max_contains.pointer)
        if low > 0 or high is not None:
            node.contains = (n.Contains(assertions.contains, 0, low, high, f"{location.pointer}/contains"),)
    if tracking:
        node.seen = None if items is not None else len(assertions.prefix)
        if assertions.contains is not None and location.resource.dialect.contains_evaluates:
            node.seen_contains = (assertions.contains,)
    return node
