"""The intersection of two nodes of the normal form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple, TypeVar

from constrain.grammar.json_schema.document.places import Handle, Never, conjunction, negate
from constrain.grammar.json_schema.lexical.multiples import is_multiple
from constrain.grammar.json_schema.lexical.numbers import NumberForm, is_integral
from constrain.grammar.json_schema.lexical.strings import is_text
from constrain.grammar.json_schema.lexical.texts import (
    contains,
    every,
    includes,
    is_of_format,
    is_surely_empty,
    members,
    without,
)
from constrain.grammar.json_schema.normal import nodes as n

_Value = TypeVar("_Value", str, Decimal)

Probe = Callable[[Handle], n.Conflict | None]
"""Says why nothing is valid for a handle; None if something is, or if that is not easily told."""


def intersect_nodes(left: n.Node, right: n.Node, probe: Probe) -> n.Node | n.Conflict:
    """What both describe, as one node; where that is certainly nothing, why."""
    if isinstance(left, n.StringNode) and isinstance(right, n.StringNode):
        return _strings(left, right)
    if isinstance(left, n.ObjectNode) and isinstance(right, n.ObjectNode):
        return _objects(left, right, probe)
    if isinstance(left, n.NumberNode) and isinstance(right, n.NumberNode):
        return _numbers(left, right)
    if isinstance(left, n.ArrayNode) and isinstance(right, n.ArrayNode):
        return _arrays(left, right, probe)
    if isinstance(left, n.BooleanNode) and isinstance(right, n.BooleanNode):
        return _booleans(left, right)
    if isinstance(left, n.NullNode) and isinstance(right, n.NullNode):
        return left
    return n.Conflict(f"a {left.kind} (at {left.pointer}) is not a {right.kind} (at {right.pointer})", right.pointer)


def are_apart(left: n.Node, right: n.Node, probe: Probe) -> bool:
    """Whether two nodes certainly have nothing in common, without the node of what they have."""
    if isinstance(left, n.ObjectNode) and isinstance(right, n.ObjectNode) and not left.some and not right.some:
        if (is_any(left) and right.constant is not None) or (is_any(right) and left.constant is not None):
            return False
        return isinstance(_frame(left, right, probe), n.Conflict)
    return isinstance(intersect_nodes(left, right, probe), n.Conflict)


def _booleans(left: n.BooleanNode, right: n.BooleanNode) -> n.Node | n.Conflict:
    values = tuple(value for value in left.values if value in right.values)
    return n.BooleanNode(left.pointer, values) if values else _nothing_in_common(left, right)


def _common_values(left: tuple[_Value, ...] | None, right: tuple[_Value, ...] | None) -> tuple[_Value, ...] | None:
    """What is in both lists of values, as the first has it; None, no list, is for any value."""
    if left is None or right is None:
        return right if left is None else left
    others = set(right)
    return tuple(value for value in left if value in others)


def _nothing_in_common(left: n.Node, right: n.Node) -> n.Conflict:
    return n.Conflict(f"the values at {left.pointer} and {right.pointer} have none in common", right.pointer)


# -- numbers -------------------------------------------------------------------------------------


def _numbers(left: n.NumberNode, right: n.NumberNode) -> n.Node | n.Conflict:
    values = _common_values(left.values, right.values)
    if left.values and right.values and not values:
        return _nothing_in_common(left, right)
    form = max(left.form, right.form)
    low, high = n.higher(left.low, right.low), n.lower(left.high, right.high)
    return settle_number(
        n.NumberNode(
            left.pointer,
            form,
            low,
            high,
            values,
            tuple(dict.fromkeys(left.excluded + right.excluded)),
            tuple(dict.fromkeys(left.divisors + right.divisors)),
            tuple(dict.fromkeys(left.not_divisors + right.not_divisors)),
            left.has_fraction or right.has_fraction,
        )
    )


def settle_number(node: n.NumberNode) -> n.Node | n.Conflict:
    """The node with those of its values that fit; a conflict where nothing does."""
    low, high = node.low, node.high
    if node.values is not None:
        excluded = frozenset(node.excluded)
        rest = replace(node, excluded=())
        kept = tuple(value for value in node.values if value not in excluded and number_fits(value, rest))
        if not kept:
            which = (
                f"the value {n.describe(str(node.values[0]))} is not"
                if len(node.values) == 1
                else ("none of the values is")
            )
            kind = "a number" if node.form is NumberForm.ANY else "an integer"
            limits = [str(bound) for bound in (low, high) if bound is not None]
            more = f" within {' and '.join(limits)}" if limits else ""
            parts = [f"a multiple of {each.value} (at {each.pointer})" for each in node.divisors]
            parts += [f"no multiple of {each.value} (at {each.pointer})" for each in node.not_divisors]
            parts += ["none of the excluded values"] if node.excluded else []
            return n.Conflict(f"{which} {kind}{more}{''.join(' and ' + part for part in parts)}", node.pointer)
        if node.has_fraction and node.form is NumberForm.NO_FRACTION:
            return _no_integer(node)
        return n.NumberNode(node.pointer, node.form, None, None, kept, has_fraction=node.has_fraction)
    if low is not None and high is not None:
        if low.value > high.value or (low.value == high.value and (low.is_open or high.is_open)):
            return n.Conflict(f"{low} contradicts {high}", low.pointer)
    if node.not_divisors:
        divisors = [(each.value, each.pointer) for each in node.divisors]
        if node.form is not NumberForm.ANY:
            divisors.append((Decimal(1), node.pointer))
        for each in node.not_divisors:
            for value, pointer in divisors:
                if is_multiple(value, each.value):
                    return n.Conflict(
                        f"a multiple of {value} (at {pointer}) is one of {each.value} (at {each.pointer})", pointer
                    )
    if node.has_fraction and node.form is NumberForm.NO_FRACTION:
        return _no_integer(node)
    return node


def _no_integer(node: n.NumberNode) -> n.Conflict:
    return n.Conflict("an integer is written without fraction", node.pointer)


def number_fits(value: Decimal, node: n.NumberNode) -> bool:
    """Whether a number is as a node without ``values`` says."""
    low, high = node.low, node.high
    if node.form is not NumberForm.ANY and not is_integral(value):
        return False
    if low is not None and (value < low.value or (low.is_open and value == low.value)):
        return False
    if high is not None and (value > high.value or (high.is_open and value == high.value)):
        return False
    if value in node.excluded or any(is_multiple(value, each.value) for each in node.not_divisors):
        return False
    return all(is_multiple(value, each.value) for each in node.divisors)


# -- strings -------------------------------------------------------------------------------------


def _terms(left: tuple[n.Term, ...], right: tuple[n.Term, ...]) -> tuple[n.Term, ...] | n.Conflict:
    """What is said of a string on both sides.  What a set says that includes another one counts there only."""
    known = {term.text: term for term in left}
    formats = [term for term in left if is_of_format(term.text)]
    new = []
    for term in right:
        other = known.get(without(term.text))
        if other is None and is_of_format(term.text):
            other = next((each for each in formats if includes(without(each.text), term.text)), None)
        if other is not None:
            return n.Conflict(f"{other} contradicts {term}", term.pointer)
        if term.text not in known and not any(includes(term.text, each.text) for each in formats):
            new.append(term)
    further = [term for term in new if is_of_format(term.text)]
    included = {each.text for each in formats for term in further if includes(each.text, term.text)}
    return (*[term for term in left if term.text not in included], *new)


def _strings(left: n.StringNode, right: n.StringNode) -> n.Node | n.Conflict:
    values = _common_values(left.values, right.values)
    if left.values is not None and right.values is not None and not values:
        return _nothing_in_common(left, right)
    terms = left.terms
    if right.terms and terms:
        found = _terms(terms, right.terms)
        if isinstance(found, n.Conflict):
            return found
        terms = found
    else:
        terms += right.terms
    return string_node(left.pointer, most(left.low, right.low), least(left.high, right.high), terms, values)


def string_node(
    pointer: str,
    low: n.Count | None,
    high: n.Count | None,
    terms: tuple[n.Term, ...],
    values: tuple[str, ...] | None,
) -> n.Node | n.Conflict:
    """A string node, with those of ``values`` that fit; a conflict where nothing does."""
    conflict = count_conflict(low, high)
    if conflict is not None:
        return conflict
    if values is not None:
        kept = values
        if low is not None:
            kept = tuple(value for value in kept if len(value) >= low.value)
            if not kept:
                return n.Conflict(f"every value is shorter than {low}", pointer)
        if high is not None:
            kept = tuple(value for value in kept if len(value) <= high.value)
            if not kept:
                return n.Conflict(f"no value is of the right length: {high}", pointer)
        for term in terms:
            kept = members(term.text, kept)
            if not kept:
                return n.Conflict(f"no value at {pointer} has {term}", pointer)
        return n.StringNode(pointer, values=kept)
    return n.StringNode(pointer, low, high, terms)


def most(left: n.Count | None, right: n.Count | None) -> n.Count | None:
    """The stricter of two lower limits."""
    if left is None or right is None:
        return left or right
    return right if right.value > left.value else left


def least(left: n.Count | None, right: n.Count | None) -> n.Count | None:
    """The stricter of two upper limits."""
    if left is None or right is None:
        return left or right
    return right if right.value < left.value else left


def count_conflict(low: n.Count | None, high: n.Count | None) -> n.Conflict | None:
    """The conflict between two limits on a length, if there is one."""
    if low is None or high is None or low.value <= high.value:
        return None
    return n.Conflict(f"{low} contradicts {high}", low.pointer)


# -- arrays and objects ---------------------------------------------------------------------------


def is_any(node: n.ArrayNode | n.ObjectNode) -> bool:
    """Whether a node has no more to say than its type, and saw nothing."""
    if node.low is not None or node.high is not None or node.constant is not None or node.seen:
        return False
    if isinstance(node, n.ArrayNode):
        demands = node.prefix or node.items or node.contains or node.unique or node.repeated or node.seen_contains
        return not demands and node.seen == 0
    return not (node.properties or node.required or node.additional or node.rules or node.some)


def is_whole_type(node: n.Node) -> bool:
    """Whether a node allows every value of its type, and saw nothing."""
    if isinstance(node, (n.ArrayNode, n.ObjectNode)):
        return is_any(node)
    if isinstance(node, n.StringNode):
        return node.low is None and node.high is None and not node.terms and node.values is None
    if isinstance(node, n.NumberNode):
        return vars(node) == vars(n.NumberNode(node.pointer))
    return not isinstance(node, n.BooleanNode) or len(node.values) == 2


def _arrays(left: n.ArrayNode, right: n.ArrayNode, probe: Probe) -> n.Node | n.Conflict:
    if is_any(left) and right.constant is not None:
        return right
    if is_any(right) and left.constant is not None:
        return left
    low, high = most(left.low, right.low), least(left.high, right.high)
    conflict = count_conflict(low, high)
    if conflict is not None:
        return conflict
    size = max(len(left.prefix), len(right.prefix))
    prefix = []
    for index in range(size):
        first, second = element(left, index), element(right, index)
        both = conjunction(first, second)
        if low is not None and index < low.value and both not in (first, second):
            empty = probe(both)
            if empty is not None:
                return n.Conflict(
                    f"item {index}, which must be there (at {low.pointer}), can never be valid: {empty.reason}",
                    empty.pointer,
                )
        prefix.append(both)
    items = conjunction(left.items, right.items)
    unique, repeated = left.unique or right.unique, left.repeated or right.repeated
    if unique is not None and repeated is not None:
        return n.Conflict(f"uniqueItems (at {unique}) contradicts that items are repeated (not {repeated})", unique)
    demands = _both_counts(left.contains, right.contains)
    for demand in demands:
        conflict = _demand_conflict(demand, high, prefix, items, probe) if demand.low > 0 else None
        if conflict is not None:
            return conflict
    return n.ArrayNode(
        left.pointer,
        tuple(prefix),
        items,
        low,
        high,
        demands,
        unique,
        repeated,
        None if left.seen is None or right.seen is None else max(left.seen, right.seen),
        left.seen_contains + right.seen_contains,
    )


def _both_counts(left: tuple[n.Contains, ...], right: tuple[n.Contains, ...]) -> tuple[n.Contains, ...]:
    """What is said on both sides about how many items are of a kind; of the same kind it is one range."""
    if not left or not right:
        return left or right
    found = {(each.item, each.start): each for each in left}
    for each in right:
        other = found.get((each.item, each.start))
        if other is not None:
            low, high = max(other.low, each.low), _least_of(other.high, each.high)
            each = n.Contains(each.item, each.start, low, high, (other if low == other.low else each).pointer)
        found[each.item, each.start] = each
    return tuple(found.values())


def _least_of(left: int | None, right: int | None) -> int | None:
    """The lower of two limits, of which None is none."""
    return right if left is None else left if right is None else min(left, right)


def _demand_conflict(
    demand: n.Contains, size: n.Count | None, prefix: list[Handle], items: Handle, probe: Probe
) -> n.Conflict | None:
    """Why there are not as many items as ``contains`` demands."""
    if demand.high is not None and demand.low > demand.high:
        return n.Conflict(f"{demand.low} items or more are demanded, and {demand.high} at most", demand.pointer)
    if size is not None and demand.start + demand.low > size.value:
        return n.Conflict(
            f"{demand.low} items are demanded (at {demand.pointer}), which contradicts {size}", size.pointer
        )
    conflict = None
    for handle in dict.fromkeys((*prefix[demand.start :], items)):
        conflict = probe(conjunction(handle, demand.item))
        if conflict is None:
            return None
    assert conflict is not None
    return n.Conflict(f"no item is what is demanded (at {demand.pointer}): {conflict.reason}", conflict.pointer)


def element(node: n.ArrayNode, index: int) -> Handle:
    """The schema of one item."""
    return node.prefix[index] if index < len(node.prefix) else node.items


class _Frame(NamedTuple):
    """What two objects have in common but for the members that need not be there."""

    low: n.Count | None
    high: n.Count | None
    required: dict[str, str]
    bound: dict[str, Handle]
    """The schemas of members that are required and have one of their own on either side."""


def _frame(left: n.ObjectNode, right: n.ObjectNode, probe: Probe) -> _Frame | n.Conflict:
    low, high = most(left.low, right.low), least(left.high, right.high)
    required = {**left.required, **right.required, **left.required} if right.required else left.required
    conflict = _size_conflict(low, high, required)
    if conflict is not None:
        return conflict
    bound = _required_members(left, right, required, probe)
    return bound if isinstance(bound, n.Conflict) else _Frame(low, high, required, bound)


def _size_conflict(low: n.Count | None, high: n.Count | None, required: dict[str, str]) -> n.Conflict | None:
    """Why no object has so many members."""
    conflict = count_conflict(low, high)
    if conflict is None and high is not None and len(required) > high.value:
        return n.Conflict(f"{len(required)} names are required, which contradicts {high}", high.pointer)
    return conflict


def _objects(left: n.ObjectNode, right: n.ObjectNode, probe: Probe) -> n.Node | n.Conflict:
    if is_any(left) and right.constant is not None:
        return right
    if is_any(right) and left.constant is not None:
        return left
    # First what may be a conflict: of two objects that are told apart by a member most of the rest is not looked at.
    frame = _frame(left, right, probe)
    if isinstance(frame, n.Conflict):
        return frame
    low, high, required, bound = frame
    properties = _properties(left, right, bound)
    additional = conjunction(left.additional, right.additional)
    rules = _both_rules(left.rules, right.rules)
    some = []
    some_rules = _both_rules(left.some, right.some)
    for rule in some_rules:
        demand = _demand(rule, properties, additional, rules, left.pointer, probe)
        if isinstance(demand, n.Conflict):
            return demand
        if isinstance(demand, n.KeyRule):
            some.append(demand)
        elif isinstance(demand, n.Count):
            low = most(low, demand)
        else:
            properties[demand] = conjunction(properties[demand], rule.value)
            required = {**required, demand: required.get(demand, left.pointer)}
    if some and high is not None and high.value == 1 and not properties and not required:
        # The only member meets all of them.
        for rule in some:
            never = Never(left.pointer, "the only member has to be another one").handle
            rules += (n.KeyRule(without(rule.keys), never),)
            if rule.value:
                rules += (n.KeyRule(rule.keys, rule.value),)
        some, low = [], most(low, n.Count(1, left.pointer))
    conflict = _size_conflict(low, high, required) if some_rules else None
    if conflict is not None:
        return conflict
    return n.ObjectNode(
        left.pointer,
        properties,
        required,
        additional,
        rules,
        tuple(some),
        low,
        high,
        left.seen + right.seen,
    )


def _both_rules(left: tuple[n.KeyRule, ...], right: tuple[n.KeyRule, ...]) -> tuple[n.KeyRule, ...]:
    return tuple(dict.fromkeys(left + right)) if left and right else left or right


def _required_members(
    left: n.ObjectNode, right: n.ObjectNode, required: dict[str, str], probe: Probe
) -> dict[str, Handle] | n.Conflict:
    """The schemas of the members that are required and have one of their own on either side; why one is never valid."""
    bound: dict[str, Handle] = {}
    for name, handle in left.properties.items():
        if name in required:
            other = member(right, name)
            both = bound[name] = conjunction(handle, other)
            # A side that requires a member as it is has been looked at.
            known = (both == handle and name in left.required) or (both == other and name in right.required)
            if both and not known:
                conflict = _required_conflict(name, both, required, probe)
                if conflict is not None:
                    return conflict
    for name, handle in right.properties.items():
        if name in required and name not in bound:
            both = bound[name] = conjunction(member(left, name), handle)
            if both and (both != handle or name not in right.required):
                conflict = _required_conflict(name, both, required, probe)
                if conflict is not None:
                    return conflict
    if left.rules or right.rules or left.additional or right.additional:
        # Patterns and what holds for all other members may bind what is required, without a property of that name.
        for name in required:
            if name not in bound:
                first, second = member(left, name), member(right, name)
                both = conjunction(first, second)
                is_known = (both == first and name in left.required) or (both == second and name in right.required)
                conflict = None if is_known else _required_conflict(name, both, required, probe)
                if conflict is not None:
                    return conflict
    return bound


def _properties(left: n.ObjectNode, right: n.ObjectNode, bound: dict[str, Handle]) -> dict[str, Handle]:
    """The schemas of the members that either side names; ``bound`` are those that are known already."""
    properties = {}
    for name in (*left.properties, *right.properties):
        if name not in properties:
            both = bound.get(name)
            properties[name] = conjunction(member(left, name), member(right, name)) if both is None else both
    return properties


def _demand(
    rule: n.KeyRule,
    properties: dict[str, Handle],
    additional: Handle,
    rules: tuple[n.KeyRule, ...],
    pointer: str,
    probe: Probe,
) -> n.KeyRule | n.Count | str | n.Conflict:
    """What a rule comes to that says that there is such a member: where few members can be, often less.

    The name of the only member that can be such a one; a least number of members, if all that there can be are such;
    why there is none; or the rule itself.
    """
    conflict = probe(conjunction(additional, rule.value))

    def is_implied(handle: Handle) -> bool:
        return not rule.value or probe(conjunction(handle, negate(rule.value))) is not None

    # Of the members without a name of their own: whether some can be such, and whether some can be others.
    others_meet, are_all = conflict is None, is_implied(additional)
    if others_meet:
        forbidden = [(each.keys, why) for each in rules if each.value and (why := probe(each.value)) is not None]
        if not forbidden:
            return rule
        conflict = forbidden[0][1]
        left = every(*(without(keys) for keys, _ in forbidden))
        others_meet = not is_surely_empty(every(left, rule.keys))
        fit = () if are_all else [each.keys for each in rules if is_implied(conjunction(additional, each.value))]
        wrong = every(left, *map(without, fit)) if fit else left
        are_all = (are_all or is_surely_empty(wrong)) and is_surely_empty(every(left, without(rule.keys)))
    meeting: list[str] = []
    for name, handle in properties.items():
        if (others_meet or len(meeting) > 1) and not are_all:
            return rule
        if not is_text(name):
            continue
        if contains(rule.keys, name) and probe(conjunction(handle, rule.value)) is None:
            meeting.append(name)
            are_all = are_all and is_implied(handle)
        elif are_all and probe(handle) is None:
            are_all = False
    if others_meet or len(meeting) > 1:
        return n.Count(1, pointer) if are_all else rule
    if meeting:
        return meeting[0]
    assert conflict is not None
    return n.Conflict(f"there is no member as is demanded: {conflict.reason}", conflict.pointer)


def _required_conflict(name: str, handle: Handle, required: dict[str, str], probe: Probe) -> n.Conflict | None:
    empty = probe(handle) if handle else None
    if empty is None:
        return None
    who = f"property {name!r}, which is required (at {required[name]}),"
    return n.Conflict(f"{who} can never be valid: {empty.reason}", empty.pointer)


def member(node: n.ObjectNode, name: str) -> Handle:
    """The schema of the member with this name."""
    handle = node.properties.get(name)
    return bound_by_rules(node.additional, node.rules, name) if handle is None else handle


def bound_by_rules(handle: Handle, rules: tuple[n.KeyRule, ...], name: str) -> Handle:
    """``handle`` and what the rules say of a member with this name."""
    if rules and is_text(name):
        for rule in rules:
            if contains(rule.keys, name):
                handle = conjunction(handle, rule.value)
    return handle
