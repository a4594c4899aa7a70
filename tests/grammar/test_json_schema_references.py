"""Where references lead: anchors, embedded resources, dynamic scope, other documents."""

from __future__ import annotations

import json
from typing import Any

import pytest
import referencing
from naive import NaiveRecognizer
from referencing.jsonschema import DRAFT202012

from constrain.errors import SchemaError
from constrain.grammar.json_schema import from_json_schema

D4 = "http://json-schema.org/draft-04/schema#"
D7 = "http://json-schema.org/draft-07/schema#"
D2019 = "https://json-schema.org/draft/2019-09/schema"

TREE = {
    "$id": "http://x.org/tree",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"data": True, "kids": {"type": "array", "items": {"$dynamicRef": "#node"}}},
}
STRICT_TREE = {
    "$id": "http://x.org/strict",
    "$dynamicAnchor": "node",
    "$ref": "tree",
    "unevaluatedProperties": False,
    "$defs": {"tree": TREE},
}

CASES: list[tuple[Any, list[Any], list[Any]]] = [
    ({"$ref": "#x", "$defs": {"d": {"$anchor": "x", "const": 1}}}, [1], [2]),
    ({"$schema": D7, "$ref": "#x", "definitions": {"d": {"$id": "#x", "const": 1}}}, [1], [2]),
    ({"$schema": D4, "$ref": "#x", "definitions": {"d": {"id": "#x", "enum": [1]}}}, [1], [2]),
    ({"$id": "http://x.org/a/b", "$ref": "c", "$defs": {"d": {"$id": "/a/c", "const": 1}}}, [1], [2]),
    ({"$id": "http://x.org/", "$ref": "c#y", "$defs": {"d": {"$id": "c", "$defs": {"e": {"$anchor": "y", "const": 1}}},
      "f": {"$anchor": "y", "const": 2}}}, [1], [2]),
    ({"$id": "http://x.org/", "$ref": "c#/$defs/e", "$defs": {"d": {"$id": "c", "$defs": {"e": {"const": 1}}}}},
     [1], [2]),
    # An $id among values names nothing.
    ({"$id": "http://x.org/", "$ref": "c", "enum": [{"$id": "c"}, 1], "$defs": {"d": {"$id": "c", "const": 1}}},
     [1], [{"$id": "c"}]),
    (TREE, [{"kids": [{"kids": [], "x": 1}]}], [{"kids": [1]}]),
    (STRICT_TREE, [{"data": 1, "kids": [{"kids": []}]}], [{"x": 1}, {"kids": [{"x": 1}]}]),
    ({"$schema": D2019, "$id": "http://x.org/s", "$recursiveAnchor": True, "$ref": "t", "unevaluatedProperties": False,
      "$defs": {"t": {"$id": "t", "$recursiveAnchor": True, "properties": {"k": {"$recursiveRef": "#"}}}}},
     [{"k": {"k": {}}}], [{"x": 1}, {"k": {"x": 1}}]),
    ({"$schema": D2019, "properties": {"k": {"$recursiveRef": "#"}}, "additionalProperties": False},
     [{"k": {}}], [{"k": {"x": 1}}]),
    # The same two branches are never exactly one.
    ({"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}, {"const": 1}], "$defs": {"a": {"const": 2}}}, [1], [2]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "valid", "invalid"), CASES, ids=[json.dumps(case[0])[:70] for case in CASES])
def test_where_references_lead(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    recognizer = NaiveRecognizer(from_json_schema(schema))
    for instance in valid:
        assert recognizer.accepts(json.dumps(instance).encode()), instance
    for instance in invalid:
        assert not recognizer.accepts(json.dumps(instance).encode()), instance


REMOTE = {"$id": "http://x.org/name", "$defs": {"short": {"maxLength": 2}}, "type": "string", "$ref": "#/$defs/short"}


def registry() -> Any:
    return referencing.Registry().with_resource("http://x.org/name", DRAFT202012.create_resource(REMOTE))


def test_other_documents_come_from_the_registry() -> None:
    schema = {"items": {"$ref": "http://x.org/name"}, "type": "array"}
    recognizer = NaiveRecognizer(from_json_schema(schema, registry=registry()))
    assert recognizer.accepts(b'["a","bc"]')
    assert not recognizer.accepts(b'["abc"]')
    assert not recognizer.accepts(b"[1]")


def test_a_document_that_is_not_in_the_registry() -> None:
    schema = {"properties": {"a": {"$ref": "http://x.org/other"}}}
    with pytest.raises(SchemaError, match="not in the registry") as caught:
        from_json_schema(schema, registry=registry())
    assert caught.value.pointer == "#/properties/a/$ref"
    with pytest.raises(SchemaError, match="none was given"):
        from_json_schema(schema)


def test_an_error_in_another_document_names_it() -> None:
    resource = DRAFT202012.create_resource({"properties": {"a": {"type": "strin"}}})
    other = referencing.Registry().with_resource("http://x.org/bad", resource)
    with pytest.raises(SchemaError) as caught:
        from_json_schema({"$ref": "http://x.org/bad"}, registry=other)
    assert caught.value.pointer == "http://x.org/bad#/properties/a/type"


@pytest.mark.parametrize(
    "schema",
    [
        {"$dynamicRef": "#nothing"},
        {"$schema": D2019, "$recursiveRef": "#/x"},
        {"$dynamicRef": 5},
        {"properties": {"a": {"$ref": "#a"}}, "x": {"$anchor": "a"}},
    ],
)
def test_references_that_are_wrong(schema: Any) -> None:
    with pytest.raises(SchemaError) as caught:
        from_json_schema(schema)
    assert caught.value.pointer.endswith("ef")


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": "#"}]},
        {"oneOf": [{"$ref": "#"}]},
        {"not": {"$ref": "#"}},
        {"if": {"$ref": "#"}, "then": {"type": "null"}},
        {"properties": {"a": {"$ref": "#/properties/a", "minimum": 1}}},
    ],
)
def test_circles_without_a_way_out(schema: Any) -> None:
    with pytest.raises(SchemaError, match="leads back to itself"):
        from_json_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"a": {"$anchor": "q", "type": "integer"}, "b": {"$anchor": "q"}}, "$ref": "#q"},
        {
            "$defs": {"a": {"$id": "http://x.org/q"}, "b": {"$id": "http://x.org/q", "const": 1}},
            "$ref": "http://x.org/q",
        },
        {"$schema": D7, "definitions": {"a": {"$id": "#q"}, "b": {"$id": "#q", "const": 1}}, "items": {"$ref": "#q"}},
        {"$dynamicAnchor": "q", "$defs": {"a": {"$dynamicAnchor": "q", "const": 1}}, "items": {"$dynamicRef": "#q"}},
    ],
)
def test_a_name_of_two_schemas(schema: Any) -> None:
    with pytest.raises(SchemaError, match="may be either of two schemas: #"):
        from_json_schema(schema)
    # Where nothing refers to it, or the two are copies, it does no harm.
    from_json_schema({**schema, "items": True} if "items" in schema else {**schema, "$ref": "#/$defs/a"})


def test_copies_of_a_schema_with_a_name() -> None:
    copies = [{"$anchor": "q", "type": "integer"}, {"$anchor": "q", "type": "integer"}]
    grammar = NaiveRecognizer(from_json_schema({"$defs": {"a": copies[0], "b": copies[1]}, "$ref": "#q"}))
    assert grammar.accepts(b"12")
    assert not grammar.accepts(b'"12"')
