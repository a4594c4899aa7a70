"""Budgets of grammars whose rules are made as the text is read: any order of keys, unique items, involved multiples.

At each place of random texts the mask is compared with what ``accept_token`` says of every token, and the text that
comes out with the ``jsonschema`` package.
"""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain.grammar.json_schema.normal.few_values import FewValues
from tests.masks import mask_of

SINGLE = b'"{}[]:,0123456789-.eEabcdfklnrstuxyz'
PIECES = [
    b"true",
    b"null",
    b'":',
    b'","',
    b'"a"',
    b'"b":',
    b',"',
    b"],[",
    b"[[",
    b"12",
    b"1,",
    b'{"',
    b"},",
    b'"]',
    b"ab",
]
TOKENS = [*(SINGLE[place : place + 1] for place in range(len(SINGLE))), *PIECES]
END = len(TOKENS)
VOCABULARY = constrain.Vocabulary([*TOKENS, b"</s>"], eos_ids=[END])


def compile_schema(schema: Any, order: str = "schema") -> constrain.CompiledGrammar:
    grammar = constrain.Grammar.from_json_schema(schema, whitespace="compact", property_order=order)
    return constrain.GrammarCompiler(VOCABULARY, cache_limit_bytes=0).compile(grammar)


def walk(compiled: constrain.CompiledGrammar, most: int, choose: random.Random, compared: float) -> bytes:
    """A random text within a budget; masks are compared at some of its places."""
    matcher = constrain.Matcher(compiled, max_tokens=most)
    text = b""
    taken: list[int] = []
    while True:
        allowed = mask_of(matcher)
        assert allowed
        if choose.random() < compared:
            accepted = {token for token in range(END + 1) if matcher.fork().accept_token(token)}
            assert allowed == accepted, (text, most, [TOKENS[token] for token in allowed ^ accepted - {END}])
            completion = matcher.completion()
            assert len(completion) <= most - len(taken)
            assert not completion or completion[0] in allowed
        # Brackets, quotes and the like lead to the interesting places.
        likely = [token for token in allowed if token == END or TOKENS[token][:1] in b'"{}[]:,1ab']
        token = choose.choice(likely if likely and choose.random() < 0.8 else sorted(allowed))
        assert matcher.accept_token(token)
        if token == END:
            return text
        taken.append(token)
        text += TOKENS[token]
        if choose.random() < 0.05:
            back = choose.randrange(len(taken) + 1)
            matcher.rollback(back)
            fresh = constrain.Matcher(compiled, max_tokens=most)
            for token in taken[: len(taken) - back]:
                assert fresh.accept_token(token)
            assert mask_of(fresh) == mask_of(matcher)
            for token in taken[len(taken) - back :]:
                assert matcher.accept_token(token)


def check(schema: Any, order: str, seed: int, walks: int, compared: float = 0.15) -> None:
    compiled = compile_schema(schema, order)
    least = constrain.Matcher(compiled).tokens_to_finish()
    choose = random.Random(seed)
    judge = jsonschema.Draft202012Validator(schema)
    for _ in range(walks):
        most = least + choose.choice([0, 0, 1, 2, 5, choose.randrange(60)])
        text = walk(compiled, most, choose, compared)
        assert judge.is_valid(json.loads(text)), text
    if least:
        with pytest.raises(constrain.ConstrainError, match=rf"takes {least} token"):
            constrain.Matcher(compiled, max_tokens=least - 1)


NAMES = st.sampled_from(["a", "b", "ab", "x", "c"])
SCALARS = st.sampled_from(
    [
        {"type": "integer"},
        {"type": "boolean"},
        {"type": "string"},
        {"enum": ["ab", "x", 1]},
        {"type": "string", "maxLength": 2, "pattern": "^[abx]*$"},
        {"const": "kkkkkkkk"},
        {"type": ["null", "integer"], "minimum": 5},
    ]
)


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> dict[str, Any]:
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=4))
    schema: dict[str, Any] = {"type": "object", "properties": {name: draw(values) for name in names}}
    schema["required"] = draw(st.lists(st.sampled_from(names), unique=True))
    schema["additionalProperties"] = draw(st.sampled_from([False, {"type": "boolean"}]))
    if draw(st.booleans()):
        schema["minProperties"] = draw(st.integers(0, len(names)))
    if draw(st.booleans()):
        schema["dependentRequired"] = {names[0]: [draw(st.sampled_from(names))]}
    if draw(st.booleans()):
        schema["patternProperties"] = {"^k": draw(values)}
    return schema


@st.composite
def unique_lists(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "uniqueItems": True, "items": draw(values)}
    low = draw(st.integers(0, 3))
    if low:
        schema["minItems"] = low
    if draw(st.booleans()):
        schema["maxItems"] = low + draw(st.integers(0, 3))
    return schema


