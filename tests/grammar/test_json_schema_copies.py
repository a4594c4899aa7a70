"""Schemas that hold the same schema twice, word by word."""

import json
from typing import Any

import pytest
from finite_texts import verdicts

import constrain
from constrain.grammar.json_schema import from_json_schema


def _versions(*more: dict[str, Any]) -> str:
    """Versions of one object, with copies of what they share; as text, so that no two parts are the same dict."""
    shared = {f"list {index}": {"type": "array", "minItems": 2, "items": {"type": "integer"}} for index in range(6)}
    shared["part"] = {"type": "object", "required": ["x"], "properties": {"x": {"items": {"required": ["u"]}}}}
    return json.dumps(
        {"oneOf": [{"type": "object", "required": ["part"], "properties": {**shared, **one}} for one in more]}
    )


def test_copies_cost_no_alternatives() -> None:
    versions = _versions({"e": {"type": "string"}}, {"e": {"type": "integer"}})
    constrain.Grammar.from_json_schema(versions, max_work=100)
    texts = ('{"part":{"x":[{"u":1}]},"e":"s"}', '{"part":{"x":[]},"e":1}', '{"part":{"x":[]}}', '{"list 0":[1]}')
    assert verdicts(json.loads(versions), *texts) == [True, True, False, False]


def test_copies_exclude_each_other() -> None:
    with pytest.raises(constrain.SchemaError, match="nothing is valid"):
        constrain.Grammar.from_json_schema(_versions({}, {}))


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), ("1", 1), ([1], [True]), ({"a": 0}, {"a": False})])
def test_values_of_different_types_are_no_copies(one: Any, other: Any) -> None:
    schema = {"oneOf": [{"properties": {"v": {"enum": [value]}}, "required": ["v"]} for value in (one, other)]}
    texts = [json.dumps({"v": value}, separators=(",", ":")) for value in (one, other)]
    assert verdicts({**schema, "type": "object"}, *texts, '{"v":null}') == [True, True, False]


def test_references_of_copies_may_lead_to_different_places() -> None:
    schema = {
        "type": "object",
        "oneOf": [
            {
                "$id": f"https://example.com/{name}",
                "$defs": {"value": {"type": name}},
                "required": ["v"],
                "properties": {"v": {"type": "array", "items": {"$ref": "#/$defs/value"}}},
            }
            for name in ("string", "integer")
        ],
    }
    assert verdicts(schema, '{"v":["a"]}', '{"v":[1]}', '{"v":[]}', '{"v":[null]}') == [True, True, False, False]


def test_schemas_with_names_of_their_own_are_no_copies() -> None:
    schema = {
        "type": "object",
        "oneOf": [
            {
                "properties": {
                    "v": {"$id": f"https://example.com/{name}/", "items": {"$ref": "item"}},
                    "w": {"$id": f"https://example.com/{name}/item", "type": name},
                },
                "required": ["v"],
            }
            for name in ("string", "integer")
        ],
    }
    assert verdicts(schema, '{"v":["a"]}', '{"v":[1]}', '{"v":[]}') == [True, True, False]


def _records(names: int, values: list[Any]) -> dict[str, Any]:
    """An object of that many records, with one of the values in each in turn."""
    records = {}
    for index in range(names):
        items = {"type": "array", "items": {"const": values[index % len(values)]}}
        record = {"type": "object", "properties": {"a": items, "b": {"pattern": "^x"}}, "required": ["a"]}
        records[f"p{index}"] = record
    return {"type": "object", "properties": records}


def test_a_copy_is_written_once() -> None:
    schema = json.dumps(_records(40, [1]))
    referring = _records(40, [1])
    referring["$defs"] = {"record": referring["properties"]["p0"]}
    referring["properties"] = {name: {"$ref": "#/$defs/record"} for name in referring["properties"]}
    copied, shared = (from_json_schema(each).productions for each in (schema, json.dumps(referring)))
    assert len(copied) == len(shared) < 200


def test_what_is_alike_is_no_copy() -> None:
    schema = json.dumps(_records(6, [1, True, "1", [1], {"a": 1}, [True]]))
    for value, index in (("1", 0), ("true", 1), ('"1"', 2), ("[1]", 3), ('{"a":1}', 4), ("[true]", 5)):
        texts = [f'{{"p{place}":{{"a":[{value}]}}}}' for place in range(6)]
        assert verdicts(json.loads(schema), *texts) == [place == index for place in range(6)]


def test_copies_in_another_resource_are_no_copies() -> None:
    part = {"type": "object", "properties": {"v": {"$ref": "#/$defs/value"}}, "required": ["v"]}
    schema = {
        "type": "object",
        "properties": {
            "own": {"type": "array", "items": part},
            "other": {
                "$id": "https://example.com/other",
                "$defs": {"value": {"type": "null"}},
                "type": "array",
                "items": json.loads(json.dumps(part)),
            },
        },
        "$defs": {"value": {"type": "boolean"}},
    }
    texts = '{"own":[{"v":true}]}', '{"own":[{"v":null}]}', '{"other":[{"v":true}]}', '{"other":[{"v":null}]}'
    assert verdicts(schema, *texts) == [True, False, False, True]


def test_a_copy_is_a_schema_wherever_it_stands() -> None:
    # The first one is reached through what is no keyword, and so not gone through as a part of the document.
    wrong = {"type": "array", "items": {"type": "null"}, "contains": {"properties": {"x": {"required": 1}}}}
    schema = {"$ref": "#/parts/one", "parts": {"one": wrong}, "$defs": {"two": json.loads(json.dumps(wrong))}}
    with pytest.raises(constrain.SchemaError, match="required must be an array"):
        constrain.Grammar.from_json_schema(schema)


def test_values_that_are_no_json_are_no_copies() -> None:
    parts = {name: {"type": "array", "items": {"enum": {1, 2}}} for name in ("a", "b")}
    with pytest.raises(constrain.SchemaError, match="enum must be an array of values"):
        constrain.Grammar.from_json_schema({"type": "object", "properties": parts})
