"""What is worked out once for many: sets made of the same patterns, and schemas that hold together in any order."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from naive import NaiveRecognizer

from constrain.grammar.json_schema import from_json_schema
from constrain.grammar.json_schema.lexical.texts import Pattern, Text, Words, every, some, without
from constrain.grammar.json_schema.normal.count_texts import count_texts

PATTERNS = ["a", "^b", "c.?$", "^..?$"]
STRINGS = ["".join(letters) for size in range(4) for letters in itertools.product("abc", repeat=size)]
WHOLE = Pattern("^[abc]{0,3}$")


@pytest.mark.parametrize("signs", list(itertools.product([True, False], repeat=len(PATTERNS))))
def test_sets_of_the_same_patterns_are_counted_each(signs: tuple[bool, ...]) -> None:
    parts: list[Text] = [
        Pattern(each) if sign else without(Pattern(each)) for each, sign in zip(PATTERNS, signs, strict=True)
    ]
    found = [
        [bool(re.search(each, string)) == sign for each, sign in zip(PATTERNS, signs, strict=True)]
        for string in STRINGS
    ]
    assert count_texts(every(WHOLE, *parts), 1000) == sum(map(all, found))
    assert count_texts(every(WHOLE, some(*parts)), 1000) == sum(map(any, found))
    assert count_texts(every(WHOLE, without(Words(frozenset(("ab", "d")))), *parts), 1000) == sum(
        all(each) for each, string in zip(found, STRINGS, strict=True) if string != "ab"
    )


@pytest.mark.parametrize("kinds", [["object"], ["object", "string"], ["string"]])
def test_the_order_of_schemas_is_that_of_members(kinds: list[str]) -> None:
    one: dict[str, Any] = {"type": kinds, "minLength": 1, "properties": {"a": {"const": 1}}, "required": ["a"]}
    other: dict[str, Any] = {"type": kinds, "maxLength": 2, "properties": {"b": {"const": 1}}, "required": ["b"]}
    schema = {
        "type": "object",
        "$defs": {"one": one, "other": other},
        "allOf": [
            {"properties": {"x": {"$ref": "#/$defs/one"}, "y": {"$ref": "#/$defs/other"}}},
            {"properties": {"x": {"$ref": "#/$defs/other"}, "y": {"$ref": "#/$defs/one"}}},
        ],
    }
    texts = {"object": ['{"a":1,"b":1}', '{"b":1,"a":1}'], "string": ['"uv"', '""', '"uvw"']}
    grammar = from_json_schema(schema, whitespace="compact")
    for x, y in itertools.product(itertools.chain.from_iterable(texts.values()), repeat=2):
        expected = all(
            (text in ordered and "object" in kinds) or (text == '"uv"' and "string" in kinds)
            for text, ordered in ((x, texts["object"][:1]), (y, texts["object"][1:]))
        )
        text = f'{{"x":{x},"y":{y}}}'
        assert json.loads(text)
        assert NaiveRecognizer(grammar).accepts(text.encode()) == expected, text
