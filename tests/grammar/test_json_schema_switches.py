"""``allOf`` of conditions on one member, which are worked out kind by kind; judged by jsonschema."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest
from byte_tokens import BYTES, fits

import constrain
from constrain.errors import SchemaError

_KINDS: list[Any] = ["a", "b", "c", 1, True, None]
_MISSING = object()


def _objects() -> list[Any]:
    return [
        {name: value for name, value in zip("tpq", values, strict=True) if value is not _MISSING}
        for values in itertools.product([*_KINDS, "z", _MISSING], [1, "x", _MISSING], [True, _MISSING])
    ]


VALUES = [*_objects(), 1, "a", None, []]


def _condition(rng: random.Random) -> dict[str, Any]:
    values = rng.choice([{"const": rng.choice(_KINDS)}, {"enum": rng.sample(_KINDS, 2)}, {"type": "boolean"}])
    name = "t" if rng.random() < 0.85 else "p"
    made: dict[str, Any] = {"properties": {name: values}}
    if rng.random() < 0.5:
        made["required"] = [name]
    if rng.random() < 0.2:
        made["type"] = "object"
    return made


def _consequence(rng: random.Random) -> Any:
    return rng.choice(
        [
            {"properties": {"p": {"type": "integer"}}},
            {"required": ["p"]},
            {"properties": {"p": {"const": "x"}}, "required": ["p"]},
            {"properties": {"q": False}},
            False,
            True,
            {"type": "object"},
            {"properties": {"t": {"enum": ["a", 1]}}},
            {"maxProperties": 2},
        ]
    )


def _schema(rng: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {"allOf": []}
    for _ in range(rng.randint(3, 6)):
        branch: dict[str, Any] = {"if": _condition(rng)}
        if rng.random() < 0.9:
            branch["then"] = _consequence(rng)
        if rng.random() < 0.3:
            branch["else"] = _consequence(rng)
        made["allOf"].append(branch)
    if rng.random() < 0.5:
        made["type"] = "object"
    if rng.random() < 0.6:
        own = [{}, {"type": "string"}, {"enum": ["a", "b", 1]}, {"anyOf": [{"type": "string"}, {"enum": ["a"]}]}]
        made["properties"] = {"t": rng.choice(own), "p": {}, "q": {}}
    if rng.random() < 0.3:
        made["required"] = ["t"]
    if rng.random() < 0.2:
        made["additionalProperties"] = False
    if rng.random() < 0.15:
        made = {"not": made}
    if rng.random() < 0.1:
        made = {"oneOf": [made, {"properties": {"p": {"const": 1}}}]}
    return made


@pytest.mark.parametrize("seed", range(40))
def test_random_conditions(seed: int) -> None:
    schema = _schema(random.Random(seed))
    judge = jsonschema.Draft202012Validator(schema)
    try:
        grammar = constrain.Grammar.from_json_schema(schema, property_order="any")
    except SchemaError:
        # What is refused has no value.
        assert not any(map(judge.is_valid, VALUES))
        return
    compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
    for value in VALUES:
        assert fits(compiled, json.dumps(value)) == judge.is_valid(value), (schema, value)


@pytest.mark.parametrize("nothing", [False, {"enum": []}, {"type": "string", "const": 1}])
def test_condition_that_no_value_meets(nothing: Any) -> None:
    """It holds only where the member is left out; the other values of the member are still there."""
    members: list[Any] = [{"const": "a"}, {"const": "b"}, nothing]
    conditions = [
        {"if": {"properties": {"t": member}}, "then": {"properties": {"p": {"const": number}}}}
        for number, member in enumerate(members)
    ]
    conditions[0]["if"]["required"] = conditions[1]["if"]["required"] = ["t"]
    schema = {"type": "object", "allOf": conditions}
    judge = jsonschema.Draft202012Validator(schema)
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, BYTES)
    for value in [{"t": "a", "p": 0}, {"t": "a", "p": 1}, {"t": "z", "p": 7}, {"t": "z"}, {"p": 2}, {"p": 1}, {}]:
        assert fits(compiled, json.dumps(value)) == judge.is_valid(value), value


@pytest.mark.parametrize("count", [2, 3, 9])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_order_of_members(count: int, place: int) -> None:
    """The properties of the first branch come first, however many conditions there are."""
    branches: list[Any] = [
        {"if": {"properties": {"t": {"const": f"k{number}"}}, "required": ["t"]}, "then": {"properties": {"p": {}}}}
        for number in range(count)
    ]
    other = {"properties": {"z": {}}}
    branches = {0: [other, *branches], 1: [branches[0], other, *branches[1:]], -1: [*branches, other]}[place]
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema({"allOf": branches}).ir, BYTES)
    names = ["z", "t", "p"] if place == 0 else ["t", "p", "z"]
    for order in itertools.permutations(names):
        assert fits(compiled, json.dumps(dict.fromkeys(order, "k0"))) == (list(order) == names), order


def test_hundreds_of_kinds() -> None:
    """One after the other, 125 conditions were more than ``max_work`` allows."""
    kinds = [f"kind {number}" for number in range(400)]
    conditions = [
        {
            "if": {"properties": {"type": {"const": kind}}},
            "then": {"properties": {"size": {"const": number}, kind: {"type": "null"}}},
        }
        for number, kind in enumerate(kinds)
    ]
    own = {"type": {"anyOf": [{"type": "string"}, {"enum": kinds}]}, "size": {"type": "integer"}}
    schema = {"type": "object", "properties": own, "required": ["type"], "allOf": conditions}
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, BYTES)
    for text, is_valid in [
        ('{"type": "kind 7", "size": 7}', True),
        ('{"type": "kind 7", "size": 8}', False),
        ('{"type": "kind 399", "size": 399, "kind 399": null}', True),
        ('{"type": "kind 399", "size": 399, "kind 399": 1}', False),
        ('{"type": "other", "size": 8, "kind 7": 1}', True),
    ]:
        assert fits(compiled, text) == is_valid, text
