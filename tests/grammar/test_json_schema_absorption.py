"""Alternatives that are part of another one are left out, so that complements of many ranges stay small."""

from __future__ import annotations

from typing import Any

from finite_texts import verdicts
from processor_time import processor_time

ZEROS = {"$ref": "#/$defs/zero"}
DEFINED = {"$defs": {"zero": {"const": 0}}}


def _exactly(count: int) -> dict[str, Any]:
    return {"contains": ZEROS, "minContains": count, "maxContains": count}


def test_numbers_of_items_that_are_excluded_are_ranges() -> None:
    with processor_time() as spent:
        schema = {"type": "array", "not": {"anyOf": [_exactly(count) for count in range(12)]}, **DEFINED}
        arrays = [[0] * 11, [0] * 12, [1] * 12, [0] * 6 + [1] + [0] * 6]
        assert verdicts(schema, *map(str, arrays)) == [False, True, False, True]
    assert spent.seconds < 1


def test_an_array_that_demands_more_than_another_is_left_out() -> None:
    choices = [
        {"anyOf": [{"contains": ZEROS, "minContains": n}, {"minItems": n}, {"contains": ZEROS, "maxContains": 9 - n}]}
        for n in range(1, 7)
    ]
    with processor_time() as spent:
        found = verdicts({"type": "array", "allOf": choices, **DEFINED}, "[]", "[0]", str([0] * 9), "[1,1,1,1,1,0]")
        assert found == [False, True, True, True]
    assert spent.seconds < 1


def test_alternatives_that_say_something_new_are_kept() -> None:
    schema = {"type": "array", "anyOf": [{"items": {"const": 0}}, {"prefixItems": [{"const": 0}]}], "minItems": 1}
    assert verdicts(schema, "[0]", "[0,0]", "[0,1]", "[1]") == [True, True, True, False]
    more = {"type": "array", "anyOf": [{"minItems": 2, "uniqueItems": True}, {"minItems": 2, "items": {"const": 0}}]}
    assert verdicts(more, "[0,1]", "[0,0]", "[1,1]", "[0]") == [True, True, False, False]
    evaluated = {
        "type": "array",
        "anyOf": [{"items": {"type": "integer"}}, {"prefixItems": [{"type": "integer"}]}],
        "unevaluatedItems": {"type": "string"},
    }
    assert verdicts(evaluated, "[0,1]", '[0,"a"]', '["a"]', "[null]") == [True, True, False, False]


def test_demands_that_contradict_each_other() -> None:
    schema: dict[str, Any] = {"type": ["array", "null"], "allOf": [_exactly(1), _exactly(2)], **DEFINED}
    assert verdicts(schema, "[0]", "[0,0]", "null") == [False, False, True]
    few: dict[str, Any] = {"type": ["array", "null"], "allOf": [_exactly(3), {"maxItems": 2}], **DEFINED}
    assert verdicts(few, "[0,0]", "[0,0,0]", "null") == [False, False, True]
