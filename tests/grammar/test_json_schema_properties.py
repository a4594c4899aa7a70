"""Random schemas and random instances, judged by the jsonschema package."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive import NaiveRecognizer

from constrain.errors import SchemaError
from constrain.grammar.json_schema import from_json_schema

NAMES = ["a", "b", "c", "é"]
names = st.sampled_from(NAMES)
scalars = st.sampled_from([None, True, False, 0, 1, 2, -1, 1.5, 0.1, 10, "", "a", "ab", "é", "b1", "\U0001f600"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
bounds = st.sampled_from([-1, 0, 0.1, 1, 1.5, 2, 10])
counts = st.integers(0, 3)
NUMBER = {"minimum": bounds, "maximum": bounds, "exclusiveMinimum": bounds, "exclusiveMaximum": bounds}
STRING = {"minLength": counts, "maxLength": counts, "pattern": st.sampled_from(["^a", "b", "^[ab]*$", "1$", "^.$"])}


def combinations(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schema objects with a few keywords about parts, and those about scalars."""
    keywords = {
        "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, min_size=1, max_size=4),
        "const": values,
        "properties": st.dictionaries(names, inner, max_size=3),
        "required": st.lists(names, max_size=2, unique=True),
        "additionalProperties": inner,
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "minItems": counts,
        "maxItems": counts,
        "anyOf": st.lists(inner, min_size=1, max_size=3),
        "$ref": st.sampled_from(["#", "#/$defs/x", "#/$defs/y"]),
        **NUMBER,
        **STRING,
    }
    chosen = st.sets(st.sampled_from(sorted(keywords)), min_size=1, max_size=4)
    return chosen.flatmap(lambda words: st.fixed_dictionaries({word: keywords[word] for word in sorted(words)}))


simple = (
    st.booleans() | st.builds(lambda name: {"type": name}, types) | st.builds(lambda value: {"const": value}, values)
)
schemas = st.recursive(simple, combinations, max_leaves=6)


def in_order(value: Any) -> Any:
    """The value with all names in the one order that every schema here has."""
    if isinstance(value, dict):
        return {name: in_order(value[name]) for name in NAMES if name in value}
    return [in_order(item) for item in value] if isinstance(value, list) else value


def sorted_schema(schema: Any) -> Any:
    """The schema with properties, required and constant objects in that order too."""
    if isinstance(schema, list):
        return [sorted_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {}
    for keyword, value in schema.items():
        if keyword == "properties":
            # All names are declared, so that additional ones have no order of their own.
            other = schema.get("additionalProperties", True)
            result[keyword] = {name: sorted_schema(value.get(name, other)) for name in NAMES}
        elif keyword in ("enum", "const"):
            result[keyword] = in_order(value)
        elif keyword == "required":
            result[keyword] = sorted(value, key=NAMES.index)
        else:
            result[keyword] = sorted_schema(value)
    if {"required", "additionalProperties"} & schema.keys() and "properties" not in schema:
        other = schema.get("additionalProperties", True)
        result["properties"] = {name: sorted_schema(other) for name in NAMES}
    return result


@settings(max_examples=500)
@given(combinations(schemas), schemas, schemas, st.lists(values, min_size=5, max_size=12))
def test_the_language_is_what_is_valid(root: Any, first: Any, second: Any, instances: list[Any]) -> None:
    schema = sorted_schema({**root, "$defs": {"x": first, "y": second}})
    validator = jsonschema.Draft202012Validator(schema)
    try:
        recognizer: NaiveRecognizer | None = NaiveRecognizer(from_json_schema(schema))
    except SchemaError as error:
        assume("leads back to itself" not in error.reason)
        recognizer = None
        reason = error.reason
    for instance in map(in_order, instances):
        text = json.dumps(instance, ensure_ascii=False)
        if recognizer is None:
            assert not validator.is_valid(instance), f"{text}, and yet {reason}"
        else:
            assert recognizer.accepts(text.encode()) == validator.is_valid(instance), text
