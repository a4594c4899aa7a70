"""The complement of a node of the normal form, within its type."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from constrain.errors import LimitError
from constrain.grammar.json_schema.document.places import Handle, Never, negate
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.lexical.texts import (
    ALL_TEXTS,
    NO_TEXTS,
    Words,
    certainly_not,
    every,
    is_regular,
    without,
)
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.intersect import bound_by_rules

MAX_PREFIX = 300
"""How many items with schemas of their own an array may have that is excluded: each makes an alternative."""

Refuse = Callable[[str, str], None]
"""Takes a reason and a pointer for what cannot be enforced; raises SchemaError unless the caller is lenient."""


IsChoice = Callable[[Handle], bool]
"""Whether a schema allows but a few scalar values, as a property does that tells kinds of objects apart."""


def complement_node(node: n.Node, refuse: Refuse, is_choice: IsChoice) -> list[n.Node]:
    """The values of the node's type that it does not describe: those that violate one of its assertions."""
    if isinstance(node, n.StringNode):
        return _strings(node, refuse)
    if isinstance(node, n.ObjectNode):
        return _objects(node, is_choice)
    if isinstance(node, n.NumberNode):
        return _numbers(node)
    if isinstance(node, n.ArrayNode):
        return _arrays(node)
    if isinstance(node, n.BooleanNode):
        rest = tuple(value for value in (False, True) if value not in node.values)
        return [n.BooleanNode(node.pointer, rest)] if rest else []
    return []


# Up to so many assertions about a string are violated one at a time: the sets are simpler for the engine.
_MAX_SPLIT = 3


def _strings(node: n.StringNode, refuse: Refuse) -> list[n.Node]:
    pointer = node.pointer
    if node.values is not None:
        return [n.StringNode(pointer, terms=(n.Term(without(Words(frozenset(node.values))), pointer),))]
    out: list[n.Node] = []
    if len(node.terms) + (node.low is not None) + (node.high is not None) > _MAX_SPLIT:
        # Sets of strings have complements of their own, so one alternative would always do.
        for term in node.terms:
            _check_complement(term, refuse)
        if not is_regular(n.text_of(node)):
            return [n.StringNode(pointer)]
        return [n.StringNode(pointer, terms=(n.Term(certainly_not(n.text_of(node)), pointer),))]
    if node.low is not None and node.low.value > 0:
        out.append(n.StringNode(pointer, high=n.Count(node.low.value - 1, node.low.pointer)))
    if node.high is not None:
        out.append(n.StringNode(pointer, low=n.Count(node.high.value + 1, node.high.pointer)))
    for term in node.terms:
        _check_complement(term, refuse)
        text = certainly_not(term.text) if is_regular(term.text) else ALL_TEXTS
        if text == NO_TEXTS:
            continue
        if isinstance(text, Words):
            out.append(n.StringNode(pointer, values=tuple(sorted(text.values))))
        else:
            out.append(n.StringNode(pointer, terms=(n.Term(text, term.pointer),)))
    return out


def _check_complement(term: n.Term, refuse: Refuse) -> None:
    if not is_regular(term.text):
        refuse(f"the complement of {term.text} is not supported", term.pointer)


def _numbers(node: n.NumberNode) -> list[n.Node]:
    pointer = node.pointer
    out: list[n.Node] = []
    if node.values is not None:
        out.append(n.NumberNode(pointer, excluded=node.values))
    if node.low is not None:
        out.append(n.NumberNode(pointer, high=n.Bound(node.low.value, not node.low.is_open, node.low.pointer)))
    if node.high is not None:
        out.append(n.NumberNode(pointer, low=n.Bound(node.high.value, not node.high.is_open, node.high.pointer)))
    if node.form is NumberForm.INTEGRAL:
        out.append(n.NumberNode(pointer, not_divisors=(n.Divisor(Decimal(1), pointer),)))
    elif node.form is NumberForm.NO_FRACTION:
        out.append(n.NumberNode(pointer, has_fraction=True))
    if node.has_fraction:
        out.append(n.NumberNode(pointer, NumberForm.NO_FRACTION))
    if node.excluded:
        out.append(n.NumberNode(pointer, values=node.excluded))
    out += [n.NumberNode(pointer, not_divisors=(divisor,)) for divisor in node.divisors]
    out += [n.NumberNode(pointer, divisors=(divisor,)) for divisor in node.not_divisors]
    return out


