"""Keys that may run out beside members that must be there: every mask is that of all valid texts, and none is empty."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from finite_texts import Texts, verdicts
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from masks import mask_of

import constrain
from constrain.grammar.json_schema import from_json_schema

KEYS = ["a", "b", "ab", "ba", ""]
VALUES = [1, 2]
PATTERNS = ["^[ab]$", "^a", "b$", "^(ab|ba)$", "^b?$", "^a?b?$", "^..$"]


def objects_of(schema: dict[str, Any]) -> list[dict[str, int]]:
    """All valid objects of KEYS and VALUES."""
    validator = Draft202012Validator(schema)
    ways = itertools.product(*[[(key, value) for value in (None, *VALUES)] for key in KEYS])
    found = [{key: value for key, value in members if value is not None} for members in ways]
    return [each for each in found if validator.is_valid(each)]


def texts_of(schema: dict[str, Any], property_order: str) -> set[bytes]:
    """All texts of these objects: names come in the order of the schema, unless in any, the other keys behind them."""
    names = [] if property_order == "any" else list(dict.fromkeys([*schema.get("properties", {}), *schema["required"]]))
    texts = set()
    for each in objects_of(schema):
        first = [key for key in names if key in each]
        for others in itertools.permutations(key for key in each if key not in names):
            text = json.dumps({key: each[key] for key in (*first, *others)}, separators=(",", ":"))
            texts.add(text.encode())
    return texts


def tokens_of(texts: set[bytes], seed: int) -> list[bytes]:
    """All bytes, and pieces of the texts."""
    rng = random.Random(seed)
    ordered = sorted(texts)
    found = {bytes((byte,)) for byte in b'{}":,12ab'}
    for _ in range(40 if ordered else 0):
        text = rng.choice(ordered)
        begin = rng.randrange(len(text))
        found.add(text[begin : begin + rng.choice((2, 3, 4, 6, 9))])
    return sorted(found)


def compiled_of(schema: dict[str, Any], tokens: list[bytes], property_order: str) -> constrain.CompiledGrammar:
    grammar = constrain.Grammar.from_json_schema(schema, whitespace="compact", property_order=property_order)
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    return constrain.CompiledGrammar(grammar.ir, vocabulary)


def check(schema: dict[str, Any], property_order: str, seed: int, walks: int = 12) -> int:
    """Walk at random, with all masks held against all texts; returns how many were looked at."""
    Draft202012Validator.check_schema(schema)
    texts = texts_of(schema, property_order)
    tokens = tokens_of(texts, seed)
    if not texts:
        with pytest.raises(constrain.SchemaError, match="nothing is valid"):
            compiled_of(schema, tokens, property_order)
        return 0
    compiled = compiled_of(schema, tokens, property_order)
    judge = Texts(texts)
    eos = len(tokens)
    tokens.append(b"</s>")
    rng = random.Random(seed)
    looked = 0
    for _ in range(walks):
        matcher = constrain.Matcher(compiled)
        text = b""
        while True:
            expected = judge.allowed(text, tokens, eos)
            found = mask_of(matcher)
            assert found == expected, (text, [tokens[token] for token in found ^ expected])
            looked += 1
            completed = completion_of(matcher, tokens)
            assert completed is None or text + completed in texts
            refused = rng.randrange(eos)
            assert refused in expected or not matcher.accept_token(refused)
            token = rng.choice(sorted(expected))
            assert matcher.accept_token(token)
            if token == eos:
                break
            text += tokens[token]
        assert text in texts
    return looked


def completion_of(matcher: constrain.Matcher, tokens: list[bytes]) -> bytes | None:
    """The bytes of a completion, of which every token is accepted; None where the grammar has none."""
    if not getattr(matcher.compiled, "supports_budget", True):
        return None
    ahead = matcher.fork()
    completion = matcher.completion()
    for place, token in enumerate(completion):
        assert ahead.accept_token(token), (completion[:place], token)
    assert ahead.is_accepting()
    return b"".join([tokens[token] for token in completion])


def tokens_for(text: bytes, tokens: set[bytes]) -> int:
    """The fewest tokens that spell a text."""
    fewest = [0]
    for end in range(1, len(text) + 1):
        begins = [begin for begin in range(end) if text[begin:end] in tokens]
        fewest.append(1 + min(fewest[begin] for begin in begins))
    return fewest[-1]


def check_budgets(schema: dict[str, Any], property_order: str, seed: int, walks: int = 4) -> int:
    """Walk at random within budgets; returns how many masks were looked at."""
    texts = texts_of(schema, property_order)
    if not texts:
        return 0
    tokens = tokens_of(texts, seed)
    compiled = compiled_of(schema, tokens, property_order)
    eos = len(tokens)
    tokens.append(b"</s>")
    rng = random.Random(seed)
    shortest = len(constrain.Matcher(compiled).completion())
    fewest = min(tokens_for(text, set(tokens[:eos])) for text in texts)
    assert fewest <= shortest
    with pytest.raises(constrain.ConstrainError, match="max_tokens is"):
        constrain.Matcher(compiled, max_tokens=fewest - 1)
    looked = 0
    for most in (shortest, shortest + 1, shortest + 5, shortest + 20):
        for _ in range(walks):
            matcher = constrain.Matcher(compiled, max_tokens=most)
            text = b""
            while True:
                allowed = mask_of(matcher)
                assert allowed, (most, text)
                looked += 1
                accepted = {token for token in range(eos) if matcher.fork().accept_token(token)}
                assert accepted == allowed - {eos}, (
                    most,
                    text,
                    [tokens[token] for token in accepted ^ allowed - {eos}],
                )
                completed = completion_of(matcher, tokens)
                assert completed is None or text + completed in texts
                token = rng.choice(sorted(allowed))
                assert matcher.accept_token(token)
                if token == eos:
                    break
                text += tokens[token]
            assert matcher.steps - 1 <= most
            assert text in texts
    return looked


VALUE = st.sampled_from([{"enum": [1, 2]}, {"enum": [1, 2]}, {"enum": [1, 2]}, {"const": 1}, {"const": 2}, False])


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Objects of few keys and values."""
    keys = st.sampled_from(KEYS)
    schema: dict[str, Any] = {"type": "object", "required": []}
    if draw(st.integers(0, 3)) == 3:
        schema["required"] = [draw(keys)]
    schema["properties"] = draw(st.dictionaries(keys, VALUE, max_size=2))
    if draw(st.booleans()):
        schema["propertyNames"] = {"enum": draw(st.lists(keys, min_size=2, max_size=5, unique=True))}
        schema["additionalProperties"] = draw(VALUE)
    else:
        schema["propertyNames"] = {"enum": KEYS}
        schema["additionalProperties"] = False
    schema["patternProperties"] = draw(st.dictionaries(st.sampled_from(PATTERNS), VALUE, max_size=3))
    schema["minProperties"] = draw(st.sampled_from([0, 1, 2, 2, 3, 4]))
    if draw(st.booleans()):
        schema["maxProperties"] = draw(st.integers(max(schema["minProperties"], 1), 4))
    return schema


