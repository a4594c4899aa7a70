"""From keywords to the normal form: which nodes a handle stands for.

Each schema is read once.  What stands beside each other in one schema object is a conjunction, and a handle is one too:
all of it is the intersection of lists of nodes, made node by node.  Complements (:mod:`~.complement`) are
made node by node as well, and only of what overlaps: the branches of a ``oneOf`` that exclude each other cost
no more than those of an ``anyOf``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import combinations

from constrain.errors import SchemaError
from constrain.grammar.json_schema.document.document import Constant, Document, Location
from constrain.grammar.json_schema.document.places import Either, Handle, Negation, Never, Place, negate
from constrain.grammar.json_schema.lexical.texts import NO_TEXTS, Text, some
from constrain.grammar.json_schema.normal import algebra
from constrain.grammar.json_schema.normal.assertions import Assertions
from constrain.grammar.json_schema.normal.attempts import Attempts, Step
from constrain.grammar.json_schema.normal.evaluated import demand_unevaluated
from constrain.grammar.json_schema.normal.intersect import is_whole_type, member
from constrain.grammar.json_schema.normal.keywords import read
from constrain.grammar.json_schema.normal.kinds import (
    FEWEST_CONDITIONS,
    Dependency,
    Kinds,
    Switch,
    alternatives,
    find_kinds,
    find_switches,
    kinds_of,
)
from constrain.grammar.json_schema.normal.nodes import (
    ANY,
    ArrayNode,
    Conflict,
    Node,
    Normal,
    ObjectNode,
    StringNode,
    text_of,
)
from constrain.grammar.json_schema.normal.typed import COMBINATORS, typed_nodes
from constrain.grammar.json_schema.normal.values import value_nodes
from constrain.limits import spend

# Looking for contradictions in what is required is a convenience beyond this depth: the engine finds them too.
_PROBE_DEPTH = 12

# Intersecting one by one takes time in the square of the branches.
_MANY_BRANCHES = 16

# How many properties may be tried for the one that tells the branches of oneOf apart.
_MAX_KINDS = 16

# Lists of so many values are compared anew for each pair of schemas.
_FEW_VALUES = 16

# What makes the normal form of a schema depend on that of others.
_INWARD = COMBINATORS | {"property_names"}


class _Unclear(Exception):
    """A probe met a schema that is being worked out."""


class Normalizer(Attempts):
    """Turns handles into normal form, each once."""

    def __init__(self, max_work: int, document: Document) -> None:
        super().__init__(max_work, document)
        self._assertions: dict[Location, Assertions] = {}
        self._done: dict[Handle, Normal] = {}
        # With the keys and items that were evaluated, for the sake of unevaluatedProperties and unevaluatedItems.
        self._done_tracking: dict[Handle, Normal] = {}
        # Of conjunctions that allow nothing but scalars.
        self._scalars: dict[frozenset[Place], Normal] = {}
        # Choices that were worked out inside of what stands beside them.
        self._worked_inside: set[Place] = set()
        self._open: dict[Place, int] = {}
        self._probes = 0

    def normal(self, handle: Handle) -> Normal:
        """The normal form of a handle.

        Raises SchemaError for keywords that are wrong or not supported, and for references that lead in a circle.
        """
        done = self._done_tracking if self.tracking else self._done
        known = done.get(handle)
        if known is not None:
            return known
        spend(10)
        if len(handle) == 1:
            result = self._place(handle[0])
        elif not handle:
            result = ANY
        else:
            # In which order places stand matters to objects and arrays alone, and to what messages say.
            places = frozenset(handle)
            same = self._scalars.get(places)
            if same is not None:
                done[handle] = same
                return same
            self.spend_conjunction(handle[0].pointer)
            # Handles grow by one place after the other, so the first places are mostly known together.
            first = len(handle) - 1
            while first > 0 and handle[:first] not in done:
                first -= 1
            result = done[handle[:first]] if first > 0 else ANY
            result = self._all_of(result, [place.handle for place in handle[first:]], handle[0].pointer)
            if result.nodes and not any(isinstance(node, (ArrayNode, ObjectNode)) for node in result.nodes):
                self._scalars[places] = result
        done[handle] = result
        return result

    def why_nothing(self, handle: Handle) -> Conflict | None:
        """The conflict of a handle that nothing satisfies; None also if that is not clear yet."""
        if not handle:
            return None
        known = self._done.get(handle)
        if known is None:
            if self._probes >= _PROBE_DEPTH:
                return None
            if len(handle) > 1:
                never = next((place for place in handle if _is_never(place)), None)
                if never is not None:
                    return self.why_nothing(never.handle)
                both = self._of_few_values(handle)
                if both is not None:
                    return None if both.nodes else both.conflict
            self._probes += 1
            try:
                known = self._untracked(handle)
            except _Unclear:
                return None
            finally:
                self._probes -= 1
        return None if known.nodes else known.conflict

    def _of_few_values(self, handle: Handle) -> Normal | None:
        """The normal form of a conjunction of short lists of values; None of other ones, or if that is not clear yet.

        It is not kept, and does not count: the branches of ``oneOf`` ask for it of each two of them, to see
        whether a member tells these apart.
        """
        result = ANY
        for place in handle:
            if not self.is_choice(place.handle):
                return None
            one = self._done[place.handle]
            if sum(len(getattr(node, "values", ())) for node in one.nodes) > _FEW_VALUES:
                return None
            result = algebra.intersect(result, one, place.pointer, self)
        return result

    def is_choice(self, handle: Handle) -> bool:
        """Whether a handle allows but a few scalar values; False also if that is not clear yet."""
        known = self._done.get(handle)
        if known is None:
            self.why_nothing(handle)
            known = self._done.get(handle)
        return known is not None and all(getattr(node, "values", None) is not None for node in known.nodes)

    def _place(self, place: Place) -> Normal:
        assertions = None
        if type(place) is Location:
            schema = place.schema
            if schema is False:
                return Normal((), Conflict("the schema is false: nothing is valid", place.pointer))
            if isinstance(schema, Constant):
                return value_nodes((schema.value,), place)
            assertions = self._read(place)
            if _INWARD.isdisjoint(vars(assertions)):
                return typed_nodes(assertions, place, self.tracking, self._names) or ANY
        elif isinstance(place, Never):
            return Normal((), Conflict(place.reason, place.pointer))
        if place in self._open:
            if self._open[place] < self._probes:
                raise _Unclear
            raise SchemaError("the schema leads back to itself by $ref and its like alone", place.pointer)
        self._open[place] = self._probes
        try:
            if isinstance(place, Negation):
                with self._with_tracking(False):
                    return self._negation(place.item)
            if isinstance(place, Either):
                return algebra.merge([self.normal(option) for option in place.options], "anyOf", place.pointer)
            assert isinstance(place, Location)
            assert assertions is not None
            return self._schema(assertions, place)
        finally:
            del self._open[place]

    def _read(self, location: Location) -> Assertions:
        """What a schema asserts.  One that depends on others may be asked for time and again, before they are clear."""
        known = self._assertions.get(location)
        if known is None:
            known = read(location)
            if not _INWARD.isdisjoint(vars(known)):
                self._assertions[location] = known
        return known

    def _schema(self, assertions: Assertions, location: Location) -> Normal:
        demands = assertions.unevaluated_properties is not None or assertions.unevaluated_items is not None
        if not demands:
            return self._conjunction(assertions, location)
        with self._with_tracking(True):
            result = self._conjunction(assertions, location)
        return demand_unevaluated(result, assertions, self.tracking)

    def _conjunction(self, assertions: Assertions, location: Location, result: Normal = ANY) -> Normal:
        """What a schema allows of ``result``."""
        pointer = location.pointer
        if assertions.const is not None:
            result = algebra.intersect(result, value_nodes(assertions.const, location, "const"), pointer, self)
        if assertions.enum is not None:
            result = algebra.intersect(result, value_nodes(assertions.enum, location, "enum"), pointer, self)
        base = typed_nodes(assertions, location, self.tracking, self._names)
        if base is not None:
            result = algebra.intersect(result, base, pointer, self)
        if assertions.ref is not None:
            result = algebra.intersect(result, self.normal(assertions.ref), pointer, self)
        if assertions.dynamic_ref is not None:
            result = algebra.intersect(result, self.normal(assertions.dynamic_ref), pointer, self)
        if assertions.all_of is not None:
            result = self._all_of(result, assertions.all_of, pointer)
        if assertions.any_of is not None:
            any_of = partial(self._any_of, branches=assertions.any_of, location=location)
            result = self.if_possible(result, f"{pointer}/anyOf", any_of)
        if assertions.one_of is not None:
            any_of = partial(self._any_of, branches=assertions.one_of, location=location)
            one_of = partial(self._one_of, branches=assertions.one_of, location=location)
            ways = (any_of,) if location.resource.document.options.coerces_one_of else (one_of, any_of)
            result = self.if_possible(result, f"{pointer}/oneOf", *ways)
        if assertions.excluded is not None:
            minus = partial(self._minus, handle=assertions.excluded, pointer=pointer)
            result = self.if_possible(result, f"{pointer}/not", minus)
        if assertions.condition is not None and (assertions.then or assertions.otherwise or self.tracking):
            condition, then, otherwise = assertions.condition, assertions.then, assertions.otherwise
            conditional = partial(self._if, condition=condition, then=then, otherwise=otherwise, pointer=pointer)
            result = self.if_possible(result, f"{pointer}/if", conditional)
        if assertions.dependencies:
            result = self._depend_on_all(result, assertions.dependencies, location)
        return result

    def _all_of(self, result: Normal, branches: Sequence[Handle], pointer: str) -> Normal:
        """What ``result`` and all branches allow."""

        def steps() -> Iterator[Step]:
            for branch in branches:
                if branch:
                    yield Step("it", branch[0].pointer, partial(self._each_of, branches=[branch], pointer=pointer))

        return self.as_many_as_possible(result, partial(self._all_exactly, branches=branches, pointer=pointer), steps)

    def _all_exactly(self, result: Normal, branches: Sequence[Handle], pointer: str) -> Normal:
        if len(branches) < FEWEST_CONDITIONS or self.tracking:
            return self._each_of(result, branches, pointer)
        others: list[Handle] = []
        for branch in find_switches(branches, self.normal, self._few_values, self._is_exact):
            if isinstance(branch, Switch):
                result = self._by_kind(self._each_of(result, others, pointer), branch, pointer)
                others = []
            else:
                others.append(branch)
        return self._each_of(result, others, pointer)

    def _by_kind(self, result: Normal, switch: Switch, pointer: str) -> Normal:
        """What conditions on one member leave."""
        out: list[Node] = []
        conflict = result.conflict
        for node in result.nodes:
            one = Normal((node,))
            if not isinstance(node, ObjectNode):
                for case in switch.cases:
                    one = self._if(one, case.condition, case.then, case.otherwise, pointer)
                out += one.nodes
                conflict = conflict or one.conflict
                continue
            for kind, consequences in kinds_of(node, switch, self.why_nothing, pointer):
                both = algebra.intersect(one, Normal((kind,)), pointer, self)
                for consequence in consequences:
                    if both.nodes:
                        both = algebra.intersect(both, self.normal(consequence), pointer, self)
                out += both.nodes
                conflict = conflict or both.conflict
        return Normal(tuple(out), None if out else conflict)

    def _each_of(self, result: Normal, branches: Sequence[Handle], pointer: str) -> Normal:
        """The same, one after the other; of many, halves first, so that none is copied for each other one."""
        if len(branches) > _MANY_BRANCHES:
            middle = len(branches) // 2
            left = self._each_of(result, branches[:middle], pointer)
            return algebra.intersect(left, self._each_of(ANY, branches[middle:], pointer), pointer, self)
        for branch in branches:
            result = self._inside(result, branch, pointer, self.tracking)
        return result

    def _untracked(self, handle: Handle) -> Normal:
        if not self.tracking:
            return self.normal(handle)
        with self._with_tracking(False):
            return self.normal(handle)

    @contextmanager
    def _with_tracking(self, tracking: bool) -> Iterator[None]:
        """Whether nodes say meanwhile which members and items were evaluated."""
        before, self.tracking = self.tracking, tracking
        try:
            yield
        finally:
            self.tracking = before

    # -- complements -----------------------------------------------------------------------------

    def _negation(self, handle: Handle) -> Normal:
        """What a conjunction does not allow: what one of its parts does not."""
        pointer = handle[0].pointer
        if len(handle) > 1:
            return algebra.merge([self.normal(negate(place.handle)) for place in handle], "not", pointer)
        place = handle[0]
        if isinstance(place, Either):
            result = ANY
            for option in place.options:
                result = algebra.intersect(result, self.normal(negate(option)), pointer, self)
            return result
        if not isinstance(place, Location) or not isinstance(place.schema, dict):
            return algebra.complement(self.normal(handle), pointer, self)
        return self._schema_negation(place)

    def _schema_negation(self, location: Location) -> Normal:
        """By De Morgan's laws, keyword by keyword: complements of alternatives that were multiplied out are larger."""
        assertions, pointer = self._read(location), location.pointer
        if assertions.unevaluated_properties is not None or assertions.unevaluated_items is not None:
            whole = self.normal(location.handle)
            return ANY if self.is_loose else algebra.complement(whole, pointer, self)
        parts: list[Normal] = []
        if assertions.const is not None:
            parts.append(algebra.complement(value_nodes(assertions.const, location, "const"), pointer, self))
        if assertions.enum is not None:
            parts.append(algebra.complement(value_nodes(assertions.enum, location, "enum"), pointer, self))
        base = typed_nodes(assertions, location, False, self._names)
        if assertions.is_loose or (assertions.property_names is not None and self.is_loose):
            # Any value may be invalid.
            return ANY
        if base is not None:
            parts.append(algebra.complement(base, pointer, self))
        all_of = (assertions.ref, assertions.dynamic_ref, *(assertions.all_of or ()))
        parts += [self.normal(negate(branch)) for branch in all_of if branch is not None]
        for branches in (assertions.any_of, assertions.one_of):
            if branches is not None:
                none = ANY
                for branch in branches:
                    none = algebra.intersect(none, self.normal(negate(branch)), pointer, self)
                parts.append(none)
        for first, second in combinations(assertions.one_of or (), 2):
            parts.append(algebra.intersect(self.normal(first), self.normal(second), pointer, self))
        if assertions.excluded is not None:
            parts.append(self.normal(assertions.excluded))
        if assertions.condition is not None:
            holds, fails = self.normal(assertions.condition), self.normal(negate(assertions.condition))
            parts.append(algebra.intersect(holds, self.normal(negate(assertions.then)), pointer, self))
            parts.append(algebra.intersect(fails, self.normal(negate(assertions.otherwise)), pointer, self))
        for name, consequence in assertions.dependencies:
            present = Normal((ObjectNode(pointer, {}, {name: pointer}),))
            if isinstance(consequence, dict):
                otherwise = algebra.complement(Normal((ObjectNode(pointer, {}, consequence),)), pointer, self)
            else:
                otherwise = self.normal(negate(consequence))
            parts.append(algebra.intersect(present, otherwise, pointer, self))
        return algebra.merge(parts, "not", pointer)

    # -- branches --------------------------------------------------------------------------------

    def _any_of(self, result: Normal, branches: tuple[Handle, ...], location: Location) -> Normal:
        if self.tracking:
            return self._any_of_tracking(result, branches, location)
        merged = algebra.merge([self.normal(branch) for branch in branches], "anyOf", location.pointer)
        return algebra.intersect(result, merged, location.pointer, self)

    def _any_of_tracking(self, result: Normal, branches: tuple[Handle, ...], location: Location) -> Normal:
        """Every set of branches that can hold at once is an alternative: each evaluates something else."""
        pointer = location.pointer
        taken, untaken = Normal(()), result
        for branch in branches:
            normal = self.normal(branch)
            taken = algebra.merge(
                [
                    algebra.intersect(taken, normal, pointer, self),
                    self._minus(taken, branch, pointer),
                    algebra.intersect(untaken, normal, pointer, self),
                ],
                "anyOf",
                pointer,
            )
            untaken = self._minus(untaken, branch, pointer)
        return taken

    def _one_of(self, result: Normal, branches: tuple[Handle, ...], location: Location) -> Normal:
        """Each branch without all others, in what ``result`` allows."""
        pointer = location.pointer
        if len(result.nodes) > len(ANY.nodes):
            # Each alternative would be taken from each.
            return algebra.intersect(result, self._one_of(ANY, branches, location), pointer, self)
        alone: list[Normal] = []
        # What tells the branches apart may be required beside them only.
        inside = [self._inside(result, branch, pointer, False) for branch in branches]
        # A branch that says nothing of a type allows all of it.  Two such branches leave nothing of the type, whatever
        # the others say: without it they may list values, and need not be subtracted from each other.
        whole = {} if self.is_loose else _allowed_twice(inside)
        listed = self._listed([_without_kinds(normal, whole) for normal in inside] if whole else inside)
        holders: dict[object, list[int]] = {}
        for index, values in enumerate(listed):
            for value in values or ():
                holders.setdefault(value, []).append(index)
        unlisted = [index for index, values in enumerate(listed) if values is None]
        # Pairs of branches that were found to have nothing in common.
        apart: set[tuple[int, int]] = set()
        for index, branch in enumerate(branches):
            rest = algebra.intersect(result, self.normal(branch), pointer, self) if self.tracking else inside[index]
            if whole and rest.nodes:
                other = next((one for one in whole.get(rest.nodes[0].kind, ()) if one != index), index)
                rest = _without_kinds(rest, whole, branches[other])
            values = listed[index]
            others: Iterable[int] = range(len(branches))
            if values is not None:
                # Lists of values exclude each other unless they share one, which is told without comparing them all.
                others = dict.fromkeys([*unlisted, *(one for value in values for one in holders[value])])
            whole_branch = rest
            for place in others:
                if place != index and rest.nodes and (place, index) not in apart:
                    left = self._minus(rest, branches[place], pointer, inside[place])
                    if left is whole_branch:
                        apart.add((index, place))
                    rest = left
            alone.append(rest)
        return algebra.merge(alone, "oneOf", pointer)

    def _inside(self, result: Normal, handle: Handle, pointer: str, tracking: bool) -> Normal:
        """What a schema allows of ``result``.

        A choice is worked out inside of ``result`` when it is seen first: there its branches may exclude each other.
        Each further time it is taken as a whole, since choices of choices would be worked out time and again.
        """
        place = handle[0] if len(handle) == 1 else None
        done = self._done_tracking if tracking else self._done
        is_new = handle not in done and place not in self._open and place not in self._worked_inside
        with self._with_tracking(tracking):
            if is_new and result is not ANY and isinstance(place, Location):
                assertions = self._read(place) if isinstance(place.schema, dict) else None
                if assertions is not None and _is_choice_alone(assertions):
                    self._worked_inside.add(place)
                    self._open[place] = self._probes
                    try:
                        return self._conjunction(assertions, place, result)
                    finally:
                        del self._open[place]
            normal = self.normal(handle)
        return algebra.intersect(result, normal, pointer, self)

    def _listed(self, branches: list[Normal]) -> list[frozenset[object] | None]:
        """For each branch its values, if it lists them; for objects, those of the property that tells kinds apart."""
        counts: Counter[str] = Counter()
        for normal in branches:
            for node in normal.nodes:
                if isinstance(node, ObjectNode):
                    # In the order of the schema: what is looked at must not depend on hashes.
                    counts.update(name for name in node.required if name in node.properties)
        for name, count in counts.most_common(_MAX_KINDS):
            if count > 1 and any(
                name in node.required and self.is_choice(node.properties.get(name, ()))
                for normal in branches
                for node in normal.nodes[:1]
                if isinstance(node, ObjectNode)
            ):
                return [algebra.listed_values(normal, partial(self._choice, name)) for normal in branches]
        return [algebra.listed_values(normal, lambda node: None) for normal in branches]

    def _choice(self, name: str, node: ObjectNode) -> Normal | None:
        """What a property may be that is required and has but a few scalar values."""
        handle = node.properties.get(name)
        return self._few_values(handle) if handle and name in node.required else None

    def _few_values(self, handle: Handle) -> Normal | None:
        """The normal form of what allows but a few scalar values; None also if that is not clear yet."""
        return self._done[handle] if self.is_choice(handle) else None

    def _is_exact(self, handle: Handle) -> bool:
        """Whether a schema allows no more than is valid, although something is left out; False if that is not clear."""
        if not self.is_loose:
            return True
        inside, outside = self.normal(handle), self.normal(negate(handle))
        return not algebra.intersect(inside, outside, handle[0].pointer, self).nodes

    def _minus(self, result: Normal, handle: Handle, pointer: str, inside: Normal | None = None) -> Normal:
        """What a handle does not allow is left; ``inside`` may be what it allows of a schema that ``result`` is in."""
        if not handle:
            return Normal((), Conflict("every value is excluded (by a schema that is true)", pointer))

        def outside() -> Normal:
            return self._untracked(negate(handle))

        allowed = self._untracked(handle) if inside is None else inside
        return algebra.subtract(result, allowed, outside, pointer, handle[0].pointer, self)

    def _if(self, result: Normal, condition: Handle, then: Handle, otherwise: Handle, pointer: str) -> Normal:
        holds = algebra.intersect(result, self.normal(condition), pointer, self)
        fails = self._minus(result, condition, pointer)
        holds = algebra.intersect(holds, self.normal(then), pointer, self)
        fails = algebra.intersect(fails, self.normal(otherwise), pointer, self)
        return algebra.merge([holds, fails], "if", pointer)

    def _depend_on_all(self, result: Normal, dependencies: tuple[Dependency, ...], location: Location) -> Normal:
        """What ``result`` and all dependencies allow."""

        def steps() -> Iterator[Step]:
            for name, consequence in dependencies:
                step = partial(self._depend, name=name, consequence=consequence, location=location)
                yield Step(f"what depends on property {name!r}", location.pointer, step)

        return self.as_many_as_possible(
            result, partial(self._depend_exactly, dependencies=dependencies, location=location), steps
        )

    def _depend_exactly(self, result: Normal, dependencies: tuple[Dependency, ...], location: Location) -> Normal:
        others = list(dependencies)
        if not self.tracking:
            groups, others = find_kinds(dependencies, self.normal, self._few_values)
            for kinds in groups:
                result = self._tell_apart(result, kinds, location.pointer)
        for name, consequence in others:
            result = self._depend(result, name, consequence, location)
        return result

    def _tell_apart(self, result: Normal, kinds: Kinds, pointer: str) -> Normal:
        """What dependencies on the values of a member leave."""
        out: list[Node] = []
        conflict = result.conflict
        for node in result.nodes:
            if not isinstance(node, ObjectNode):
                out.append(node)
                continue
            for alternative in alternatives(node, kinds, self.why_nothing, pointer):
                both = algebra.intersect(Normal((node,)), Normal((alternative,)), pointer, self)
                out += both.nodes
                conflict = conflict or both.conflict
        return Normal(tuple(out), None if out else conflict)

    def _depend(self, result: Normal, name: str, consequence: Handle | dict[str, str], location: Location) -> Normal:
        """If the member is there, the consequence holds."""
        where = location.pointer
        never = Never(where, f"what depends on property {name!r} does not hold").handle
        absent = Normal((ObjectNode(where, {name: never}, {}),))
        present = Normal((ObjectNode(where, {}, {name: where}),))
        if isinstance(consequence, dict):
            implied = Normal((ObjectNode(where, {}, consequence),))
        else:
            implied = self.normal(consequence)
        out: list[Node] = []
        conflict = result.conflict
        for node in result.nodes:
            if not isinstance(node, ObjectNode) or (
                isinstance(consequence, dict) and consequence.keys() <= node.required.keys()
            ):
                out.append(node)
                continue
            one = Normal((node,))
            if name not in node.required:
                out += algebra.intersect(one, absent, where, self).nodes
            if not member(node, name) or name in node.required or self.why_nothing(member(node, name)) is None:
                there = algebra.intersect(algebra.intersect(one, present, where, self), implied, where, self)
                out += there.nodes
                conflict = conflict or _forced(name, node, there.conflict)
        return Normal(tuple(out), None if out else conflict)

    # -- names -----------------------------------------------------------------------------------

    def _names(self, handle: Handle) -> Text:
        """The strings that are valid for a schema, as a set."""
        normal = self._untracked(handle)
        found = [text_of(node) for node in normal.nodes if isinstance(node, StringNode)]
        return some(*found) if found else NO_TEXTS


