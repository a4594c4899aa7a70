"""``x* | y x*`` is ``x*``: exactly one of several patterns that match anywhere takes few expressions."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from byte_tokens import fits

import constrain

VOCABULARY = constrain.Vocabulary([*(bytes((byte,)) for byte in range(32, 127)), b"ab", b"ba", b'["', b"</s>"], [98])


def compiled(schema: Any) -> constrain.CompiledGrammar:
    return constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, VOCABULARY)


def accepts(grammar: constrain.CompiledGrammar, text: str) -> bool:
    return fits(grammar, text)


@pytest.mark.parametrize(
    "patterns",
    [
        ("ab", "ba", "aa"),
        ("a+b", "b{2}", "^a"),
        ("ab|ba", "a.a", "b$"),
        ("(ab)+", "[^a]b", "a{0,2}b"),
        ("a(?=b)", "bb", "ab*a"),
    ],
)
def test_one_of_patterns_is_as_regular_expressions_say(patterns: tuple[str, ...]) -> None:
    grammar = compiled({"type": "string", "oneOf": [{"pattern": pattern} for pattern in patterns]})
    for length in range(6):
        for characters in itertools.product("abc", repeat=length):
            text = "".join(characters)
            matching = sum(re.search(pattern, text) is not None for pattern in patterns)
            assert accepts(grammar, json.dumps(text)) == (matching == 1), text


def test_masks_are_those_of_single_bytes() -> None:
    grammar = compiled({"type": "string", "oneOf": [{"pattern": "ab"}, {"pattern": "ba"}, {"pattern": "a\\\\"}]})
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    for text in ('"', '"a', '"ab', '"ab\\', '"ab\\u00', '"ab\\u0062', '"b\\u0061'):
        matcher = constrain.Matcher(grammar)
        assert matcher.accept_bytes(text.encode())
        matcher.fill_next_token_bitmask(mask)
        for token, data in enumerate(VOCABULARY.tokens[:-1]):
            place = grammar.recognizer()
            allowed = all(place.try_push_byte(byte) for byte in text.encode() + data)
            assert allowed == bool(mask[0, token >> 5] >> (token & 31) & 1), (text, data)


def test_expressions_are_few_where_any_text_may_follow() -> None:
    words = ("customer", "maker", "operator", "admin", "designer")
    grammar = compiled({"type": "string", "oneOf": [{"pattern": word} for word in words]})
    for word in words:
        matcher = constrain.Matcher(grammar)
        assert matcher.accept_bytes(f'"{word} and '.encode())
        mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
        matcher.fill_next_token_bitmask(mask)
        assert not constrain.Matcher(grammar).accept_bytes(f'"{word} maker admin"'.encode())
    # There were 32,490 after the first of these masks.
    assert grammar.statistics()["nodes"] < 6000