@st.composite
def conditions(draw: st.DrawFn) -> dict[str, Any]:
    """What stands beside them, about members of some kind."""
    keys = st.sampled_from(KEYS)
    part: dict[str, Any] = draw(
        st.one_of(
            st.builds(
                lambda key, others: {"dependentRequired": {key: others}}, keys, st.lists(keys, max_size=2, unique=True)
            ),
            st.builds(lambda names: {"required": names}, st.lists(keys, min_size=1, max_size=2, unique=True)),
            st.builds(lambda pattern, value: {"patternProperties": {pattern: value}}, st.sampled_from(PATTERNS), VALUE),
            st.builds(lambda value: {"additionalProperties": value}, VALUE),
            st.builds(
                lambda names: {"propertyNames": {"enum": names}}, st.lists(keys, min_size=1, max_size=4, unique=True)
            ),
            st.builds(lambda low: {"minProperties": low}, st.integers(1, 4)),
        )
    )
    how = draw(st.sampled_from(["allOf", "not", "if", "anyOf"]))
    if how == "if":
        return {"if": part, "then": draw(conditions()) if draw(st.booleans()) else {"minProperties": 2}}
    return {"not": part} if how == "not" else {how: [part] if how == "allOf" else [part, draw(conditions())]}


CONST = {"const": 1}

