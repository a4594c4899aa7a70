"""Unique items of which some have few values, beside ``contains`` or behind a prefix; judged by jsonschema."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest
from byte_tokens import BYTES, fits
from masks import mask_of
from processor_time import processor_time

import constrain
from constrain.errors import SchemaError

TOKENS = [bytes([byte]) for byte in b'[]{}", :127xyzatruenlfs'] + [b'","', b"],", b'"x"', b",1", b",2,", b"{}", b',{"']
EOS = len(TOKENS)
VOCABULARY = constrain.Vocabulary([*TOKENS, b"</s>"], eos_ids=[EOS])

ITEMS: list[Any] = ["x", "y", "zz", 1, 2, 7, True, {}, {"a": 1}, [1], None]
FEW: list[Any] = [
    {"const": "x"},
    {"enum": ["x", 1]},
    {"enum": ["x", "y", {}]},
    {"type": "boolean"},
    {"type": ["null", "boolean"]},
    {"type": "integer", "minimum": 1, "maximum": 2},
    {"type": "object", "maxProperties": 0},
    {"enum": [[1], {"a": 1}, None]},
]
MANY: list[Any] = [{}, {"type": "string"}, {"type": ["string", "integer", "object"]}, {"not": {"const": "y"}}]


def arrays(longest: int) -> list[list[Any]]:
    return [list(items) for size in range(longest + 1) for items in itertools.product(ITEMS, repeat=size)]


ARRAYS = arrays(3)


def compiled(schema: Any, vocabulary: constrain.Vocabulary = BYTES, **options: Any) -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema, **options).ir, vocabulary)


def made(rng: random.Random) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "uniqueItems": True}
    if rng.random() < 0.7:
        schema["items"] = rng.choice((*FEW, *MANY, *MANY))
    if rng.random() < 0.4:
        schema["prefixItems"] = [rng.choice((*FEW, *MANY)) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.85:
        schema["contains"] = rng.choice((*FEW, *FEW, *MANY))
        if rng.random() < 0.4:
            schema["minContains"] = rng.randint(0, 3)
        if rng.random() < 0.3:
            schema["maxContains"] = max(schema.get("minContains", 1), rng.randint(0, 3))
        if rng.random() < 0.3:
            schema["allOf"] = [{"contains": rng.choice((*FEW, *MANY)), "minContains": rng.randint(1, 2)}]
    if rng.random() < 0.4:
        schema["minItems"] = rng.randint(1, 4)
    if rng.random() < 0.3 and "allOf" not in schema:
        schema["maxItems"] = schema.get("minItems", 1) + rng.randrange(3)
    return schema


@pytest.mark.parametrize("seed", range(24))
def test_random_arrays(seed: int) -> None:
    schema = made(random.Random(seed))
    judge = jsonschema.Draft202012Validator(schema)
    valid = [json.dumps(items, separators=(",", ":")) for items in ARRAYS if judge.is_valid(items)]
    refusal = ""
    try:
        grammar = compiled(schema, whitespace="compact")
    except SchemaError as error:
        refusal = str(error)
    if refusal:
        assert "nothing is valid" in refusal
        assert not valid
        return
    for items in ARRAYS:
        assert fits(grammar, json.dumps(items, separators=(",", ":"))) == judge.is_valid(items), (schema, items)
    # No comma leads to where nothing is left.
    for items in arrays(2):
        begin = json.dumps(items, separators=(",", ":"))[:-1] + ("," if items else "")
        matcher = constrain.Matcher(grammar)
        if matcher.accept_bytes(begin.encode()):
            rest = b"".join(BYTES.tokens[token] for token in matcher.completion())
            whole = json.loads(begin.encode() + rest)
            assert judge.is_valid(whole), (schema, whole)
        else:
            assert not any(text.startswith(begin) and text != "[]" for text in valid), (schema, begin)


@pytest.mark.parametrize("seed", range(12))
def test_walks_under_budgets(seed: int) -> None:
    rng = random.Random(seed)
    schema = made(rng)
    judge = jsonschema.Draft202012Validator(schema)
    try:
        grammar = compiled(schema, VOCABULARY)
    except SchemaError:
        return
    for budget in (8, 20, 60):
        for _ in range(4):
            try:
                matcher = constrain.Matcher(grammar, max_tokens=budget)
            except constrain.ConstrainError:
                break
            text = b""
            while not matcher.is_terminated():
                allowed = sorted(mask_of(matcher))
                assert allowed, (schema, budget, text)
                token = rng.choice(allowed)
                assert matcher.accept_token(token)
                text += b"" if token == EOS else TOKENS[token]
            assert judge.is_valid(json.loads(text)), (schema, text)


@pytest.mark.parametrize("beside", [{"contains": {"const": 7}}, {"prefixItems": [{"enum": [6, 7]}]}])
def test_hundreds_of_items(beside: dict[str, Any]) -> None:
    """What an item must differ from follows from the same of the item before: else 1,000 items take 35 seconds."""
    grammar = compiled({"type": "array", "uniqueItems": True, "items": {"type": "integer"}, "minItems": 700, **beside})
    items = [6, *range(10, 708)]
    with processor_time() as spent:
        assert fits(grammar, json.dumps([*items, 7]))
        assert not fits(grammar, json.dumps([*items, 7, 10]))
    assert spent.seconds < 3


def test_more_values_than_matter() -> None:
    """That 40 or 39 values are left is the same to an array that needs two of them: else these are too many places."""
    names = [f"v{number}" for number in range(60)]
    schema: dict[str, Any] = {"type": "array", "uniqueItems": True, "items": {"type": "string"}}
    one = {**schema, "contains": {"enum": names[:10]}, "maxItems": 1000}
    two = {**schema, "contains": {"enum": names[:40]}, "allOf": [{"contains": {"enum": names[10:]}, "minContains": 2}]}
    for each in (one, two):
        grammar = compiled(each)
        judge = jsonschema.Draft202012Validator(each)
        for items in (
            *(["v0"], ["v0", "v50"], ["v0", "v50", "v51"], ["v10", "v11"], ["v50", "v51"], ["x", "v30", "y", "v31"]),
            *(names[:10], names[:11], names[:12], names, names[40:], [*names[40:], "v0"], ["v10", "v10"]),
        ):
            assert fits(grammar, json.dumps(items)) == judge.is_valid(items), items


@pytest.mark.parametrize("contains", [{"const": "v3"}, {"enum": [f"v{number}" for number in range(70)]}])
def test_all_values_of_a_long_list(contains: Any) -> None:
    """Where all were used, there was an error in place of a closing bracket."""
    values = [f"v{number}" for number in range(70)]
    grammar = compiled({"type": "array", "items": {"enum": values}, "contains": contains, "uniqueItems": True})
    assert fits(grammar, json.dumps(values))
    assert fits(grammar, json.dumps(values[:69]))
    assert not fits(grammar, json.dumps([*values, "v0"]))
    matcher = constrain.Matcher(grammar)
    assert matcher.accept_bytes(json.dumps(values)[:-1].encode())
    assert not matcher.accept_bytes(b",")
