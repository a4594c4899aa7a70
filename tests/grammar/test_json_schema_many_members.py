"""Objects with hundreds of names: keys in pieces allow what a lexeme for each name allows."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.grammar.json_schema.rules import objects
from constrain.grammar.json_schema.text_dependent import many_members

TOKENS = [
    *(bytes((byte,)) for byte in range(32, 127)),
    *(
        b'{"',
        b'":',
        b'": ',
        b', "',
        b'"}',
        b"re",
        b"rec",
        b"rec_",
        b"_1",
        b"12",
        b"123",
        b"\\u",
        b"00",
        b"0061",
        b"\n  ",
    ),
    *("é日".encode(), "é".encode(), b"ab", b"abc", b"true", b"</s>"),
]
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])
VALUES: list[Any] = [{"type": "boolean"}, {"enum": ["a", 1]}, {"type": "array", "maxItems": 0}, False]
OPTIONS: list[dict[str, Any]] = [{}, {}, {"indent": 2}, {"whitespace": "compact"}, {"spelling": "canonical"}]


def a_name(choose: random.Random) -> str:
    kind = choose.random()
    if kind < 0.4:
        return f"rec_{choose.randrange(300)}"
    if kind < 0.6:
        return choose.choice(["a", "é", "日本", 'q"', "\\", "\n", "😀"]) * choose.randrange(4)
    return "".join(choose.choice("abc_") for _ in range(choose.randrange(1, 6)))


def a_schema(choose: random.Random) -> dict[str, Any]:
    names = list(dict.fromkeys(a_name(choose) for _ in range(choose.choice((2, 20, 70)))))
    return {
        "type": "object",
        "properties": {name: choose.choices(VALUES, [4, 3, 2, 0.3])[0] for name in names},
        "required": choose.sample(names, choose.choice((0, 0, 1, min(3, len(names))))),
        "additionalProperties": False,
    }


def compiled_both_ways(
    schema: Any, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> list[constrain.CompiledGrammar | str]:
    found: list[constrain.CompiledGrammar | str] = []
    for many in (1, 10**9):
        monkeypatch.setattr(objects, "MANY_MEMBERS", many)
        try:
            grammar = constrain.Grammar.from_json_schema(schema, **options)
            assert bool(grammar.ir.unfolded) == (many == 1)
            found.append(constrain.CompiledGrammar(grammar.ir, VOCABULARY))
        except constrain.SchemaError as error:
            found.append(str(error))
    return found


def mask_of(matcher: constrain.Matcher) -> np.ndarray[Any, Any]:
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    matcher.fill_next_token_bitmask(mask)
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(TOKENS)]


@pytest.mark.parametrize("seed", range(30))
def test_masks_are_those_of_a_lexeme_for_each_name(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(seed)
    monkeypatch.setattr(many_members, "_FEW_NAMES", choose.choice((1, 4, 64)))
    schema = a_schema(choose)
    tree, chain = compiled_both_ways(schema, monkeypatch, **choose.choice(OPTIONS))
    if isinstance(tree, str) or isinstance(chain, str):
        assert tree == chain
        return
    for _ in range(3):
        one, other = constrain.Matcher(tree), constrain.Matcher(chain)
        for _ in range(60):
            mask = mask_of(one)
            assert (mask == mask_of(other)).all(), one.text(one.steps)
            assert one.is_accepting() == other.is_accepting()
            allowed = [token for token in np.flatnonzero(mask).tolist() if not TOKENS[token].isspace()]
            if not allowed or allowed == [len(TOKENS) - 1]:
                break
            token = choose.choice(allowed)
            assert one.accept_token(token)
            assert other.accept_token(token)
        one.rollback(min(3, one.steps))
        other.rollback(min(3, other.steps))
        assert (mask_of(one) == mask_of(other)).all()


@pytest.mark.parametrize("seed", range(12))
def test_texts_are_complete_within_a_budget(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(seed)
    monkeypatch.setattr(many_members, "_FEW_NAMES", 2)
    names = list(dict.fromkeys(a_name(choose) for _ in range(40)))
    required = choose.sample(names, choose.choice((0, 1, 4)))
    properties = {name: {"enum": [True, [], "a"]} for name in names}
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    tree, chain = compiled_both_ways(schema, monkeypatch)
    assert isinstance(tree, constrain.CompiledGrammar)
    assert isinstance(chain, constrain.CompiledGrammar)
    matcher = constrain.Matcher(tree, 80)
    while not matcher.is_terminated():
        allowed = np.flatnonzero(mask_of(matcher)).tolist()
        assert allowed, matcher.text(matcher.steps)
        assert matcher.accept_token(choose.choice(allowed))
    text = json.loads(matcher.text(matcher.steps).removesuffix(b"</s>"))
    assert [name for name in names if name in text] == list(text)
    assert set(required) <= set(text)


def test_a_grammar_of_many_members_is_copied_with_its_names() -> None:
    schema = {
        "type": "object",
        "properties": {f"name{index}": {"type": "null"} for index in range(many_members.MANY_MEMBERS)},
        "additionalProperties": False,
    }
    grammar = pickle.loads(pickle.dumps(constrain.Grammar.from_json_schema(schema)))
    assert grammar.ir.unfolded
    compiled = constrain.CompiledGrammar(grammar.ir, VOCABULARY)
    place = compiled.recognizer()
    for byte in b'{"name7": null, "name511"':
        assert place.try_push_byte(byte)
    assert not compiled.recognizer().try_push_byte(b"x"[0])
    # Names come in the order of the schema.
    place = compiled.recognizer()
    assert all(place.try_push_byte(byte) for byte in b'{"name511": null')
    assert not all(place.try_push_byte(byte) for byte in b', "name7"')


def test_what_is_required_and_impossible_is_told() -> None:
    properties: dict[str, Any] = {f"name{index}": {"type": "null"} for index in range(many_members.MANY_MEMBERS)}
    properties["name7"] = False
    with pytest.raises(constrain.SchemaError, match="property 'name7', which is required"):
        constrain.Grammar.from_json_schema(
            {"type": "object", "properties": properties, "required": ["name7"], "additionalProperties": False}
        )


def test_many_schemas_of_one_member() -> None:
    """One for another would take time in the square of their number: what they say together is found by halves."""
    parts = [{"properties": {"k": {"type": "object", "properties": {f"p{i}": {"type": "null"}}}}} for i in range(2_000)]
    grammar = constrain.Grammar.from_json_schema(
        {"type": "object", "allOf": parts, "required": ["k"]}, whitespace="compact"
    )
    matcher = constrain.Matcher(constrain.GrammarCompiler(VOCABULARY).compile(grammar))
    assert matcher.fork().accept_bytes(b'{"k":{"p0":null,"p1999":n')
    assert not matcher.accept_bytes(b'{"k":{"p1999":1')


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(lambda i: {"type": "string", "pattern": f"a{i}"}, id="patterns"),
        pytest.param(lambda i: {"type": "object", "patternProperties": {f"^{i % 9}": {"minimum": i}}}, id="keys"),
    ],
)
def test_many_demands_on_one_member(part: Callable[[int], Any]) -> None:
    parts = [{"properties": {"k": part(i)}} for i in range(3_000)]
    constrain.Grammar.from_json_schema({"type": "object", "allOf": parts})
