"""Objects that must have some member that is as a schema says, where few members can be; judged by jsonschema."""

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

_KEYS = ("a", "ab", "b", "x")
_MEMBERS: list[Any] = [1, "s", []]
OBJECTS = [
    dict(zip(keys, values, strict=True))
    for size in range(4)
    for keys in itertools.combinations(_KEYS, size)
    for values in itertools.product(_MEMBERS, repeat=size)
]
_VALUES: list[Any] = [True, {"type": "integer"}, {"type": "string"}, {"type": "array"}, {"type": ["integer", "array"]}]


def _object(rng: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object"}
    if rng.random() < 0.5:
        made["properties"] = {key: rng.choice([*_VALUES, False]) for key in rng.sample(_KEYS, rng.randint(1, 3))}
    if rng.random() < 0.6:
        patterns = ("^a", "b$", "^x$", "^[ab]$", "^(a|x)")
        made["patternProperties"] = {each: rng.choice(_VALUES) for each in rng.sample(patterns, rng.randint(1, 2))}
    if rng.random() < 0.75:
        made["additionalProperties"] = rng.choice([False, False, *_VALUES])
    if rng.random() < 0.25:
        made["maxProperties"] = rng.randint(1, 2)
    if rng.random() < 0.2:
        made["minProperties"] = rng.randint(1, 2)
    if rng.random() < 0.2:
        made["required"] = [rng.choice(_KEYS)]
    if rng.random() < 0.2:
        made["propertyNames"] = {"enum": rng.sample(_KEYS, 2)}
    return made


def made(rng: random.Random) -> dict[str, Any]:
    several = [_object(rng) for _ in range(rng.randint(2, 3))]
    what = rng.randrange(3)
    if what == 0:
        return {"oneOf": several}
    if what == 1:
        return {"allOf": [several[0]], "not": {"anyOf": several[1:]}}
    return {"allOf": [several[0], *({"not": each} for each in several[1:])]}


@pytest.mark.parametrize("seed", range(40))
def test_random_objects(seed: int) -> None:
    rng = random.Random(seed)
    schema = made(rng)
    judge = jsonschema.Draft202012Validator(schema)
    allowed = [value for value in OBJECTS if judge.is_valid(value)]
    try:
        grammar = constrain.Grammar.from_json_schema(schema, property_order="any")
        rules = constrain.Grammar.from_json_schema({"type": "array", "items": schema, "uniqueItems": True})
    except SchemaError as error:
        if not allowed:
            return
        assert "conditions on members without a name" in str(error)  # noqa: PT017 (not every schema is an error)
        rules = None
    compiled = constrain.CompiledGrammar(grammar.ir, BYTES)
    for value in OBJECTS:
        assert fits(compiled, json.dumps(value)) == judge.is_valid(value), (schema, value)
    if rules is not None:
        items = constrain.CompiledGrammar(rules.ir, BYTES)
        for value in OBJECTS:
            assert not fits(items, json.dumps([value, value])), (schema, value)
            if not judge.is_valid(value):
                assert not fits(items, json.dumps([value])), (schema, value)
        for one, other in itertools.combinations(rng.sample(allowed, min(len(allowed), 8)), 2):
            # Keys stand in the order of the schema there.
            if fits(items, json.dumps([one])) and fits(items, json.dumps([other])):
                assert fits(items, json.dumps([one, other])), (schema, one, other)