# (schema, what is said of it, if nothing is valid for it)
CASES: list[tuple[dict[str, Any], str | None]] = [
    ({"properties": {"a": CONST}, "patternProperties": {"^[ab]$": CONST}, "minProperties": 2}, None),
    ({"patternProperties": {"^[ab]$": CONST}, "minProperties": 2}, None),
    ({"patternProperties": {"^[ab]$": CONST}, "minProperties": 3}, "there are only 2 names for minProperties 3"),
    ({"patternProperties": {"^[ab]$": CONST, "^(ab|ba)$": CONST}, "minProperties": 3, "maxProperties": 3}, None),
    (
        {
            "propertyNames": {"maxLength": 1, "pattern": "^[ab]*$"},
            "patternProperties": {"^": CONST},
            "minProperties": 3,
        },
        None,
    ),
    # What is valid for no text is none of the members.
    (
        {
            "patternProperties": {"^a$": {"type": "string", "pattern": "^x$", "minLength": 2}, "^(b|ab)$": CONST},
            "minProperties": 3,
        },
        "there are only 2 names",
    ),
    # Some member must be none that a pattern takes, and such members run out, each with a value that does not help.
    ({"patternProperties": {"^[ab]$": {"enum": [1, 2]}}, "not": {"additionalProperties": CONST}}, None),
    (
        {"patternProperties": {"^[ab]$": {"enum": [1, 2]}}, "not": {"additionalProperties": CONST}, "minProperties": 2},
        None,
    ),
    (
        {
            "patternProperties": {"^[ab]$": {"enum": [1, 2]}, "^(ab|ba)$": {"enum": [1, 2]}},
            "not": {"patternProperties": {"^[ab]$": CONST}},
            "maxProperties": 3,
        },
        None,
    ),
    (
        {"patternProperties": {"^[ab]$": CONST}, "not": {"additionalProperties": CONST}},
        "no object has the members that are demanded",
    ),
]


@pytest.mark.parametrize("property_order", ["schema", "any"])
@pytest.mark.parametrize(("schema", "reason"), CASES)
def test_members_that_must_be_there_beside_keys_that_run_out(
    schema: dict[str, Any], reason: str | None, property_order: str
) -> None:
    schema = {"type": "object", "additionalProperties": False, "required": [], **schema}
    if reason is None:
        assert check(schema, property_order, 1) > 40
        return
    with pytest.raises(constrain.SchemaError, match=reason):
        constrain.Grammar.from_json_schema(schema, property_order=property_order)


def test_a_key_may_end_in_a_token_without_a_quote() -> None:
    """The last key there is, behind one that has a name: what holds its colon may not hold a comma as well."""
    schema = {"properties": {"a": CONST}, "patternProperties": {"^b$": CONST}, "additionalProperties": False}
    tokens = [bytes((byte,)) for byte in b'{}":,1ab'] + [b":1,"]
    matcher = constrain.Matcher(compiled_of(schema, tokens, "schema"))
    assert matcher.accept_bytes(b'{"a"')
    assert matcher.fork().accept_token(8)
    for token in map(tokens.index, [b":", b"1", b",", b'"', b"b", b'"']):
        assert matcher.accept_token(token)
    assert mask_of(matcher) == {tokens.index(b":")}
    assert not matcher.accept_token(8)


@settings(max_examples=60, deadline=None)
@given(schemas(), st.sampled_from(["schema", "any"]), st.integers(0, 1000))
def test_every_mask_of_objects_with_few_keys(schema: dict[str, Any], property_order: str, seed: int) -> None:
    check(schema, property_order, seed)


@settings(max_examples=60, deadline=None)
@given(schemas(), conditions(), st.integers(0, 1000))
def test_every_mask_beside_conditions(schema: dict[str, Any], condition: dict[str, Any], seed: int) -> None:
    check({**schema, **condition, "required": schema["required"]}, "any", seed)


@settings(max_examples=20, deadline=None)
@given(schemas(), st.sampled_from(["schema", "any"]), st.integers(0, 1000))
def test_budgets_of_objects_with_few_keys(schema: dict[str, Any], property_order: str, seed: int) -> None:
    check_budgets(schema, property_order, seed)


