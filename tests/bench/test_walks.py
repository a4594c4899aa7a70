"""Random walks and their judge: that both find what is wrong, and that walks through real masks are valid."""

from __future__ import annotations

import json
import random
import re

import pytest

import constrain
from bench.judge import Judge, NoVerdict, RepeatedKey, python_pattern
from bench.walks import Walker, judged

TOKENS = [bytes([byte]) for byte in range(256)] + [b'":', b'"}', b'", "', b"]}", b"ab", b"12", b"e+", b"</s>"]
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])

SCHEMAS = [
    {"type": "array", "items": {"enum": ["a", 1, None]}, "minItems": 2},
    {
        "type": "object",
        "properties": {"a": {"type": "number", "multipleOf": 0.25}, "b": {"pattern": r"^\w+-\d$"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    {"type": "object", "properties": {"next": {"$ref": "#"}, "on": {"format": "date-time"}}, "required": ["on"]},
    {"oneOf": [{"type": "integer", "minimum": 3}, {"type": "string", "maxLength": 4}], "not": {"const": "ab"}},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_walks_end_in_what_is_valid(schema: dict[str, object]) -> None:
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, VOCABULARY)
    walker = Walker(VOCABULARY, random.Random(7), free=20, limit=3000)
    judge = Judge(schema)
    found = [judged(judge, walker.walk(compiled))[0] for _ in range(40)]
    assert set(found) <= {"valid", "repeated key"}
    assert found.count("valid") > 30


def test_what_masks_allow_wrongly_is_found() -> None:
    wide, narrow = {"type": "integer"}, {"type": "integer", "minimum": 10**9}
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(wide).ir, VOCABULARY)
    walker = Walker(VOCABULARY, random.Random(7), free=5, limit=100)
    assert "invalid" in {judged(Judge(narrow), walker.walk(compiled))[0] for _ in range(20)}


def test_a_walk_that_does_not_end_is_found() -> None:
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_regex("x{500}").ir, VOCABULARY)
    assert Walker(VOCABULARY, random.Random(1), free=5, limit=50).walk(compiled).end == "long"


def test_numbers_are_judged_exactly() -> None:
    judge = Judge(json.loads('{"multipleOf": 0.01, "maximum": 0.3}'))
    assert judge.verdict("0.29") == ""
    assert judge.verdict("0.295") != ""
    assert judge.verdict("0.30000000000000000000000001") != ""
    assert judge.verdict("[").startswith("not JSON")
    assert Judge({"type": "integer"}).verdict("1.0") == ""
    assert Judge({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}).verdict("1.0") != ""


def test_what_cannot_be_judged() -> None:
    with pytest.raises(NoVerdict):
        Judge({}).verdict("1e999999999999999999999")
    with pytest.raises(NoVerdict):
        Judge({"pattern": r"\p{L}"})
    with pytest.raises(NoVerdict):
        Judge({"$ref": "https://example.org/nowhere"}).verdict("1")
    with pytest.raises(RepeatedKey):
        Judge({}).verdict('{"a": 1, "\\u0061": 2}')


def test_nullable_and_items_in_array_form() -> None:
    assert Judge({"type": "string", "nullable": True}).verdict("null") == ""
    assert Judge({"items": [{"type": "string"}]}).verdict("[1]") != ""


def test_leap_seconds_are_times() -> None:
    pytest.importorskip("rfc3339_validator")
    judge = Judge({"format": "date-time"})
    assert judge.verdict('"1990-12-31T23:59:60Z"') == ""
    assert judge.verdict('"1990-13-31T23:59:60Z"') != ""


@pytest.mark.parametrize(
    ("source", "text", "found"),
    [
        (r"^\d$", "٣", False),
        (r"\w", "é", False),
        ("a$", "a\n", False),
        (".", "\u2028", False),
        ("[^]", "\n", True),
        (r"\/[\w-]", "/-", True),
        ("(?<x>a)b", "ab", True),
        ("(?<!a)b", "ab", False),
        ("[[a]", "[", True),
    ],
)
def test_patterns_for_python(source: str, text: str, found: bool) -> None:
    assert bool(re.search(python_pattern(source), text)) == found
