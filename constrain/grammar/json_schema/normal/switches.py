"""Conditions on one member: what a schema says of each kind of object, told apart by the value of that member.

``{"allOf": [{"if": {"properties": {"type": {"const": "circle"}}}, "then": ...}, {"if": ...}, ...]}`` is a choice for
each ``if``, of which no two can hold at once.  One after the other, each would be compared with all kinds so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from constrain.grammar.json_schema.document.document import Location
from constrain.grammar.json_schema.document.places import Handle, Never, conjunction
from constrain.grammar.json_schema.normal.dependencies import keys_of_values, only_member, value_classes
from constrain.grammar.json_schema.normal.intersect import Probe, member
from constrain.grammar.json_schema.normal.keywords import read
from constrain.grammar.json_schema.normal.nodes import Normal, ObjectNode

FEWEST = 3
"""Fewer conditions are worked out one after the other."""

_OF_CONDITIONS = {"condition", "then", "otherwise"}


class Case(NamedTuple):
    """One condition."""

    condition: Handle
    values: Handle
    """What the member must be for it to hold."""
    listed: frozenset[object]
    """The same as keys."""
    is_required: bool
    """Whether the member must be there for it to hold."""
    then: Handle
    otherwise: Handle


class Switch(NamedTuple):
    """Conditions on the values of one member."""

    name: str
    cases: list[Case]


def find_switches(
    branches: Sequence[Handle],
    normal: Callable[[Handle], Normal],
    choice: Callable[[Handle], Normal | None],
    is_exact: Callable[[Handle], bool],
) -> list[Handle | Switch]:
    """The branches of an ``allOf``, in their order: it is that of the members.

    Conditions on one member are together in the place of the first of them, as far as only conditions stand between.

    Parameters
    ----------
    branches : sequence of Handle
    normal : callable
        The normal form of a schema.
    choice : callable
        The same if the schema allows but a few scalar values; None if not, or if that is not clear yet.
    is_exact : callable
        Whether the normal form allows no more than is valid.
    """
    found: list[Handle | Switch] = []
    run: list[tuple[Handle, str, Case]] = []
    for branch in branches:
        said = _case(branch, normal, choice, is_exact)
        if said is None:
            found += [*_together(run), branch]
            run = []
        else:
            run.append((branch, *said))
    return found + _together(run)


def _together(run: list[tuple[Handle, str, Case]]) -> list[Handle | Switch]:
    """Conditions beside each other, those on one member in the place of the first, if there are not too few."""
    switches: dict[str, Switch] = {}
    for _, name, case in run:
        switches.setdefault(name, Switch(name, [])).cases.append(case)
    found: list[Handle | Switch] = []
    for branch, name, case in run:
        switch = switches[name]
        if len(switch.cases) < FEWEST:
            found.append(branch)
        elif switch.cases[0] is case:
            found.append(switch)
    return found


def _case(
    branch: Handle,
    normal: Callable[[Handle], Normal],
    choice: Callable[[Handle], Normal | None],
    is_exact: Callable[[Handle], bool],
) -> tuple[str, Case] | None:
    """The member that a branch has a condition on, and the condition, if it is no more than that."""
    place = branch[0] if len(branch) == 1 else None
    if type(place) is not Location or not isinstance(place.schema, dict) or "if" not in place.schema:
        return None
    assertions = read(place)
    if assertions.condition is None or not vars(assertions).keys() <= _OF_CONDITIONS:
        return None
    said = only_member(normal(assertions.condition))
    if said is None:
        return None
    name, values, is_required = said
    keys = keys_of_values(choice(values))
    if keys is None or not (is_exact(assertions.condition) and is_exact(values)):
        return None
    return name, Case(assertions.condition, values, keys, is_required, assertions.then, assertions.otherwise)


def kinds_of(node: ObjectNode, switch: Switch, probe: Probe, pointer: str) -> Iterator[tuple[ObjectNode, list[Handle]]]:
    """The kinds of objects that a node may be, each with what the conditions say of it.

    Parameters
    ----------
    node : ObjectNode
    switch : Switch
    probe : callable
        Says why a handle is empty.
    pointer : str
        Where the conditions are.
    """
    name, cases = switch
    own = member(node, name)
    for holds, kind in value_classes([(case.values, case.listed) for case in cases]):
        if probe(conjunction(own, kind)) is None:
            consequences = [case.then if does else case.otherwise for case, does in zip(cases, holds, strict=True)]
            yield ObjectNode(pointer, {name: kind}, {name: pointer}), list(filter(None, consequences))
    if name not in node.required:
        never = Never(pointer, f"property {name!r} is left out").handle
        consequences = [case.otherwise if case.is_required else case.then for case in cases]
        yield ObjectNode(pointer, {name: never}, {}), list(filter(None, consequences))
