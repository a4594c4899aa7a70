"""Nothing keeps a grammar that its user has let go of: a server compiles one for each request."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import constrain

Make = Callable[[], constrain.Grammar]


def schema(content: Any, **options: Any) -> Make:
    return lambda: constrain.Grammar.from_json_schema(content, **options)


TAGS = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
PARAMETERS = {"type": "object", "properties": {"tags": TAGS}}
TOOLS = [{"type": "function", "function": {"name": "find", "parameters": PARAMETERS}}]

GRAMMARS: dict[str, tuple[Make, str]] = {
    "regex": (lambda: constrain.Grammar.from_regex("[a-c]{2,9}|x*"), "abca"),
    "lark": (lambda: constrain.Grammar.from_lark('start: "1" | start "+" start'), "1+1+1"),
    "limited rule": (lambda: constrain.Grammar.from_lark('start: a "x"\na[max_tokens=5]: /[ab]+/'), "abx"),
    "capture": (lambda: constrain.Grammar.from_lark('start: a "x"\na[capture]: /[ab]+/'), "abx"),
    "members": (schema({"properties": {"a": {"type": "integer"}}}), '{"a":1,"b":[2]}'),
    "any order": (schema({"required": ["a", "b"]}, property_order="any"), '{"b":1,"a":[2]}'),
    "unique anything": (schema({"type": "array", "uniqueItems": True}), '[1,"a",[1],{"a":1},1.5,'),
    "unique numbers": (schema({"items": {"multipleOf": 0.5}, "uniqueItems": True, "minItems": 3}), "[1,0.5,2,"),
    "few values": (schema({"items": {"enum": [1, 2, "a", [1], {"a": 1}]}, "uniqueItems": True}), '[1,"a",[1],'),
    "unique objects": (
        schema({"items": {"properties": {"a": {"type": "string"}}}, "uniqueItems": True, "minItems": 2}),
        '[{"a":"b"},{"a":"c"},',
    ),
    "scarce keys": (schema({"propertyNames": {"enum": ["a", "bbb", "cc"]}, "minProperties": 2}), '{"a":1,"bbb":2'),
    "tools": (lambda: constrain.Grammar.from_tools(TOOLS, style="hermes"), "Let me see.\n<tool_call>"),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_grammar_and_its_vocabulary_end_with_their_last_user(name: str) -> None:
    make, text = GRAMMARS[name]
    tokens = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[256])
    compiled = constrain.CompiledGrammar(make().ir, vocabulary)
    mask = constrain.allocate_token_bitmask(1, len(tokens))
    for most in (None, 300):
        matcher = constrain.Matcher(compiled) if most is None else constrain.Matcher(compiled, max_tokens=most)
        for byte in text.encode():
            matcher.fill_next_token_bitmask(mask)
            assert matcher.accept_token(byte), (name, json.dumps(text))
        fork = matcher.fork()
        assert fork.completion() is not None
        matcher.rollback(2)
    left = weakref.ref(compiled), weakref.ref(vocabulary)
    del compiled, vocabulary, matcher, fork
    gc.collect()
    assert [each() for each in left] == [None, None]