_IMPOSSIBLE: list[Any] = [
    {"type": "object", "additionalProperties": False, "minProperties": 1},
    {"type": "object", "required": ["x"], "properties": {"x": False}},
    {"type": "object", "patternProperties": {"^[xy]$": True}, "additionalProperties": False, "minProperties": 3},
    {"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#/additionalProperties"}}},
    {"type": "array", "minItems": 1, "items": {"$ref": "#/additionalProperties"}},
    {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": "#/additionalProperties"}},
    {"type": "array", "items": {"type": "null"}, "uniqueItems": True, "minItems": 2},
    {"type": "array", "items": {"enum": [1, 1.0]}, "uniqueItems": True, "minItems": 2},
    {"type": "array", "prefixItems": [{"const": 1}, {"const": 1}], "uniqueItems": True, "minItems": 2},
    {"type": "array", "items": {"maximum": 300, "minimum": 1, "type": "integer"}, "uniqueItems": True, "minItems": 301},
    {"type": "array", "not": {"uniqueItems": True}, "maxItems": 1},
    {"type": "array", "not": {"uniqueItems": True}, "prefixItems": [{"const": 1}, {"const": 2}], "items": False},
    {"type": "array", "items": {"const": 1}, "contains": {"const": 1}, "maxContains": 1, "minItems": 2},
    {"type": "array", "contains": True, "minContains": 0, "maxContains": 0, "minItems": 1},
    {"type": "array", "allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}], "maxItems": 1},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1, "not": {"contains": {"type": "integer"}}},
    {"type": "number", "multipleOf": 0.3, "minimum": 0.1, "maximum": 0.2},
    {"const": 2, "type": "integer", "not": {"multipleOf": 2}},
    {"type": "object", "propertyNames": {"pattern": "^[xy]$"}, "not": {"propertyNames": {"maxLength": 1}}},
    {"type": "object", "required": ["x"], "maxProperties": 1, "not": {"propertyNames": {"const": "x"}}},
    {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"const": 1}, "uniqueItems": True, "minItems": 2},
        "minProperties": 1,
    },
    {"type": "array", "items": {"type": "array"}, "contains": {"type": "integer"}},
    {"type": "array", "prefixItems": [{"type": "string"}], "items": False, "contains": {"type": "integer"}},
]


@pytest.mark.parametrize("impossible", _IMPOSSIBLE, ids=lambda schema: json.dumps(schema)[:60])
def test_keys_whose_values_are_impossible_are_no_keys(impossible: Any) -> None:
    """Behind ``a`` and ``b`` no key is left, so no comma may follow; three members there cannot be."""
    schema = {"type": "object", "additionalProperties": impossible, "patternProperties": {"^[ab]$": {"const": None}}}
    vocabulary = constrain.Vocabulary([bytes((byte,)) for byte in range(128)] + [b"</s>"], eos_ids=[128])
    compiler = constrain.GrammarCompiler(vocabulary)
    matcher = constrain.Matcher(compiler.compile(constrain.Grammar.from_json_schema(schema, whitespace="compact")))
    assert matcher.fork().accept_bytes(b'{"b":null,"a":null}')
    assert matcher.accept_bytes(b'{"a":null,"b":null')
    assert mask_of(matcher) == {ord("}")}
    with pytest.raises(constrain.SchemaError, match="nothing is valid"):
        compiler.compile(constrain.Grammar.from_json_schema({**schema, "minProperties": 3}))


def test_what_every_key_meets_is_no_choice() -> None:
    names = [["1", "3"], ["2", "7", "9"], ["2", "3", "11"], ["2", "4", "5"], ["1", "2", "5"]]
    schema = {
        "type": "object",
        "patternProperties": {"^[0-9]$": {"type": "null"}},
        "additionalProperties": False,
        "not": {"anyOf": [{"propertyNames": {"not": {"enum": each}}} for each in names]},
        "maxProperties": 3,
    }
    assert len(from_json_schema(schema).productions) < 300
    texts = '{"1":null,"2":null}', '{"3":null,"2":null}', '{"1":null,"3":null}', '{"1":null,"9":null,"5":null}'
    assert verdicts(schema, *texts) == [True, True, False, False]