def _is_choice_alone(assertions: Assertions) -> bool:
    """Whether a schema is a ``oneOf`` with nothing beside it that depends on what is evaluated."""
    demands = assertions.unevaluated_properties, assertions.unevaluated_items
    return assertions.one_of is not None and demands == (None, None)


def _is_never(place: Place) -> bool:
    return isinstance(place, Never) or (type(place) is Location and place.schema is False)


def _allowed_twice(branches: list[Normal]) -> dict[str, list[int]]:
    """The types of which two branches or more allow every value, with the first two of these branches."""
    found: dict[str, list[int]] = {}
    for index, normal in enumerate(branches):
        for kind in dict.fromkeys(node.kind for node in normal.nodes if is_whole_type(node)):
            indices = found.setdefault(kind, [])
            if len(indices) < 2:
                indices.append(index)
    return {kind: indices for kind, indices in found.items() if len(indices) > 1}


def _without_kinds(normal: Normal, kinds: Container[str], excluded: Handle = ()) -> Normal:
    """A schema without all values of some types; ``excluded`` is what to blame if nothing is left."""
    nodes = tuple([node for node in normal.nodes if node.kind not in kinds])
    if nodes or not normal.nodes:
        return Normal(nodes, normal.conflict, normal.typed_by)
    where = excluded[0].pointer if excluded else normal.nodes[0].pointer
    return Normal((), algebra.all_excluded(normal, normal.nodes[0], where))


def _forced(name: str, node: ObjectNode, conflict: Conflict | None) -> Conflict | None:
    """The conflict of what depends on a member, with the keyword that makes the member be there."""
    if conflict is None or name not in node.required:
        return conflict
    who = f"property {name!r} is required (at {node.required[name]})"
    return Conflict(f"{who}, but what depends on it can never hold: {conflict.reason}", conflict.pointer)
