"""Intersection, union and complement of schemas in normal form."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from constrain.errors import LimitError
from constrain.grammar.json_schema.complement import complement_node
from constrain.grammar.json_schema.intersect import Probe, intersect_nodes
from constrain.grammar.json_schema.nodes import (
    ANY,
    ArrayNode,
    BooleanNode,
    Conflict,
    Node,
    Normal,
    NullNode,
    NumberNode,
    ObjectNode,
    StringNode,
)

# Each anyOf that stands beside another multiplies the nodes.
MAX_NODES = 10_000
"""How many alternatives one schema may have."""

Nodes = dict[str, list[Node]]
"""Nodes by their type."""


class Budget:
    """What the algebra may cost, and whom it asks.

    Attributes
    ----------
    max_work : int
        How many pairs of alternatives may be combined.
    probe : callable
        Says why a handle is empty.
    refuse : callable
        Takes a reason and a pointer for what cannot be enforced.
    """

    def __init__(self, max_work: int, probe: Probe, refuse: Callable[[str, str], None]) -> None:
        self.max_work = max_work
        self.probe = probe
        self.refuse = refuse
        self._work = 0

    def spend(self, work: int, pointer: str) -> None:
        """Take note of work.  Raises LimitError if it was too much."""
        self._work += work
        if self._work > self.max_work:
            raise LimitError(
                f"at {pointer}: combining the alternatives of this schema takes more than {self.max_work} steps "
                "(max_work)"
            )


def intersect(left: Normal, right: Normal, pointer: str, budget: Budget) -> Normal:
    """What both allow."""
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
                budget.spend(1, pointer)
                both = intersect_nodes(first, second, budget.probe)
                if isinstance(both, Conflict):
                    conflicts.append(both)
                else:
                    nodes.append(both)
    if nodes:
        return Normal(_distinct(nodes, pointer))
    if not conflicts:
        kinds, others = (_kinds(normal) for normal in (left, right))
        places = f"(at {left.nodes[0].pointer}) contradicts {others} (at {right.nodes[0].pointer})"
        return Normal((), Conflict(f"{kinds} {places}", right.nodes[0].pointer))
    return Normal((), conflicts[0])


def merge(branches: Iterable[Normal], keyword: str, pointer: str) -> Normal:
    """What any of the branches allows."""
    nodes: dict[Node, None] = {}
    conflicts = []
    for normal in branches:
        nodes.update(dict.fromkeys(normal.nodes))
        if normal.conflict is not None:
            conflicts.append(normal.conflict)
    if nodes:
        return Normal(_distinct(list(nodes), pointer))
    reason = "; ".join(f"{conflict.reason} (at {conflict.pointer})" for conflict in conflicts[:3])
    return Normal((), Conflict(f"no branch of {keyword} can be satisfied: {reason}", f"{pointer}/{keyword}"))


def by_kind(normal: Normal) -> Nodes:
    """The nodes of each type."""
    kinds: Nodes = {}
    for node in normal.nodes:
        kinds.setdefault(node.kind, []).append(node)
    return kinds


def subtract(left: Normal, right: Normal, pointer: str, budget: Budget, kinds: Nodes | None = None) -> Normal:
    """What ``left`` allows and ``right`` does not; ``kinds`` is ``by_kind(right)``, if it is known."""
    kinds = by_kind(right) if kinds is None else kinds
    out: list[Node] = []
    conflict = left.conflict
    for node in left.nodes:
        rest = [node]
        for other in kinds.get(node.kind, ()):
            rest = [part for one in rest for part in _subtract_node(one, other, pointer, budget)]
            if len(rest) > 1:
                rest = list(_distinct(rest, pointer))
        out += rest
        if not rest and conflict is None:
            excluded = kinds[node.kind][0].pointer
            conflict = Conflict(f"a {node.kind} (at {node.pointer}) is excluded (by {excluded})", excluded)
    return Normal(_distinct(out, pointer), None if out else conflict)


def _subtract_node(node: Node, other: Node, pointer: str, budget: Budget) -> list[Node]:
    budget.spend(1, pointer)
    if isinstance(intersect_nodes(node, other, budget.probe), Conflict):
        return [node]
    found = []
    for part in complement_node(other, budget.refuse):
        budget.spend(1, pointer)
        both = intersect_nodes(node, part, budget.probe)
        if not isinstance(both, Conflict):
            found.append(both)
    return found


def complement(normal: Normal, pointer: str, budget: Budget) -> Normal:
    """What a schema does not allow."""
    result = subtract(ANY, normal, pointer, budget)
    if result.nodes:
        return result
    return Normal((), Conflict("everything is allowed by what is excluded here", pointer))


def _kinds(normal: Normal) -> str:
    return "type " + " or ".join(dict.fromkeys(node.kind for node in normal.nodes))


def _distinct(nodes: list[Node], pointer: str) -> tuple[Node, ...]:
    """Each alternative once."""
    if len(nodes) > MAX_NODES:
        raise LimitError(f"at {pointer}: more than {MAX_NODES} alternatives")
    if len(nodes) < 3:
        return tuple(nodes)
    distinct: dict[object, Node] = {}
    for node in nodes:
        distinct.setdefault(_content(node), node)
    return tuple(distinct.values())


def _content(node: Node) -> object:
    """What makes two nodes the same, but for where they come from."""
    if isinstance(node, StringNode):
        terms = tuple(term.text for term in node.terms)
        return StringNode, node.low and node.low.value, node.high and node.high.value, terms, node.values
    if isinstance(node, ObjectNode):
        low, high = node.low and node.low.value, node.high and node.high.value
        members = tuple(node.properties.items())
        return (
            *(ObjectNode, members, tuple(node.required), node.additional, node.rules, node.some),
            *(low, high, node.seen),
        )
    if isinstance(node, ArrayNode):
        low, high = node.low and node.low.value, node.high and node.high.value
        return (
            *(ArrayNode, node.prefix, node.items, low, high, node.contains, node.unique is None),
            *(node.seen, node.seen_contains),
        )
    if isinstance(node, NumberNode):
        bounds = tuple(bound and (bound.value, bound.is_open) for bound in (node.low, node.high))
        return (
            *(NumberNode, node.form, bounds, node.values, node.excluded, tuple(each.value for each in node.divisors)),
            *(tuple(each.value for each in node.not_divisors), node.has_fraction),
        )
    return (BooleanNode, node.values) if isinstance(node, BooleanNode) else NullNode
