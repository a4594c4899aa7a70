"""Kinds of objects, told apart by the values of one member: what dependencies and conditions say of each.

``{"analyzer": {"properties": {"type": {"enum": ["string"]}}}}`` says that an object with ``analyzer`` has a ``type`` of
``"string"``.  Each such dependency alone is a choice: without ``analyzer``, or with that ``type``.  Sixteen of them
would be 65,536 alternatives.  But where all speak of the same member, which has few values, each of these values says
of every other name whether it may be there, so there are no more alternatives than values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from constrain.grammar.json_schema.document.document import Location
from constrain.grammar.json_schema.document.places import Handle, Never, conjunction, negate
from constrain.grammar.json_schema.lexical.numbers import NumberForm
from constrain.grammar.json_schema.normal.algebra import listed_values
from constrain.grammar.json_schema.normal.intersect import Probe, member
from constrain.grammar.json_schema.normal.keywords import read
from constrain.grammar.json_schema.normal.nodes import Normal, NumberNode, ObjectNode
from constrain.limits import spend

Dependency = tuple[str, Handle | dict[str, str]]
"""A name, and what holds where a member has it: a schema, or which names are required."""

_FEWEST = 3
"""Fewer dependencies are multiplied out."""


class Kinds(NamedTuple):
    """Dependencies on the values of one member.

    Attributes
    ----------
    name : str
        Of the member that tells kinds of objects apart.
    values : dict of str to Handle
        For each name that something depends on, the values of that member beside it.
    listed : dict of str to frozenset
        The same values, as keys.
    required : set of str
        Those of the names beside which that member must be there.
    dependencies : list of Dependency
        All of them, as they were given.
    """

    name: str
    values: dict[str, Handle]
    listed: dict[str, frozenset[object]]
    required: set[str]
    dependencies: list[Dependency]


def find_kinds(
    dependencies: tuple[Dependency, ...],
    normal: Callable[[Handle], Normal],
    choice: Callable[[Handle], Normal | None],
) -> tuple[list[Kinds], list[Dependency]]:
    """The dependencies that tell kinds of objects apart, several for each member that does, and the others.

    Parameters
    ----------
    dependencies : tuple of Dependency
    normal : callable
        The normal form of a schema.
    choice : callable
        The same if the schema allows but a few scalar values; None if not, or if that is not clear yet.
    """
    groups: dict[str, Kinds] = {}
    others = []
    for dependency in dependencies:
        name, consequence = dependency
        said = None if isinstance(consequence, dict) else only_member(normal(consequence))
        listed = None if said is None or said[0] == name else keys_of_values(choice(said[1]))
        if said is None or listed is None:
            others.append(dependency)
            continue
        kinds = groups.setdefault(said[0], Kinds(said[0], {}, {}, set(), []))
        if name in kinds.values:
            others.append(dependency)
            continue
        kinds.values[name], kinds.listed[name] = said[1], listed
        kinds.dependencies.append(dependency)
        if said[2]:
            kinds.required.add(name)
    few = [kinds for kinds in groups.values() if len(kinds.values) < _FEWEST]
    others += [dependency for kinds in few for dependency in kinds.dependencies]
    return [kinds for kinds in groups.values() if kinds not in few], others


def keys_of_values(values: Normal | None) -> frozenset[object] | None:
    """Some values as keys; None if they are not listed, or if some of them may be written in some ways only."""
    if values is None:
        return None
    if any(isinstance(node, NumberNode) and node.form is not NumberForm.ANY for node in values.nodes):
        return None
    return listed_values(values, lambda node: None)


def only_member(consequence: Normal) -> tuple[str, Handle, bool] | None:
    """The member that a schema speaks of, what it says of it, and whether it must be there; None if it says more."""
    nodes = [node for node in consequence.nodes if isinstance(node, ObjectNode)]
    if len(nodes) != 1 or len(nodes[0].properties) != 1:
        return None
    node = nodes[0]
    ((name, values),) = node.properties.items()
    if not node.required.keys() <= {name}:
        return None
    rest = (node.additional, node.rules, node.some, node.low, node.high, node.seen, node.constant)
    return (name, values, bool(node.required)) if not any(each for each in rest) else None


def alternatives(node: ObjectNode, kinds: Kinds, probe: Probe, pointer: str) -> Iterator[ObjectNode]:
    """What the objects of a node may be beside what the node says, by the values of a member.

    Parameters
    ----------
    node : ObjectNode
    kinds : Kinds
    probe : callable
        Says why a handle is empty.
    pointer : str
        Where the dependencies are.
    """
    own = member(node, kinds.name)
    for holds, kind in value_classes([(values, kinds.listed[name]) for name, values in kinds.values.items()]):
        if probe(conjunction(own, kind)) is None:
            without = tuple(name for name, does in zip(kinds.values, holds, strict=True) if not does)
            yield _without({kinds.name: kind}, without, {kinds.name: pointer}, pointer)
    yield _without({}, (kinds.name, *sorted(kinds.required)), {}, pointer)


def value_classes(schemas: Sequence[tuple[Handle, frozenset[object]]]) -> Iterator[tuple[tuple[bool, ...], Handle]]:
    """For the values that the same of some schemas allow: which these are, and a schema of those values.

    In the order of the schemas, and last all values that none of them allows: which come first must not depend on
    hashes.

    Parameters
    ----------
    schemas : sequence of (Handle, frozenset)
        Each with its values, as of :func:`keys_of_values`.
    """
    classes: dict[tuple[bool, ...], set[object]] = {}
    for value in frozenset[object]().union(*(listed for _, listed in schemas)):
        spend(len(schemas))
        classes.setdefault(tuple(value in listed for _, listed in schemas), set()).add(value)
    for holds in [*sorted(classes, reverse=True), (False,) * len(schemas)]:
        # Often these are the values of one schema.  All other values are none of them: a schema may list nothing.
        own = classes.get(holds, set())
        kind = next((values for values, listed in schemas if own and listed == own), None)
        if kind is None:
            kind = ()
            for (values, _), does in zip(schemas, holds, strict=True):
                kind = conjunction(kind, values if does else negate(values))
        yield holds, kind


def _without(
    properties: dict[str, Handle], absent: tuple[str, ...], required: dict[str, str], pointer: str
) -> ObjectNode:
    """Objects without some members."""
    for name in absent:
        properties[name] = Never(pointer, f"what depends on property {name!r} does not hold").handle
    return ObjectNode(pointer, properties, required)


# -- conditions on one member ------------------------------------------------------------------------

# ``{"allOf": [{"if": {"properties": {"type": {"const": "circle"}}}, "then": ...}, {"if": ...}, ...]}`` is a choice for
# each ``if``, of which no two can hold at once.  One after the other, each would be compared with all kinds so far.

FEWEST_CONDITIONS = 3
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
        if len(switch.cases) < FEWEST_CONDITIONS:
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
