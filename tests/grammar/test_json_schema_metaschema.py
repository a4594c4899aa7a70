"""A document that is no schema is refused, wherever it is wrong: compared with the metaschemas themselves."""

from __future__ import annotations

import copy
import random
from typing import Any

import jsonschema
import pytest

import constrain
from constrain.errors import SchemaError

DRAFTS = {
    "http://json-schema.org/draft-04/schema#": jsonschema.Draft4Validator,
    "http://json-schema.org/draft-06/schema#": jsonschema.Draft6Validator,
    "http://json-schema.org/draft-07/schema#": jsonschema.Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": jsonschema.Draft202012Validator,
}


def unreached(part: Any) -> dict[str, Any]:
    """A schema with a part that nothing leads to."""
    return {"type": "string", "$defs": {"a/b": {"properties": {"x": part}}}}


@pytest.mark.parametrize(
    ("part", "pointer"),
    [
        (5, ""),
        ([], ""),
        ({"type": "any"}, "/type"),
        ({"type": ["string", "string"]}, "/type"),
        ({"title": 1}, "/title"),
        ({"$comment": ["c"]}, "/$comment"),
        ({"required": True}, "/required"),
        ({"required": ["a", "a"]}, "/required"),
        ({"minLength": -1}, "/minLength"),
        ({"maxItems": 1.5}, "/maxItems"),
        ({"multipleOf": 0}, "/multipleOf"),
        ({"exclusiveMinimum": True}, "/exclusiveMinimum"),
        ({"enum": "a"}, "/enum"),
        ({"allOf": []}, "/allOf"),
        ({"anyOf": [{}, {"not": 1}]}, "/anyOf/1/not"),
        ({"properties": []}, "/properties"),
        ({"patternProperties": {"^a": None}}, "/patternProperties/%5Ea"),
        ({"dependentRequired": {"a": ["b", 1]}}, "/dependentRequired"),
        ({"dependencies": {"a": "b"}}, "/dependencies/a"),
        ({"dependentSchemas": {"a": ["b"]}}, "/dependentSchemas/a"),
        ({"$anchor": "1a"}, "/$anchor"),
        ({"$id": "#place"}, "/$id"),
        ({"$vocabulary": {"https://example.org/v": 1}}, "/$vocabulary"),
        ({"readOnly": "no"}, "/readOnly"),
        ({"contentSchema": 1}, "/contentSchema"),
        ({"uniqueItems": 1}, "/uniqueItems"),
    ],
)
def test_what_nothing_leads_to_is_checked(part: Any, pointer: str) -> None:
    with pytest.raises(SchemaError) as caught:
        constrain.Grammar.from_json_schema(unreached(part))
    assert caught.value.pointer == "#/$defs/a~1b/properties/x" + pointer


def test_repetition_is_a_warning_for_the_lenient() -> None:
    schema = unreached({"required": ["a", "a"]})
    grammar = constrain.Grammar.from_json_schema(schema, lenient=True)
    assert any("names something twice" in warning for warning in grammar.warnings)
    of_draft_4 = {"$schema": "http://json-schema.org/draft-04/schema#", "required": []}
    grammar = constrain.Grammar.from_json_schema(of_draft_4, lenient=True)
    assert any("at least one name" in warning for warning in grammar.warnings)


def test_draft_4_has_rules_of_its_own() -> None:
    draft = {"$schema": "http://json-schema.org/draft-04/schema#"}
    for part in (True, {"not": False}, {"required": []}, {"exclusiveMinimum": True}, {"enum": [1, 1.0]}, {"items": []}):
        with pytest.raises(SchemaError):
            constrain.Grammar.from_json_schema({**draft, "type": "null", "definitions": {"a": part}})
    fine = {"minimum": 1, "exclusiveMinimum": True, "additionalProperties": False}
    constrain.Grammar.from_json_schema({**draft, "type": "null", "definitions": {"a": fine}})


def test_what_is_no_schema_may_be_anything() -> None:
    for keyword in ("default", "const", "enum", "examples"):
        constrain.Grammar.from_json_schema({"type": "string", "$defs": {"a": {keyword: [{"type": 5}, {"not": 1}]}}})
    constrain.Grammar.from_json_schema({"type": "string", "$defs": {"a": {"x-own": {"type": 5}}}})


def test_a_dict_within_itself_is_gone_through_once() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["again"] = schema
    schema["$defs"] = {"wrong": {"items": schema, "title": 1}}
    with pytest.raises(SchemaError, match="title must be a string"):
        constrain.Grammar.from_json_schema(schema)


# -- mutations -----------------------------------------------------------------------------------

BASES: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"]},
    {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"enum": [1, "a", None]}]}, "minItems": 1},
    {"oneOf": [{"type": "number", "multipleOf": 2}, {"not": {"type": "object"}}], "title": "t"},
    {"type": ["string", "null"], "pattern": "^a", "format": "x-own", "default": {"a": 1}},
    {"definitions": {"d": {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": {}}}},
]
WORDS = """title description $comment pattern minimum exclusiveMinimum multipleOf minLength maxItems type enum required
    examples dependentRequired dependencies properties patternProperties $defs definitions allOf oneOf items contains
    additionalItems additionalProperties not if propertyNames readOnly uniqueItems prefixItems minContains const default
    unevaluatedItems deprecated dependentSchemas contentMediaType contentSchema""".split()  # noqa: SIM905
VALUES: list[Any] = [
    *(None, True, False, 1, -1, 0.5, "x", "string", [], ["a"], ["a", "a"], [1], {}, {"a": 1}, {"type": "any"}),
    *([{}], [{"type": "null"}], {"a": {}}, {"a": ["b"]}, {"a": ["b", "b"]}, {"title": 2}, ["string", "null"]),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        found += places(part, (*path, key))
    return found


def reason_to_refuse(schema: Any) -> str | None:
    try:
        constrain.Grammar.from_json_schema(schema)
    except SchemaError as error:
        return error.reason
    return None


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_same_as_the_metaschema(draft: str) -> None:
    rng = random.Random(5)
    validator = DRAFTS[draft](DRAFTS[draft].META_SCHEMA)
    refused = taken = 0
    for _ in range(500):
        schema: dict[str, Any] = {"$schema": draft, **copy.deepcopy(rng.choice(BASES))}
        for _ in range(rng.randrange(1, 3)):
            path = rng.choice([path for path in places(schema) if path != ("$schema",)])
            part: Any = schema
            for key in path:
                part = part[key]
            if isinstance(part, dict):
                part[rng.choice(WORDS)] = copy.deepcopy(rng.choice(VALUES))
            elif isinstance(part, list):
                part.append(rng.choice(VALUES))
        is_schema = validator.is_valid(schema)
        reason = reason_to_refuse(schema)
        about_values = ("nothing is valid", "not supported", "supported for", "can never be valid")
        if reason is None or any(words in reason for words in about_values):
            assert is_schema or reason is not None, schema
            taken += 1
        else:
            assert not is_schema, (schema, reason)
            refused += 1
    assert min(refused, taken) > 100