def _arrays(node: n.ArrayNode) -> list[n.Node]:
    pointer = node.pointer
    out: list[n.Node] = []
    if node.low is not None and node.low.value > 0:
        out.append(n.ArrayNode(pointer, high=n.Count(node.low.value - 1, node.low.pointer)))
    if node.high is not None:
        out.append(n.ArrayNode(pointer, low=n.Count(node.high.value + 1, node.high.pointer)))
    if len(node.prefix) > MAX_PREFIX:
        raise LimitError(f"the complement of more than {MAX_PREFIX} items, each with a schema of its own", pointer)
    for index, handle in enumerate(node.prefix):
        if handle:
            # Below the least length, an array that is too short to have the item is wrong as well.
            there = None if node.low is not None and index < node.low.value else n.Count(index + 1, pointer)
            out.append(n.ArrayNode(pointer, (*[()] * index, negate(handle)), low=there))
    if node.items:
        exists = n.Contains(negate(node.items), len(node.prefix), 1, None, pointer)
        out.append(n.ArrayNode(pointer, contains=(exists,)))
    for each in node.contains:
        if each.low > 0:
            out.append(n.ArrayNode(pointer, contains=(each._replace(low=0, high=each.low - 1),)))
        if each.high is not None:
            out.append(n.ArrayNode(pointer, contains=(each._replace(low=each.high + 1, high=None),)))
    if node.unique is not None:
        out.append(n.ArrayNode(pointer, repeated=node.unique))
    if node.repeated is not None:
        out.append(n.ArrayNode(pointer, unique=node.repeated))
    return out


def _objects(node: n.ObjectNode, is_choice: IsChoice) -> list[n.Node]:
    pointer = node.pointer
    out: list[n.ObjectNode] = []
    kind = _kind(node, is_choice)
    for name, where in node.required.items():
        # Missing, or there with a wrong value: that is one alternative, a property that is optional.
        handle = node.properties.get(name)
        wrong = negate(handle) if handle else Never(where, "this schema excludes the property").handle
        out.append(n.ObjectNode(pointer, {name: wrong}, {}))
    for name, handle in node.properties.items():
        if handle and name not in node.required:
            out.append(n.ObjectNode(pointer, {name: negate(handle)}, {name: handle[0].pointer}))
    unnamed = without(Words(frozenset(node.properties)))
    if node.additional:
        other = negate(node.additional)
        if other or node.properties:
            out.append(n.ObjectNode(pointer, {}, {}, some=(n.KeyRule(unnamed, other),)))
        else:
            out.append(n.ObjectNode(pointer, {}, {}, low=n.Count(1, pointer)))
    for rule in node.rules:
        if rule.value and isinstance(rule.keys, Words) and len(rule.keys.values) == 1:
            # A pattern that matches just one name is a property.
            (name,) = rule.keys.values
            if name not in node.properties:
                out.append(n.ObjectNode(pointer, {name: negate(rule.value)}, {name: rule.value[0].pointer}))
        elif rule.value:
            demand = n.KeyRule(every(unnamed, rule.keys), negate(rule.value))
            out.append(n.ObjectNode(pointer, {}, {}, some=(demand,)))
    out += [n.ObjectNode(pointer, {}, {}, rules=(n.KeyRule(rule.keys, negate(rule.value)),)) for rule in node.some]
    if node.low is not None and node.low.value > 0:
        out.append(n.ObjectNode(pointer, {}, {}, high=n.Count(node.low.value - 1, node.low.pointer)))
    if node.high is not None:
        out.append(n.ObjectNode(pointer, {}, {}, low=n.Count(node.high.value + 1, node.high.pointer)))
    if kind is not None:
        # Objects of another kind are one alternative, so the rest need only be of this kind: they have nothing in
        # common with further kinds that are excluded as well.
        for one in out:
            if kind not in one.properties:
                # A property with a name is not bound by rules about keys any more.
                one.properties = {kind: bound_by_rules(node.properties[kind], one.rules, kind), **one.properties}
                if kind in node.required:
                    one.required = {kind: node.required[kind], **one.required}
    return list(out)


def _kind(node: n.ObjectNode, is_choice: IsChoice) -> str | None:
    """The property that tells which kind of object this is, if there is one."""
    if len(node.properties) < 2:
        return None
    for names in (node.required, node.properties):
        for name in names:
            handle = node.properties.get(name)
            if handle and is_choice(handle):
                return name
    return None