SCHEMAS = st.recursive(
    SCALARS,
    lambda values: objects(values) | unique_lists(values) | st.fixed_dictionaries({"items": values}),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(
    schema=objects(SCHEMAS) | unique_lists(SCHEMAS), order=st.sampled_from(["schema", "any"]), seed=st.integers(0, 99)
)
def random_budgets(checked: list[bool], schema: dict[str, Any], order: str, seed: int) -> None:
    try:
        compile_schema(schema, order)
    except constrain.ConstrainError:
        checked.append(False)
        return
    check(schema, order, seed, 4)
    checked.append(True)


def test_random_schemas_and_budgets() -> None:
    checked: list[bool] = []
    random_budgets(checked)
    assert sum(checked) > 30, f"{sum(checked)} of {len(checked)} schemas were checked"


INVOLVED: list[Any] = [
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 3},
    {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}, "uniqueItems": True, "minItems": 3},
    {
        "type": "array",
        "items": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2},
        "uniqueItems": True,
        "minItems": 5,
    },
    {
        "type": "array",
        "items": {"type": "array", "uniqueItems": True, "items": {"type": "integer"}},
        "uniqueItems": True,
        "minItems": 2,
    },
    {
        "type": "array",
        "prefixItems": [{"enum": [1, 2, 3]}, {"type": "integer"}],
        "items": {"type": "integer"},
        "minItems": 3,
        "uniqueItems": True,
    },
    {
        "type": "array",
        "items": {"type": "integer"},
        "contains": {"minimum": 100},
        "minContains": 2,
        "uniqueItems": True,
    },
    {"type": "array", "items": {"type": ["integer", "string"]}, "uniqueItems": True, "minItems": 2, "maxItems": 5},
    {"type": "array", "items": {"type": "object"}, "uniqueItems": True, "minItems": 2},
    {
        "type": "array",
        "uniqueItems": True,
        "minItems": 2,
        "items": {
            "type": "object",
            "properties": {"a": {"const": 1}, "b": {"type": "boolean"}, "c": {"type": "string"}},
            "required": ["a", "c"],
            "additionalProperties": False,
        },
    },
    {"type": "array", "items": {"type": "object", "minProperties": 2}, "uniqueItems": True, "minItems": 3},
    {"type": "array", "items": {"type": "object", "maxProperties": 2}, "uniqueItems": True, "minItems": 3},
    {
        "type": "array",
        "items": {"type": "object", "propertyNames": {"pattern": "^[ab]"}, "maxProperties": 3},
        "uniqueItems": True,
        "minItems": 3,
    },
    {
        "type": "array",
        "items": {
            "type": "object",
            "patternProperties": {"^a": {"type": "integer"}},
            "additionalProperties": False,
            "properties": {"b": {"type": "boolean"}},
            "required": ["b"],
        },
        "uniqueItems": True,
        "minItems": 4,
    },
    {"type": "array", "not": {"uniqueItems": True}},
    {"type": "array", "items": {"type": "string", "minLength": 3}, "maxItems": 3, "not": {"uniqueItems": True}},
    {
        "type": "array",
        "items": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        "minItems": 4,
        "not": {"uniqueItems": True},
    },
    {"type": "integer", "allOf": [{"multipleOf": 1001}, {"multipleOf": 17}]},
    {"type": "number", "allOf": [{"multipleOf": 0.75}, {"multipleOf": 1.7}], "minimum": 100},
    {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in "abxyz"},
        "minProperties": 3,
        "maxProperties": 4,
    },
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"$ref": "#"}, "c": {"type": "array", "items": {"$ref": "#"}}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
]


# Its texts have numbers that a validator rounds.
LONG_FRACTIONS = {
    "type": "array",
    "items": {"type": "number", "not": {"multipleOf": 0.25}},
    "uniqueItems": True,
    "minItems": 3,
}


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("schema", [*INVOLVED, LONG_FRACTIONS], ids=lambda schema: json.dumps(schema)[:60])
def test_involved_schemas(schema: Any, order: str) -> None:
    check(schema, order, 1, 8)


def test_texts_within_budgets() -> None:
    """As many texts as budgets, of a few schemas: all of them complete and valid (bench/budgets.py makes more)."""
    made = 0
    for number, schema in enumerate(INVOLVED):
        compiled = compile_schema(schema, "any")
        least = constrain.Matcher(compiled).tokens_to_finish()
        judge = jsonschema.Draft202012Validator(schema)
        choose = random.Random(number)
        for _ in range(30):
            text = walk(compiled, least + choose.randrange(40), choose, 0.0)
            assert judge.is_valid(json.loads(text)), text
            made += 1
    assert made > 380


@pytest.mark.parametrize(
    "items",
    [
        # No member may be there, so none is thought of; and all lengths of arrays have the same items.
        {"items": {"type": "object", "patternProperties": {"^k[0-9]$": {"type": "boolean"}}, "maxProperties": 0}},
        {"type": "object", "patternProperties": {"^x-": True}, "unevaluatedProperties": False},
    ],
)
def test_values_that_items_may_differ_in_are_found_once(monkeypatch: pytest.MonkeyPatch, items: Any) -> None:
    asked = []
    of_handle = FewValues._of_handle
    monkeypatch.setattr(FewValues, "_of_handle", lambda *args: asked.append(args) or of_handle(*args))
    schema = {"type": "array", "items": items, "minItems": 3, "uniqueItems": True}
    compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema).ir, VOCABULARY)
    matcher = constrain.Matcher(compiled, max_tokens=60)
    assert matcher.accept_bytes(b"[")
    assert matcher.tokens_to_finish() <= 59
    assert len(asked) < 100


