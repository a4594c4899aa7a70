"""``property_order="any"``: every order, each key once, exactly; and within limits of time and memory."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest
from byte_tokens import fits
from finite_texts import Texts, compare_masks
from hypothesis import given, settings
from hypothesis import strategies as st
from masks import mask_of
from processor_time import processor_time

import constrain
from constrain.errors import SchemaError

NAMES = ["a", "ab", "b", "c"]
TOKENS = [bytes((byte,)) for byte in b'{}:,"abc12'] + [
    *(b'{"', b'":', b'":1', b'":1,', b',"', b'1,"a', b'"a":1,"b', b"1}", b'{"a":2,"ab":1,', b',"a', b"{}", b'2,"b":2'),
    b"</s>",
]
EOS = len(TOKENS) - 1
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[EOS])
BYTES = constrain.Vocabulary([bytes((byte,)) for byte in range(256)])


def compiled(schema: Any, vocabulary: constrain.Vocabulary, **options: Any) -> constrain.CompiledGrammar:
    grammar = constrain.Grammar.from_json_schema(schema, property_order="any", **options)
    return constrain.CompiledGrammar(grammar.ir, vocabulary)


def texts_of(schema: Any) -> Texts:
    """All objects of the names, in every order, that another validator takes."""
    validator = jsonschema.Draft202012Validator(schema)
    found = []
    for size in range(len(NAMES) + 1):
        for names in itertools.permutations(NAMES, size):
            for values in itertools.product((1, 2), repeat=size):
                value = dict(zip(names, values, strict=True))
                if validator.is_valid(value):
                    found.append(json.dumps(value, separators=(",", ":")).encode())
    return Texts(found)


def _values() -> st.SearchStrategy[Any]:
    return st.sampled_from([{}, {"const": 1}, {"enum": [1, 2]}, {"const": 2}, False])


@st.composite
def _schemas(draw: st.DrawFn) -> Any:
    """Objects of a few names with few values, and conditions that count members or look at several."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    schema: dict[str, Any] = {
        "properties": {name: draw(_values()) for name in names},
        "required": draw(st.lists(st.sampled_from(names), unique=True, max_size=2)),
        "patternProperties": draw(st.sampled_from([{}, {"a": {"const": 1}}, {"^c$": {"enum": [1, 2]}}])),
    }
    for keyword in draw(st.lists(st.sampled_from(["minProperties", "maxProperties"]), unique=True)):
        schema[keyword] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        schema["dependentRequired"] = {draw(st.sampled_from(names)): [draw(st.sampled_from(names))]}
    if draw(st.booleans()):
        schema["not"] = draw(
            st.sampled_from(
                [
                    {"additionalProperties": {"const": 2}},
                    {"patternProperties": {"b": {"const": 1}}},
                    {"patternProperties": {"b": {"const": 1}, "a": {"const": 2}}, "maxProperties": 2},
                    {"required": ["a"], "properties": {"a": {"const": 1}}},
                ]
            )
        )
    values = {name: {"enum": [1, 2]} for name in NAMES}
    limits = {"type": "object", "properties": values, "additionalProperties": False}
    return {"allOf": [schema, limits]}


@settings(max_examples=150)
@given(schema=_schemas(), walks=st.lists(st.lists(st.integers(0, 1000), max_size=30), min_size=1, max_size=4))
def test_masks_in_any_order(masks_compared: Any, schema: Any, walks: list[list[int]]) -> None:
    texts = texts_of(schema)
    try:
        grammar = compiled(schema, VOCABULARY, whitespace="compact")
    except SchemaError:
        assert not texts.is_viable(b"")
        return
    for walk in walks:
        masks_compared.add(compare_masks(grammar, texts, TOKENS, EOS, [*walk, 0]))


@pytest.mark.parametrize("seed", range(3))
def test_many_properties(seed: int) -> None:
    """As many as 500 take a moment, whatever the order, and the masks still allow each key that has not been used."""
    count = 500
    names = [f"name{number}" for number in range(count)]
    schema = {"properties": {name: {"type": "integer"} for name in names}, "required": names[::50]}
    with processor_time() as spent:
        grammar = compiled(schema, BYTES)
        choose = random.Random(seed)
        order = choose.sample(names, count)
        text = "{" + ", ".join(f'"{name}": {number}' for number, name in enumerate(order))
        matcher = constrain.Matcher(grammar)
        assert matcher.accept_bytes(text.encode())
    assert spent.seconds < 5
    assert grammar.nbytes < 80_000_000
    assert fits(grammar, text + "}")
    assert not fits(grammar, text + f', "{order[7]}": 1}}')
    assert fits(grammar, text + ', "another": []}')
    short = choose.sample(names, 20)
    assert not fits(grammar, json.dumps(dict.fromkeys(short, 1)))
    assert fits(grammar, json.dumps(dict.fromkeys({*short, *names[::50]}, 1)))
    matcher = constrain.Matcher(grammar)
    used = sorted(range(10), key=lambda _: choose.random())[:5]
    assert matcher.accept_bytes(("{" + "".join(f'"name{digit}":1,' for digit in used) + '"name').encode())
    # Every digit begins a longer name; where the short one was used, the quote may not follow.
    for digit in range(10):
        twin = matcher.fork()
        assert twin.accept_bytes(b"%d" % digit)
        assert (ord('"') in mask_of(twin)) == (digit not in used)


def test_indented_objects() -> None:
    schema = {"properties": {"a": {"properties": {"x": {}, "y": {}}}, "b": {}}}
    grammar = compiled(schema, BYTES, indent=2)
    for value in ({}, {"b": {}, "a": {}}, {"b": 1, "a": {"y": 1, "x": 2}}, {"a": {}}):
        assert fits(grammar, json.dumps(value, indent=2)), value
    assert not fits(grammar, "{\n}")


def test_recursive_objects() -> None:
    schema = {
        "$ref": "#/$defs/tree",
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {"value": {"type": "integer"}, "left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#"}},
                "required": ["value"],
                "additionalProperties": False,
            }
        },
    }
    grammar = compiled(schema, BYTES)
    assert fits(grammar, '{"left": {"right": {"value": 1}, "value": 2}, "value": 3, "right": {"value": 4}}')
    assert not fits(grammar, '{"left": {"right": {"value": 1}}, "value": 3}')
    assert not fits(grammar, '{"value": 3, "left": {"value": 1, "value": 1}}')


def test_grammars_share_nothing_that_grows() -> None:
    """What one compiled grammar has unfolded has no influence on another of the same rules."""
    schema = {"properties": {name: {"type": "integer"} for name in "abcdefgh"}, "additionalProperties": False}
    ir = constrain.Grammar.from_json_schema(schema, property_order="any").ir
    first, second = (constrain.CompiledGrammar(ir, BYTES) for _ in range(2))
    for order in itertools.islice(itertools.permutations("abcdefgh"), 0, 40_000, 1999):
        text = json.dumps(dict.fromkeys(order, 1))
        assert fits(first, text)
    for order in itertools.islice(itertools.permutations("abcdefgh"), 7, 40_000, 2999):
        text = json.dumps(dict.fromkeys(order, 1))
        assert fits(second, text)
        assert fits(first, text)
        assert not fits(second, text[:-1] + ', "a": 1}')
