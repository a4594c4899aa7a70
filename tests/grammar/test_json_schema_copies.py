"""Schemas that hold the same schema twice, word by word."""

import json
from typing import Any

import pytest
from finite_texts import verdicts

import constrain


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