REPEATED: dict[str, Any] = {"not": {"uniqueItems": True}, "type": "array"}


@pytest.mark.parametrize(
    ("schema", "begun"),
    [
        ({**REPEATED, "maxItems": 2}, b"[12345"),
        ({**REPEATED, "maxItems": 2}, b'["abababababababab'),
        ({**REPEATED, "maxItems": 2}, b'[{"a":[1,2'),
        ({**REPEATED, "maxItems": 3}, b"[1,12345"),
        ({**REPEATED, "maxItems": 3, "items": {"type": "integer"}}, b"[12,123,1"),
        ({**REPEATED, "maxItems": 2, "items": {"type": "array"}}, b"[[[1,2],3,[4"),
        ({**REPEATED, "maxItems": 2, "items": {"type": "array", "uniqueItems": True}}, b"[[12345,1"),
        ({"type": "object", "properties": {"a": {**REPEATED, "maxItems": 2}}, "required": ["b"]}, b'{"a":["abab'),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else "",
)
def test_an_item_that_has_to_be_repeated_is_as_long_as_it_is(schema: Any, begun: bytes) -> None:
    """What repeating it will cost is not known before it is there."""
    matcher = constrain.Matcher(compile_schema(schema))
    assert matcher.accept_bytes(begun)
    rest = matcher.completion()
    assert matcher.accept_tokens(rest)
    assert matcher.is_accepting()
    text = begun + b"".join(TOKENS[token] for token in rest)
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)), text
    within = constrain.Matcher(compile_schema(schema), max_tokens=100)
    assert within.accept_bytes(begun)
    for token in rest:
        assert token in mask_of(within)
        assert within.accept_token(token)


def test_a_budget_is_enough_if_the_text_is_known_that_fits() -> None:
    """Before the first item is there, what the others cost is counted in bytes."""
    schema = {"type": "array", "items": {"type": "string", "minLength": 6}, "uniqueItems": True, "minItems": 3}
    tokens = [*(bytes((byte,)) for byte in b'[]",ab'), b"aaa", b'","', b"</s>"]
    compiled = constrain.GrammarCompiler(constrain.Vocabulary(tokens, eos_ids=[8])).compile(
        constrain.Grammar.from_json_schema(schema, whitespace="compact")
    )
    least = constrain.Matcher(compiled).tokens_to_finish()
    choose = random.Random(4)
    for most in range(least, 28):
        matcher, text = constrain.Matcher(compiled, max_tokens=most), b""
        while 8 not in (allowed := mask_of(matcher)):
            assert allowed == {token for token in range(9) if matcher.fork().accept_token(token)}
            token = choose.choice(sorted(allowed))
            assert matcher.accept_token(token)
            text += tokens[token]
        assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)), text
    assert least < 22


def test_items_that_differ_are_spelled_without_the_bytes_that_are_missing() -> None:
    """Of any so many values the dearest may have a byte that no token has; the next one that is there has not."""
    tokens = [*(bytes((byte,)) for byte in b'[]",01'), b"</s>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[6])
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 3}
    compiled = constrain.GrammarCompiler(vocabulary).compile(
        constrain.Grammar.from_json_schema(schema, whitespace="compact")
    )
    for matcher in constrain.Matcher(compiled), constrain.Matcher(compiled, max_tokens=9):
        rest = matcher.completion()
        assert matcher.accept_tokens(rest)
        assert matcher.is_accepting()
        assert len(set(json.loads(b"".join(tokens[token] for token in rest)))) == 3


def test_many_places_where_the_text_decides_are_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.engine.conditions.budget.known_completions._MOST_FAR_PLACES", 3)
    pairs = {"type": "array", "uniqueItems": True, "minItems": 2, "items": {"type": "integer"}}
    matcher = constrain.Matcher(compile_schema({"type": "array", "minItems": 20, "items": pairs}))
    rest = matcher.completion()
    assert matcher.accept_tokens(rest)
    assert matcher.is_accepting()


def test_a_budget_that_is_too_small_is_told_soon() -> None:
    """The search for a shorter text goes through few of the orders in which the members could come."""
    names = [f"p{number}" for number in range(150)]
    members = {name: {"type": "integer"} for name in names}
    schema = {"type": "object", "properties": members, "additionalProperties": False, "required": names[:50]}
    grammar = constrain.Grammar.from_json_schema(schema, property_order="any")
    vocabulary = constrain.Vocabulary([*TOKENS, b"p", b"</s>"], eos_ids=[len(TOKENS) + 1])
    compiled = constrain.GrammarCompiler(vocabulary).compile(grammar)
    with pytest.raises(constrain.ConstrainError, match="max_tokens is 10, but the shortest text of the grammar"):
        constrain.Matcher(compiled, 10)
    assert compiled.unfolded is not None
    assert len(compiled.unfolded.unfolding.kinds) < 60_000
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_tokens(matcher.completion())
    assert matcher.is_accepting()
