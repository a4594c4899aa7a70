"""Intersection, union and complement of schemas in normal form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cache, partial

from constrain.errors import LimitError
from constrain.grammar.json_schema.document.document import shorten
from constrain.grammar.json_schema.document.places import Handle
from constrain.grammar.json_schema.lexical.texts import ALL_TEXTS, some
from constrain.grammar.json_schema.normal import nodes as n
from constrain.grammar.json_schema.normal.absorption import without_parts
from constrain.grammar.json_schema.normal.complement import complement_node
from constrain.grammar.json_schema.normal.intersect import are_apart, intersect_nodes, is_any
from constrain.limits import spend

# Each anyOf that stands beside another multiplies the nodes.
MAX_NODES = 10_000
"""How many alternatives one schema may have."""

Nodes = dict[str, list[n.Node]]
"""Nodes by their type."""


class TooManyAlternatives(LimitError):
    """What stands beside each other in a schema has too many alternatives to combine."""


class Budget(ABC):
    """What the algebra may cost, and whom it asks.

    Whoever uses the algebra is one.  An object beside that would hold it, and be held by it: garbage to look for.

    Attributes
    ----------
    max_work : int
        How many pairs of alternatives may be combined.
    way_out : str
        What a caller asks for who takes less, for messages.
    """

    def __init__(self, max_work: int, way_out: str) -> None:
        self.max_work = max_work
        self.way_out = way_out
        self._work = 0
        # What may be spent for now.
        self._limit = max_work

    @abstractmethod
    def refuse(self, reason: str, pointer: str) -> None:
        """Raise SchemaError for what cannot be enforced, or take note of it."""

    @abstractmethod
    def why_nothing(self, handle: Handle) -> n.Conflict | None:
        """The conflict of a handle that nothing satisfies; None also if that is not clear yet."""

    @abstractmethod
    def is_choice(self, handle: Handle) -> bool:
        """Whether a handle allows but a few scalar values; False also if that is not clear yet."""

    def spend(self, work: int, pointer: str) -> None:
        """Take note of work.  Raises LimitError if it was too much."""
        spend(work)
        self._work += work
        if self._work > self._limit:
            reason = f"combining the alternatives of this schema takes more than {self.max_work} steps (max_work)"
            raise self.too_many(reason, pointer)

    def too_many(self, reason: str, pointer: str) -> TooManyAlternatives:
        """The error for too many alternatives, with what to do about it."""
        return TooManyAlternatives(f"{reason}; {self.way_out} leaves some of them out, with a warning", pointer)


def intersect(left: n.Normal, right: n.Normal, pointer: str, budget: Budget) -> n.Normal:
    """What both allow."""
    if left is n.ANY:
        return right
    if right is n.ANY or not left.nodes:
        return left
    if not right.nodes:
        return right
    if (
        min(len(left.nodes), len(right.nodes)) > len(n.ANY.nodes)
        and len(left.nodes) * len(right.nodes) > MAX_NODES * 10
    ):
        raise budget.too_many(f"too many alternatives to combine ({len(left.nodes)} by {len(right.nodes)})", pointer)
    if len(left.nodes) > 1 and len(right.nodes) > 1:
        left, right = _with_fewer_strings(left, right)
    nodes: list[n.Node] = []
    conflicts: list[n.Conflict] = []
    for first in left.nodes:
        for second in right.nodes:
            # What two types have in common is nothing, and no news unless there is nothing else.
            if first.kind == second.kind:
                budget.spend(_cost(first, second), pointer)
                both = intersect_nodes(first, second, budget.why_nothing)
                if isinstance(both, n.Conflict):
                    conflicts.append(both)
                else:
                    nodes.append(both)
    if nodes:
        return n.Normal(distinct(nodes, pointer))
    if not conflicts:
        where = right.typed_by or right.nodes[0].pointer
        first_kinds = f"{_kinds(left)} (at {left.typed_by or left.nodes[0].pointer})"
        return n.Normal((), n.Conflict(f"{first_kinds} contradicts {_kinds(right)} (at {where})", where))
    return n.Normal((), conflicts[0])


def _cost(left: n.Node, right: n.Node) -> int:
    """How much work a pair of nodes is."""
    if getattr(left, "constant", None) is not None or getattr(right, "constant", None) is not None:
        # Values of a list are many, but each is either one of a type or is not.
        for node in (left, right):
            if isinstance(node, (n.ArrayNode, n.ObjectNode)) and is_any(node):
                return 0
    if isinstance(left, n.ObjectNode) and isinstance(right, n.ObjectNode):
        # What is required is looked for among the rules.
        names, rules = len(left.required) + len(right.required), len(left.rules) + len(right.rules)
        return 1 + (len(left.properties) + len(right.properties)) // 4 + names * rules // 16
    return 1


def merge(branches: Iterable[n.Normal], keyword: str, pointer: str) -> n.Normal:
    """What any of the branches allows."""
    nodes: dict[n.Node, None] = {}
    conflicts = []
    for normal in branches:
        nodes.update(dict.fromkeys(normal.nodes))
        if normal.conflict is not None:
            conflicts.append(normal.conflict)
    if nodes:
        return n.Normal(distinct(_fewer_strings(list(nodes)), pointer))
    # Each may be put together of several in turn.
    reasons = [(shorten(conflict.reason), conflict.pointer) for conflict in conflicts[:3]]
    reason = "; ".join(f"{why} (at {where})" for why, where in reasons)
    return n.Normal((), n.Conflict(f"no branch of {keyword} can be satisfied: {reason}", f"{pointer}/{keyword}"))


# So many alternatives for strings are written as they are; more become one set.
_MAX_STRINGS = 6


def _with_fewer_strings(left: n.Normal, right: n.Normal) -> tuple[n.Normal, n.Normal]:
    """The same two schemas, with one node for strings where there would be many in their intersection."""
    counts = [sum(isinstance(node, n.StringNode) for node in normal.nodes) for normal in (left, right)]
    if min(counts) < 2 or counts[0] * counts[1] <= _MAX_STRINGS:
        return left, right
    return n.Normal(tuple(_fewer_strings(list(left.nodes), 1))), n.Normal(tuple(_fewer_strings(list(right.nodes), 1)))


def _fewer_strings(nodes: list[n.Node], limit: int = _MAX_STRINGS) -> list[n.Node]:
    """The same with all strings that are listed in one node, and with one node for all others if there are many."""
    listed = [node for node in nodes if isinstance(node, n.StringNode) and node.values is not None]
    if len(listed) > 1:
        values = dict.fromkeys(value for node in listed for value in node.values or ())
        whole: n.StringNode | None = n.StringNode(listed[0].pointer, values=tuple(values))
        rest: list[n.Node] = []
        for node in nodes:
            if not isinstance(node, n.StringNode) or node.values is None:
                rest.append(node)
            elif whole is not None:
                rest.append(whole)
                whole = None
        nodes = rest
    others = [node for node in nodes if isinstance(node, n.StringNode) and node.values is None]
    if len(others) > limit:
        text = some(*map(n.text_of, others))
        terms = () if text == ALL_TEXTS else (n.Term(text, others[0].pointer),)
        union = n.StringNode(others[0].pointer, terms=terms)
        nodes = [union, *(node for node in nodes if not isinstance(node, n.StringNode) or node.values is not None)]
    return nodes


def by_kind(normal: n.Normal) -> Nodes:
    """The nodes of each type."""
    kinds: Nodes = {}
    for node in normal.nodes:
        kinds.setdefault(node.kind, []).append(node)
    return kinds


def listed_values(normal: n.Normal, choice: Callable[[n.ObjectNode], n.Normal | None]) -> frozenset[object] | None:
    """The values of a schema that lists them, as keys; None if it does not.

    Schemas without a common key have no value in common.  ``choice`` gives the scalars that one property may be, the
    same property for every object: the keys of objects are those.
    """
    keys: list[object] = []
    for node in normal.nodes:
        if isinstance(node, n.NullNode):
            keys.append(None)
        elif isinstance(node, n.ObjectNode):
            chosen = choice(node)
            inner = None if chosen is None else listed_values(chosen, choice)
            if inner is None:
                return None
            keys += [("object", key) for key in inner]
        elif isinstance(node, (n.StringNode, n.NumberNode, n.BooleanNode)) and node.values is not None:
            keys += [(node.kind, value) for value in node.values]
        else:
            return None
    return frozenset(keys)


def subtract(
    left: n.Normal, right: n.Normal, outside: Callable[[], n.Normal], pointer: str, excluded: str, budget: Budget
) -> n.Normal:
    """What ``left`` allows and ``right`` does not; ``outside`` makes the complement of ``right``, if it is needed.

    ``pointer`` is the place of the subtraction, ``excluded`` that of what is taken away.
    """
    kinds = by_kind(right)
    untouched: list[n.Node] = []
    touched: list[n.Node] = []
    for node in left.nodes:
        others = kinds.get(node.kind, ())
        budget.spend(len(others), pointer)
        if all(are_apart(node, other, budget.why_nothing) for other in others):
            untouched.append(node)
        else:
            touched.append(node)
    if not touched:
        return left
    allowed = outside()
    rest = intersect(n.Normal(tuple(touched)), allowed, pointer, budget)
    nodes = untouched + list(rest.nodes)
    if nodes:
        return n.Normal(distinct(nodes, pointer))
    first = touched[0]
    if rest.conflict is not None and any(node.kind == first.kind for node in allowed.nodes):
        return rest
    return n.Normal((), all_excluded(left, first, excluded))


def all_excluded(normal: n.Normal, node: n.Node, excluded: str) -> n.Conflict:
    """Why nothing is left of a schema, such as this node of it: what the pointer ``excluded`` names took it away."""
    article = "an" if node.kind in ("object", "array") else "a"
    what = f"{article} {node.kind} (at {node.pointer})" if len(normal.nodes) < len(n.ANY.nodes) else "every value"
    return n.Conflict(f"{what} is excluded (by {excluded})", excluded)


def complement(normal: n.Normal, pointer: str, budget: Budget) -> n.Normal:
    """What a schema does not allow: the complements of its alternatives, intersected type by type."""
    kinds = by_kind(normal)
    out: list[n.Node] = []
    for whole in n.ANY.nodes:
        rest = [whole]
        for other in kinds.get(whole.kind, ()):
            parts = cache(partial(complement_node, other, budget.refuse, budget.is_choice))
            rest = [part for one in rest for part in _subtract_node(one, other, parts, pointer, budget)]
            if len(rest) > 1:
                rest = list(distinct(rest, pointer))
        out += rest
    if out:
        return n.Normal(tuple(out))
    return n.Normal((), n.Conflict("everything is allowed by what is excluded here", pointer))


def _subtract_node(
    node: n.Node, other: n.Node, parts: Callable[[], list[n.Node]], pointer: str, budget: Budget
) -> list[n.Node]:
    """What a node has beside another one, whose complement ``parts`` gives."""
    budget.spend(_cost(node, other), pointer)
    if are_apart(node, other, budget.why_nothing):
        return [node]
    found = []
    for part in parts():
        budget.spend(_cost(node, part), pointer)
        both = intersect_nodes(node, part, budget.why_nothing)
        if not isinstance(both, n.Conflict):
            found.append(both)
    return found


def _kinds(normal: n.Normal) -> str:
    return "type " + " or ".join(dict.fromkeys(node.kind for node in normal.nodes))


def distinct(nodes: list[n.Node], pointer: str) -> tuple[n.Node, ...]:
    """Each alternative once, without those that are part of another one."""
    if len(nodes) > MAX_NODES and sum(getattr(node, "constant", None) is None for node in nodes) > MAX_NODES:
        raise TooManyAlternatives(f"more than {MAX_NODES} alternatives", pointer)
    if len(nodes) < 2:
        return tuple(nodes)
    unique: dict[object, n.Node] = {}
    for node in nodes:
        unique.setdefault(content(node), node)
    return tuple(without_parts(list(unique.values())))


def content(node: n.Node) -> object:
    """What makes two nodes the same, but for where they come from."""
    if isinstance(node, n.StringNode):
        terms = tuple(term.text for term in node.terms)
        return n.StringNode, node.low and node.low.value, node.high and node.high.value, terms, node.values
    if isinstance(node, n.ObjectNode):
        low, high = node.low and node.low.value, node.high and node.high.value
        members = tuple(node.properties.items())
        return (
            *(n.ObjectNode, members, tuple(node.required), node.additional, node.rules, node.some),
            *(low, high, node.seen),
        )
    if isinstance(node, n.ArrayNode):
        low, high = node.low and node.low.value, node.high and node.high.value
        return (
            *(n.ArrayNode, node.prefix, node.items, low, high, node.contains, node.unique is None),
            node.repeated is None,
            *(node.seen, node.seen_contains),
        )
    if isinstance(node, n.NumberNode):
        bounds = tuple(bound and (bound.value, bound.is_open) for bound in (node.low, node.high))
        return (
            *(n.NumberNode, node.form, bounds, node.values, node.excluded, tuple(each.value for each in node.divisors)),
            *(tuple(each.value for each in node.not_divisors), node.has_fraction),
        )
    return (n.BooleanNode, node.values) if isinstance(node, n.BooleanNode) else n.NullNode
