"""Patterns that match just one string: they are a name, or a value."""

import json
import re

import pytest
from finite_texts import verdicts

from constrain.grammar.json_schema.lexical.texts import Words, contains, pattern_text

_SYNTAX = "^$\\.*+?()[]{}|"


def test_every_printable_character() -> None:
    for character in map(chr, range(32, 127)):
        source = f"^{chr(92) if character in _SYNTAX else ''}{character}$"
        assert pattern_text(source) == Words(frozenset([character]))
    assert pattern_text("^(a\\|b|\\$ref|x-y)$") == Words(frozenset(["a|b", "$ref", "x-y"]))


@pytest.mark.parametrize("source", ["^a.$", "^a|b$", "^(a|b.)$", "^\\d$", "^a*$", "^[a]$", "^(?=a)a$", "^\\n$", "^$"])
def test_what_is_no_literal(source: str) -> None:
    text = pattern_text(source)
    assert not isinstance(text, Words)
    for word in ("a", "b", "ab", "a.", "1", "\n", "d", "n", ""):
        assert contains(text, word) == (re.search(source.replace("$", r"\Z"), word) is not None)


_REFERENCE = {"type": "object", "required": ["$ref"], "patternProperties": {"^\\$ref$": {"type": "string"}}}


def test_unique_items_beside_a_literal_pattern() -> None:
    named = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    schema = {"type": "array", "uniqueItems": True, "items": {"oneOf": [named, _REFERENCE]}}
    expected = {
        '[{"name": "a"}, {"$ref": "a"}]': True,
        '[{"$ref": "a"}, {"$ref": "a"}]': False,
        '[{"name": "a", "$ref": "b"}]': False,
        '[{"name": "a", "$ref": 1}]': True,
        '[{"name": 1, "$ref": "s"}]': True,
        '[{"name": "a"}, {"name": "b", "$ref": 1}]': True,
        '[{"name": 1, "$ref": 1}]': False,
    }
    assert verdicts(schema, *expected) == list(expected.values())


def test_a_required_name_that_only_patterns_speak_of() -> None:
    # "$ref" is no name of a parameter, and has no property of its own on either side: the two exclude each other.
    parameter = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
    }
    schema = {"type": "array", "uniqueItems": True, "items": {"oneOf": [parameter, _REFERENCE]}}
    texts = ['[{"name": "a", "x-b": 1}, {"$ref": "b", "more": 1}]', '[{"$ref": 1}]', '[{"$ref": "b", "name": "a"}]']
    assert verdicts(schema, *texts) == [True, False, True]


def test_complement_of_a_literal_pattern() -> None:
    excluded = {"not": {"patternProperties": {"^\\$id$": {"type": "string"}}}, "type": "object"}
    texts = [json.dumps({"$id": 1}), json.dumps({"$id": 1, "a": 2}), json.dumps({"$id": "a"}), "{}", '{"a": 1}']
    assert verdicts(excluded, *texts) == [True, True, False, False, False]
    both = {**excluded, "properties": {"$id": {"enum": [1, "a"]}}}
    assert verdicts(both, '{"$id": 1}', '{"$id": "a"}', '{"$id": 2}') == [True, False, False]
