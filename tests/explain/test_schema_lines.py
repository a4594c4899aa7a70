"""Which lines of a schema speak of which part of a text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrain.explain.schema_lines import lines_of, spans_of

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"$ref": "#/$defs/text"},
        "tags": {"items": {"type": "string"}},
        "pair": {"prefixItems": [{"const": 1}], "items": {"const": 2}},
        "a/b": True,
    },
    "additionalProperties": {"type": "null"},
    "$defs": {"text": {"type": "string"}},
}


def spoken(text: str) -> list[tuple[str, str]]:
    data = text.encode()
    return [(data[span.begin : span.end].decode(), span.pointer) for span in spans_of(json.dumps(SCHEMA), data)]


def test_members_and_items() -> None:
    text = '{"name": "Zoë", "tags": ["é", "b"], "pair": [1, 2], "a/b": 0, "x": null}'
    assert spoken(text) == [
        (text, "#"),
        ('"name": "Zoë"', "#/$defs/text"),
        ('"tags": ["é", "b"]', "#/properties/tags"),
        ('"é"', "#/properties/tags/items"),
        ('"b"', "#/properties/tags/items"),
        ('"pair": [1, 2]', "#/properties/pair"),
        ("1", "#/properties/pair/prefixItems/0"),
        ("2", "#/properties/pair/items"),
        ('"a/b": 0', "#/properties/a~1b"),
        ('"x": null', "#/additionalProperties"),
    ]


def test_a_text_that_breaks_off() -> None:
    assert spoken('{"tags": ["é"') == [
        ('{"tags": ["é"', "#"),
        ('"tags": ["é"', "#/properties/tags"),
        ('"é"', "#/properties/tags/items"),
    ]


def test_lines() -> None:
    text = json.dumps(SCHEMA, indent=2)
    shown = text.split("\n")
    lines = lines_of(text)
    assert lines["#"] == (0, len(shown) - 1)
    first, last = lines["#/properties/tags"]
    assert shown[first].strip() == '"tags": {'
    assert shown[last].strip() == "},"
    assert lines["#/properties/a~1b"][0] == lines["#/properties/a~1b"][1]
    assert set(lines) >= {span.pointer for span in spans_of(text, b'{"pair": [1, 2], "name": ""}')}


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("{", b"1"),
        ("true", b"nonsense"),
        ("true", b"\xff"),
        ('{"$ref": "#"}', b"1"),
        ('{"$ref": "#/nowhere"}', b"[1]"),
        ('{"$ref": 5, "properties": [], "items": 3}', b'{"a": [1]}'),
        ('{"items": {"$ref": "#"}}', b"[" * 5000),
        ("[" * 5000, b"1"),
    ],
)
def test_what_is_odd(schema: str, data: bytes) -> None:
    found: Any = spans_of(schema, data)
    assert all(span.pointer.startswith("#") for span in found)
    lines_of(schema)
