"""A schema that nothing satisfies: the error names the two parts that contradict each other, by JSON pointer."""

from __future__ import annotations

from typing import Any

import pytest

import constrain
from constrain.errors import SchemaError

VOCABULARY = constrain.Vocabulary([bytes((byte,)) for byte in range(256)])


@pytest.mark.parametrize(
    ("schema", "places"),
    [
        ({"type": "string", "const": 5}, ["#/type", "#/const"]),
        ({"type": "array", "contains": {"const": 1}, "maxItems": 0}, ["#/contains", "#/maxItems"]),
        ({"type": "array", "contains": {"type": "integer"}, "items": {"type": "string"}}, ["#/contains", "#/items"]),
        (
            {"type": "array", "items": {"enum": [1, 2]}, "minItems": 3, "uniqueItems": True},
            ["#/minItems", "#/uniqueItems"],
        ),
        (
            {"type": "array", "items": {"pattern": "^a$", "type": "string"}, "minItems": 2, "uniqueItems": True},
            ["#/minItems", "#/uniqueItems", "#/items"],
        ),
        (
            {"type": "array", "allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}], "maxItems": 1},
            ["#/allOf/0/contains", "#/allOf/1/contains", "#/maxItems"],
        ),
        ({"type": "integer", "enum": ["a", "b"]}, ["#/type", "#/enum"]),
        ({"enum": [1, 2], "const": 3}, ["#/enum", "#/const"]),
        ({"allOf": [{"type": "string"}, {"type": "number"}]}, ["#/allOf/0/type", "#/allOf/1/type"]),
        ({"allOf": [{"enum": ["a"]}, {"enum": ["c"]}]}, ["#/allOf/0/enum", "#/allOf/1/enum"]),
        ({"type": "number", "minimum": 5, "maximum": 3}, ["#/minimum", "#/maximum"]),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, ["#/exclusiveMinimum", "#/exclusiveMax"]),
        ({"type": "number", "minimum": 0.1, "maximum": 0.2, "multipleOf": 1}, ["#/minimum", "#/multipleOf"]),
        ({"type": "string", "pattern": "^a", "allOf": [{"pattern": "^b"}]}, ["#/pattern", "#/allOf/0/pattern"]),
        ({"type": "string", "format": "date", "maxLength": 5}, ["#/format", "#/maxLength"]),
        ({"type": "string", "pattern": "^a", "not": {"pattern": "^a"}}, ["#/pattern", "#/not/pattern"]),
        ({"type": "string", "not": {"type": "string"}}, ["(at #)", "#/not"]),
        ({"not": {}}, ["every value", "#/not"]),
        ({"type": "array", "minItems": 3, "maxItems": 2}, ["#/minItems", "#/maxItems"]),
        ({"type": "array", "items": False, "minItems": 1}, ["#/items", "#/minItems"]),
        ({"type": "array", "prefixItems": [{}, False], "minItems": 2}, ["#/prefixItems/1", "#/minItems"]),
        ({"type": "object", "required": ["a"], "properties": {"a": False}}, ["#/required", "#/properties/a"]),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, ["#/required", "#/additionalProper"]),
        ({"type": "object", "required": ["a", "b"], "maxProperties": 1}, ["#/required", "#/maxProperties"]),
        ({"type": "object", "propertyNames": {"pattern": "^x"}, "required": ["a"]}, ["#/propertyNames", "#/required"]),
        (
            {"type": "object", "patternProperties": {"^a": False}, "required": ["ab"]},
            ["#/patternProperties/%5Ea", "#/required"],
        ),
        (
            {
                "type": "object",
                "required": ["a"],
                "properties": {"a": {"type": "string"}},
                "allOf": [{"properties": {"a": {"type": "null"}}}],
            },
            ["#/properties/a/type", "#/allOf/0/properties/a/type"],
        ),
        ({"oneOf": [{"type": "string"}, {"type": "string"}]}, ["#/oneOf/0", "#/oneOf/1"]),
        ({"oneOf": [{}, {}]}, ["#/oneOf/0", "#/oneOf/1"]),
        (
            {"type": "object", "dependentRequired": {"a": ["b"]}, "required": ["a"], "properties": {"b": False}},
            ["#/required", "#/dependentRequired/a", "#/properties/b"],
        ),
        ({"type": "object", "dependentSchemas": {"a": False}, "required": ["a"]}, ["#/dependentSchemas/a", "#/requi"]),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, ["#/$ref"]),
        ({"type": "array", "items": {"$ref": "#/$defs/x"}}, ["#/items/$ref", "leads nowhere"]),
    ],
)
def test_both_parts_are_named(schema: Any, places: list[str]) -> None:
    with pytest.raises(SchemaError) as caught:
        constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, VOCABULARY)
    for place in places:
        assert place in str(caught.value)
