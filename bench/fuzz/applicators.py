"""Kind "applicators": deep combinations of applicators over small worlds, value by value.

What a schema says is taken apart and put together again: complements, alternatives, what was evaluated.  Here schemas
hold hardly anything else, and all values of a small world (bench/fuzz/small_worlds.py) are judged by the validators of
the kind "schemas": each that is valid must be accepted, and no other.  Part of the schemas are read in the order of
their keys, where some order of a valid value must be accepted; and texts under a budget must be complete in time.
Some are read leniently with little work allowed, so that alternatives are left out: then more is accepted, never less.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import constrain
from bench.fuzz import budgets, vocabularies
from bench.fuzz.protocol import Budget, Counts, Kind
from bench.fuzz.schemas import Judges, accepts, judge
from bench.fuzz.small_worlds import WORLDS, World, member
from bench.judge import NoVerdict

_DEPTH = 3
# What is exponential in a schema may take longer.
_SECONDS = 5.0
# Of so many schemas one is read leniently, with one of these limits on the work.
_LENIENT = 8
_WORK = (8, 20, 50, 100, 300)
# What is below these is about a part of the value, so that a reference there may lead back.
_ABOUT_PARTS = frozenset(
    ("properties", "patternProperties", "additionalProperties", "items", "prefixItems", "contains", "propertyNames")
)


def _schema(rng: random.Random, world: World, depth: int) -> Any:
    def inner() -> Any:
        is_deep = world.deep and depth > 0 and rng.random() < 0.4
        return _schema(rng, world, depth - 1) if is_deep else member(rng)

    if rng.random() < 0.03:
        return rng.random() < 0.5
    made = world.leaf(rng, inner)
    for _ in range(rng.randrange(3)):
        if depth == 0:
            made.update(world.leaf(rng, inner))
            continue
        what = rng.choice(("oneOf", "oneOf", "allOf", "anyOf", "not", "if", "dependentSchemas", "$ref"))
        if what == "not":
            made["not"] = _schema(rng, world, depth - 1)
        elif what == "if":
            made.update({word: _schema(rng, world, depth - 1) for word in ("if", "then", "else")})
        elif what == "dependentSchemas":
            if world.names:
                made[what] = {rng.choice(world.names): _schema(rng, world, depth - 1)}
        elif what == "$ref":
            made[what] = f"#/$defs/{rng.randrange(2)}"
        else:
            made[what] = [_schema(rng, world, depth - 1) for _ in range(rng.randint(1, 3))]
    if world.names and rng.random() < 0.25:
        made["unevaluatedProperties"] = rng.choice((False, False, {"type": "integer"}, {}))
    if rng.random() < (0.1 if world.names else 0.25):
        made["unevaluatedItems"] = rng.choice((False, {"type": "integer"}))
    return made


def _without_references(made: Any) -> Any:
    """A definition: what refers to another, or to itself by applicators alone, may be no schema at all."""
    if isinstance(made, dict):
        return {
            name: each if name in _ABOUT_PARTS else _without_references(each)
            for name, each in made.items()
            if name != "$ref"
        }
    return [_without_references(each) for each in made] if isinstance(made, list) else made


def _document(rng: random.Random, world: World) -> dict[str, Any]:
    definitions = {str(number): _without_references(_schema(rng, world, 1)) for number in range(2)}
    schema: Any = _schema(rng, world, _DEPTH)
    if not isinstance(schema, dict) or rng.random() < 0.2:
        schema = {"allOf": [schema]}
    schema["$defs"] = definitions
    if world is WORLDS["nested"]:
        # Places with names, and a recursion that the document extends.
        schema |= {"$dynamicAnchor": "node"} if rng.random() < 0.5 else {}
        definitions["0"] = {"$anchor": "here", "allOf": [definitions["0"]]}
        branch = {"properties": {"a": {"$dynamicRef": "#node"}}, "required": rng.sample(("a", "b"), 1)}
        definitions["tree"] = {"$id": "tree", "$dynamicAnchor": "node", "anyOf": [branch, member(rng)]}
    return schema


def _orders(value: Any) -> Iterator[Any]:
    """The value in every order of its keys."""
    if isinstance(value, dict):
        for keys in itertools.permutations(value):
            for each in itertools.product(*(list(_orders(value[key])) for key in keys)):
                yield dict(zip(keys, each, strict=True))
    elif isinstance(value, list):
        yield from map(list, itertools.product(*(list(_orders(each)) for each in value)))
    else:
        yield value


def _value_is_wrong(
    compiled: constrain.CompiledGrammar | None,
    texts: tuple[str, ...],
    ordered: bool,
    is_loose: bool,
    judges: Judges,
    counts: Counts,
) -> str:
    """What is wrong with the verdicts about the texts of one value; an empty string if nothing is."""
    valid, reason = judges.verdict(texts[0], counts)
    if valid is None:
        return ""
    counts["values"] += 1
    if compiled is None:
        return f"refused as empty, and {texts[0]} is valid" if valid else ""
    orders = list(_orders(json.loads(texts[0]))) if ordered else []
    if len(orders) > 1:
        texts = tuple(map(json.dumps, orders))
    if not valid:
        if is_loose:
            return ""
        accepted = next((text for text in texts if accepts(compiled, text)), None)
        return "" if accepted is None else f"{accepted} is accepted, and is not valid: {reason}"
    # Of a number there are notations that some schemas do not have.
    if any(accepts(compiled, text) for text in (texts if len(orders) > 1 else texts[:1])):
        return ""
    return f"{texts[0]} is valid, and refused"


def _budget_is_wrong(compiled: constrain.CompiledGrammar, rng: random.Random, counts: Counts) -> str:
    try:
        shortest = len(constrain.Matcher(compiled).completion())
        constrain.Matcher(compiled, max_tokens=shortest)
    except constrain.ConstrainError:
        return ""
    for more in (0, 1, rng.randrange(2, 12)):
        wrong = budgets.walk(compiled, shortest + more, rng, counts)
        if wrong:
            return wrong
    return ""


def _check(schema: Any, world: World, ordered: bool, seed: int, counts: Counts) -> str:
    try:
        judges = Judges(schema)
    except (NoVerdict, ValueError):
        counts["schemas that a validator does not read"] += 1
        return ""
    counts["schemas"] += 1
    compiled: constrain.CompiledGrammar | None = None
    is_loose = seed % _LENIENT == 0
    options: dict[str, Any] = {"lenient": True, "max_work": _WORK[seed % len(_WORK)]} if is_loose else {}
    try:
        order: Any = "schema" if ordered else "any"
        grammar = constrain.Grammar.from_json_schema(schema, property_order=order, time_limit=_SECONDS, **options)
        is_loose = is_loose and any("not enforced" in warning for warning in grammar.warnings)
        counts["read leniently, with something left out"] += is_loose
        compiled = constrain.CompiledGrammar(grammar.ir, vocabularies.small())
    except constrain.LimitError:
        counts["refused by a limit"] += 1
        return ""
    except constrain.SchemaError as error:
        if "nothing is valid" not in str(error):
            counts["refused as not supported"] += 1
            return ""
        counts["refused as empty"] += 1
    rng = random.Random(seed)
    try:
        for texts in world.values:
            wrong = _value_is_wrong(compiled, texts, ordered, is_loose, judges, counts)
            if wrong:
                return wrong
        return _budget_is_wrong(compiled, rng, counts) if compiled is not None and rng.random() < 0.2 else ""
    except constrain.LimitError:
        counts["texts beyond a limit"] += 1
        return ""


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    world = WORLDS[rng.choice(list(WORLDS))]
    schema = _document(rng, world)
    ordered, seed = rng.random() < 0.3, rng.randrange(1 << 30)
    judge(schema, lambda made, found: _check(made, world, ordered, seed, found), counts, 400, f"ordered = {ordered}")
    return counts


KIND = Kind(
    "applicators",
    "all values of small worlds, by jsonschema, and by jsonschema-rs where it is installed",
    run,
    120,
    {"schemas": 100, "values": 7_000},
    lambda: "",
)
