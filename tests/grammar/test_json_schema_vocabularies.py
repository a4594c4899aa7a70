"""Metaschemas that name the vocabularies of their schemas."""

from __future__ import annotations

from typing import Any

import pytest
import referencing
from naive import NaiveRecognizer
from referencing.jsonschema import DRAFT202012

from constrain.errors import SchemaError
from constrain.grammar.json_schema import from_json_schema

OWN = "https://example.org/meta"


def registry(vocabularies: dict[str, Any], draft: str = "2020-12") -> referencing.Registry[Any]:
    named = {
        name if ":" in name else f"https://json-schema.org/draft/{draft}/vocab/{name}": required
        for name, required in vocabularies.items()
    }
    contents = {"$schema": f"https://json-schema.org/draft/{draft}/schema", "$id": OWN, "$vocabulary": named}
    return referencing.Registry().with_resource(OWN, DRAFT202012.create_resource(contents))


def accepts(schema: dict[str, Any], text: str, vocabularies: dict[str, Any], **options: Any) -> bool:
    ir = from_json_schema({"$schema": OWN, **schema}, registry=registry(vocabularies), **options)
    return NaiveRecognizer(ir).accepts(text.encode())


def test_keywords_of_other_vocabularies_do_not_count() -> None:
    schema = {"properties": {"a": {"minimum": 10}, "b": False}}
    assert accepts(schema, '{"a": 1}', {"core": True, "applicator": True})
    assert not accepts(schema, '{"b": 1}', {"core": True, "applicator": True})
    assert not accepts(schema, '{"a": 1}', {"core": True, "applicator": True, "validation": True})
    assert accepts(schema, '{"b": 1}', {"core": True, "validation": True})
    ir = from_json_schema({"$schema": OWN, "minimum": 10}, registry=registry({"core": True}))
    assert "'minimum'" in ir.warnings[0]


def test_formats_as_the_vocabulary_says() -> None:
    schema = {"type": "string", "format": "ipv4"}
    base = {"core": True, "validation": True}
    for required in (True, False):
        assert not accepts(schema, '"a"', {**base, "format-assertion": required}, formats="annotate")
    assert accepts(schema, '"a"', {**base, "format-annotation": True}, formats="annotate")
    assert accepts(schema, '"a"', base)


def test_unknown_vocabularies() -> None:
    assert not accepts({"type": "string"}, "1", {"validation": True, "https://example.org/own": False})
    with pytest.raises(SchemaError, match=r"example\.org/own") as caught:
        accepts({"type": "string"}, "1", {"validation": True, "https://example.org/own": True})
    assert caught.value.pointer == "#/$schema"


def test_draft_2019() -> None:
    schema = {"$schema": OWN, "items": [{"type": "string"}], "unevaluatedItems": False}
    ir = from_json_schema(schema, registry=registry({"core": True, "applicator": True, "validation": True}, "2019-09"))
    assert NaiveRecognizer(ir).accepts(b'["a"]')
    assert not NaiveRecognizer(ir).accepts(b'["a", 1]')


def test_without_vocabularies_or_registry_it_is_the_newest_draft() -> None:
    contents = DRAFT202012.create_resource({"$id": OWN})
    known = referencing.Registry().with_resource(OWN, contents)
    for options in ({}, {"registry": known}, {"registry": referencing.Registry()}):
        ir = from_json_schema({"$schema": OWN, "minimum": 10}, **options)
        assert not NaiveRecognizer(ir).accepts(b"1")
