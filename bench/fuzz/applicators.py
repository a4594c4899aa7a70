"""Kind "applicators": deep combinations of applicators over objects and arrays of few members, value by value.

What a schema says is taken apart and put together again: complements, alternatives, what was evaluated.  Here schemas
hold hardly anything else, and all values of a small world are judged by the validators of the kind "schemas": each that
is valid must be accepted, and no other.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import constrain
from bench.fuzz import protocol, vocabularies
from bench.fuzz.protocol import Budget, Counts, Difference, Kind, isolated
from bench.fuzz.schemas import Judges, simpler
from bench.judge import NoVerdict

_NAMES = ("a", "b", "c")
_SCALARS = (0, 1, "x")
_DEPTH = 3


def _world() -> list[Any]:
    """Values: all objects of three names, all short arrays, and some others."""
    values: list[Any] = [*_SCALARS, None, {"d": 1}, {"a": 0, "d": "x"}, [[]], [{}], {"a": {"a": 1}}]
    for count in range(len(_NAMES) + 1):
        for names in itertools.combinations(_NAMES, count):
            values += [dict(zip(names, each, strict=True)) for each in itertools.product(_SCALARS, repeat=count)]
        values += [list(each) for each in itertools.product(_SCALARS, repeat=count)]
    return values


_WORLD = _world()


def _member(rng: random.Random) -> Any:
    return rng.choice((True, {"const": 0}, {"const": "x"}, {"enum": [0, 1]}, {"type": "integer"}, {"type": "string"}))


def _leaf(rng: random.Random) -> dict[str, Any]:
    """What a schema asserts by itself."""
    names = rng.sample(_NAMES, 2)
    makes: tuple[Callable[[], dict[str, Any]], ...] = (
        lambda: {"properties": {names[0]: _member(rng)}},
        lambda: {"required": names[:1]},
        lambda: {"properties": {names[0]: {"const": rng.choice(_SCALARS)}}, "required": names[:1]},
        lambda: {"properties": {name: _member(rng) for name in names}, "additionalProperties": _member(rng)},
        lambda: {"properties": {names[0]: True}, "additionalProperties": rng.random() < 0.5},
        lambda: {"patternProperties": {rng.choice(("^[ab]$", "^a", "c$")): _member(rng)}},
        lambda: {"propertyNames": {"enum": names}},
        lambda: {rng.choice(("minProperties", "maxProperties", "minItems", "maxItems")): rng.randrange(3)},
        lambda: {"type": rng.choice(("object", "object", "array", "integer"))},
        lambda: {"prefixItems": [_member(rng)], "items": _member(rng)},
        lambda: {rng.choice(("items", "contains")): _member(rng)},
        lambda: {"prefixItems": [_member(rng), _member(rng)]},
        lambda: {"enum": rng.sample(_WORLD, 3)},
    )
    return rng.choice(makes)()


def _schema(rng: random.Random, depth: int) -> Any:
    if rng.random() < 0.03:
        return rng.random() < 0.5
    made = _leaf(rng)
    for _ in range(rng.randrange(3)):
        if depth == 0:
            made.update(_leaf(rng))
            continue
        what = rng.choice(("oneOf", "oneOf", "allOf", "anyOf", "not", "if", "dependentSchemas", "$ref"))
        if what == "not":
            made["not"] = _schema(rng, depth - 1)
        elif what == "if":
            made.update({word: _schema(rng, depth - 1) for word in ("if", "then", "else")})
        elif what == "dependentSchemas":
            made[what] = {rng.choice(_NAMES): _schema(rng, depth - 1)}
        elif what == "$ref":
            made[what] = f"#/$defs/{rng.randrange(2)}"
        else:
            made[what] = [_schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.25:
        made["unevaluatedProperties"] = rng.choice((False, False, {"type": "integer"}, {}))
    if rng.random() < 0.1:
        made["unevaluatedItems"] = rng.choice((False, {"type": "integer"}))
    return made


def _without_references(made: Any) -> Any:
    """A definition: what refers to another, or to itself by applicators alone, may be no schema at all."""
    if isinstance(made, dict):
        return {name: _without_references(each) for name, each in made.items() if name != "$ref"}
    return [_without_references(each) for each in made] if isinstance(made, list) else made


def _check(schema: Any, counts: Counts) -> str:
    try:
        judges = Judges(schema)
    except (NoVerdict, ValueError):
        counts["schemas that a validator does not read"] += 1
        return ""
    counts["schemas"] += 1
    compiled: constrain.CompiledGrammar | None = None
    try:
        grammar = constrain.Grammar.from_json_schema(schema, property_order="any")
        compiled = constrain.CompiledGrammar(grammar.ir, vocabularies.small())
    except constrain.LimitError:
        counts["refused by a limit"] += 1
        return ""
    except constrain.SchemaError as error:
        if "nothing is valid" not in str(error):
            counts["refused as not supported"] += 1
            return ""
        counts["refused as empty"] += 1
    for value in _WORLD:
        text = json.dumps(value)
        valid, reason = judges.verdict(text, counts)
        if valid is None:
            continue
        counts["values"] += 1
        if compiled is None:
            if valid:
                return f"refused as empty, and {text} is valid"
            continue
        matcher = constrain.Matcher(compiled)
        if (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) != valid:
            return f"{text} is valid, and refused" if valid else f"{text} is accepted, and is not valid: {reason}"
    return ""


def run(rng: random.Random, budget: Budget) -> Counts:
    counts: Counts = Counts()
    definitions = {str(number): _without_references(_schema(rng, 1)) for number in range(2)}
    schema = {"allOf": [_schema(rng, _DEPTH)], "$defs": definitions}
    if isinstance(schema["allOf"][0], dict) and rng.random() < 0.8:
        schema = {**schema["allOf"][0], "$defs": definitions}
    # A validator may change what it is given.
    wrong = isolated(lambda: _check(copy.deepcopy(schema), counts))
    if wrong:
        tries = 400 if protocol.is_careful else 0
        todo = simpler(schema)
        while todo and tries > 0:
            tries -= 1
            less = todo.pop(0)
            what = isolated(lambda: _check(copy.deepcopy(less), Counts()))  # noqa: B023
            if what and not what.startswith("Traceback"):
                schema, wrong, todo = less, what, simpler(less)
        raise Difference(wrong, f"schema = {schema!r}")
    return counts


KIND = Kind(
    "applicators",
    "all values of a small world, by jsonschema, and by jsonschema-rs where it is installed",
    run,
    120,
    {"schemas": 100, "values": 7_000},
    lambda: "",
)
