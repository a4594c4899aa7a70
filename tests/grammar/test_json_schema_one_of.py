"""``oneOf`` of objects that one property tells apart."""

import sys
from typing import Any

import pytest
from finite_texts import verdicts
from processor_time import processor_time

import constrain
from constrain.grammar.json_schema.normal.intersect import are_apart, intersect_nodes


def comparisons(kinds: list[Any]) -> int:
    """How often schemas are compared for a ``oneOf`` of objects with these for the last required name."""
    sizes = {name: {"type": "integer"} for name in ("left", "top", "width", "height", "depth")}
    schema = {
        "oneOf": [
            {
                "type": "object",
                "properties": {**sizes, "kind": kind, f"more {index}": {"type": "string"}},
                "required": [*sizes, "kind"],
            }
            for index, kind in enumerate(kinds)
        ]
    }
    calls = 0

    def count(frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code in (are_apart.__code__, intersect_nodes.__code__)

    sys.setprofile(count)
    try:
        constrain.Grammar.from_json_schema(schema)
    finally:
        sys.setprofile(None)
    return calls


def test_the_name_that_tells_them_apart_may_be_any() -> None:
    assert comparisons([{"const": f"kind {index}"} for index in range(24)]) == 0
    assert comparisons([{"type": "string"}, {"type": "integer"}]) > 0


def _resources(count: int) -> list[dict[str, Any]]:
    """Kinds of objects that say nothing of their type, so that each allows everything else."""
    return [
        {
            "properties": {"kind": {"const": f"R{index}"}, "id": {"type": "string"}},
            "required": ["kind"],
            "additionalProperties": False,
        }
        for index in range(count)
    ]


def test_many_branches_without_a_type() -> None:
    values = ["1", "null", "[]", '"a"', "true", "{}"]
    schema = {"oneOf": _resources(1000)}
    assert verdicts(schema, '{"kind": "R7", "id": "a"}', '{"kind": "R999"}', *values) == [True, True] + 6 * [False]


def test_types_that_two_branches_allow_whole() -> None:
    texts = ["1", '"a"', "null", "true", "[]", '{"kind": "R0"}', '{"kind": "R2"}']
    # All branches allow every number, and so on: none is left, even where a branch says more of it.
    limited = {"oneOf": [*_resources(2), {"type": ["number", "string"], "minimum": 1}]}
    assert verdicts(limited, *texts) == 5 * [False] + [True, False]
    # Only one branch allows all strings, and another one some of them.
    strings = {"oneOf": [{"type": ["string", "null"]}, {"type": ["string", "null"], "maxLength": 1}]}
    assert verdicts(strings, '"a"', '"ab"', "null") == [False, True, False]
    booleans = {"oneOf": [{"type": "boolean"}, {"enum": [True]}, {"enum": [True, None]}]}
    assert verdicts(booleans, "true", "false", "null") == [False, True, True]
    # Members that a branch evaluates are seen in objects, and other types are told apart as ever.
    seen = {"oneOf": _resources(3), "unevaluatedProperties": False}
    assert verdicts(seen, "1", '{"kind": "R1", "id": "x"}', '{"kind": "R1", "x": 1}') == [False, True, False]


def test_each_two_branches_of_many_cost_no_combination() -> None:
    # The member "more" is no list of values in one branch, so that no branch counts as a list.
    branches = _resources(160)
    for index, branch in enumerate(branches):
        branch["required"] = ["kind", "more"]
        branch["properties"]["more"] = {"type": "string", "maxLength": index}
    branches.append({"type": "object", "required": ["other"], "additionalProperties": {"type": "integer"}})
    texts = ['{"kind": "R3", "more": "abc"}', '{"kind": "R3", "more": "abcd"}', '{"other": 1}', "1"]
    assert verdicts({"oneOf": branches}, *texts) == [True, False, True, False]
    events = [{"anyOf": [branch, {**branch, "required": ["kind"]}]} for branch in branches[:120]]
    assert verdicts({"oneOf": events}, '{"kind": "R3"}', '{"kind": "R3", "more": "abcd"}', "1") == [True, False, False]


def test_what_tells_many_branches_apart_may_be_required_beside_them_only() -> None:
    members = [{f"p{index}": {"type": "string"}, "size": {"type": "integer", "maximum": index}} for index in range(40)]
    kinds: list[dict[str, Any]] = [
        {
            "properties": {
                "type": {"enum": [f"K{index}"]},
                "of": {"type": "object", "properties": own, "required": [*own]},
            }
        }
        for index, own in enumerate(members)
    ]
    # What is of this kind, and of no other one, has as many alternatives as there are sets of kinds.
    kinds.append({"properties": {"type": {"enum": ["any"]}, "of": {"type": "object"}}})
    named = {"properties": {"name": {"type": "string"}}}
    schema = {"type": "object", "required": ["type", "of"], "allOf": [named, {"oneOf": kinds}]}
    texts = ['{"name": "a", "type": "K7", "of": {"p7": "", "size": 7}}', '{"type": "K7", "of": {"p8": ""}}', "{}"]
    assert verdicts(schema, *texts) == [True, False, False]
    evaluated = schema | {"unevaluatedProperties": False}
    assert verdicts(evaluated, *texts[:1], '{"type": "K7", "of": {"p7": ""}, "x": 1}') == [True, False]


def test_choices_of_the_same_choices_are_worked_out_once_each() -> None:
    # As many ways lead to the last ones as there are sets of levels; all of a kind are taken twice, so nothing is left.
    levels = 24
    choices: dict[str, Any] = {
        f"{level}{kind}": {"oneOf": [{"$ref": f"#/$defs/{level + 1}a"}, {"$ref": f"#/$defs/{level + 1}b"}]}
        for level in range(levels)
        for kind in "ab"
    }
    last = {f"{levels}{kind}": {"properties": {"is": {"const": kind}}, "required": ["is"]} for kind in "ab"}
    for where in ({"oneOf": [{"$ref": "#/$defs/0a"}]}, {"allOf": [{"properties": {}}, {"$ref": "#/$defs/0a"}]}):
        with processor_time() as spent, pytest.raises(constrain.SchemaError, match="nothing is valid"):
            constrain.Grammar.from_json_schema({"type": "object", "$defs": {**choices, **last}, **where})
        assert spent.seconds < 2


def test_what_tells_kinds_apart_is_bound_by_rules_about_keys() -> None:
    # Excluded is what no member that is no string, or ``a``, is in; ``b`` tells a kind, and is a member as others are.
    some = {"anyOf": [{"additionalProperties": {"type": "string"}}, {"properties": {"a": True}}]}
    kind = {"properties": {"b": {"const": 1}}, **some, "unevaluatedProperties": {}}
    assert verdicts({"type": "object", "not": kind}, '{"b": 1}', '{"b": 2}', '{"c": 1}') == [False, True, False]
    assert verdicts({"oneOf": [{"type": "object"}, kind]}, '{"b": 1}', '{"b": 2}', "{}", "1") == [
        False,
        True,
        False,
        True,
    ]


def test_each_two_branches_are_compared_once() -> None:
    # The same kind in all, so that it does not tell them apart, and another name that each forbids to all others.
    branches = [
        {
            "type": "object",
            "properties": {f"name {index}": True, "kind": {"type": "string"}},
            "required": [f"name {index}"],
            "additionalProperties": False,
        }
        for index in range(20)
    ]
    pairs = len(branches) * (len(branches) - 1) // 2
    constrain.Grammar.from_json_schema({"oneOf": branches}, max_work=pairs + 50)
    assert verdicts({"oneOf": branches}, '{"name 3":1,"kind":""}', '{"name 3":1,"name 4":1}') == [True, False]
