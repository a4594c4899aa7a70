"""Budgets where keys are limited: the next key may be far longer than the rules say, and so may its value."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from processor_time import processor_time

import constrain
from bench.fuzz import budgets, vocabularies
from bench.fuzz.protocol import Counts
from constrain.engine.vocabulary.bitmasks import ids_in_mask

LONG = "a_name_that_takes_many_tokens"
NAMES = {"type": "object", "propertyNames": {"enum": ["x", "yy", LONG]}, "additionalProperties": {"const": 1}}
KIND = {"type": "object", "required": ["kind"], "additionalProperties": False}

SCHEMAS: dict[str, Any] = {
    "names": NAMES,
    "names, two of them": {**NAMES, "minProperties": 2},
    "array of them": {"type": "array", "items": {**NAMES, "minProperties": 2}},
    "something shorter": {"anyOf": [{"const": 0}, {**NAMES, "minProperties": 2}]},
    "a pattern": {"type": "object", "patternProperties": {"^(a|ab{40})$": {"const": 1}}, "additionalProperties": False},
    "values": {
        "type": "object",
        "minProperties": 2,
        "patternProperties": {
            "^[ab]$": {"type": "integer"},
            "^c$": {"type": "array", "minItems": 20, "items": {"const": 1}},
        },
        "additionalProperties": False,
    },
    "recursive": {
        "$defs": {"n": {**NAMES, "additionalProperties": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/n"}]}}},
        "$ref": "#/$defs/n",
    },
    "by kind": {
        "anyOf": [
            {**NAMES, "properties": {"kind": {"type": "string", "pattern": "^[a-m]"}}, "minProperties": 2},
            {**KIND, "properties": {"kind": {"type": "string", "pattern": "^[n-z]"}}},
        ]
    },
}


def texts(schema: Any, seed: int, options: dict[str, Any]) -> int:
    """Texts under some budgets, each held against what a budget promises; how many: 0 if the schema takes none."""
    rng, counts = random.Random(seed), Counts()
    try:
        grammar = constrain.Grammar.from_json_schema(schema, **options)
        compiled = constrain.CompiledGrammar(grammar.ir, vocabularies.small())
        shortest = len(constrain.Matcher(compiled).completion())
    except constrain.ConstrainError:
        return 0
    for more in (0, 1, 2, 3, 5, 8, 13, 30, 60):
        wrong = budgets.walk(compiled, shortest + more, rng, counts)
        assert not wrong, (schema, wrong)
    return counts["texts"]


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("seed", range(4))
def test_each_text_ends_in_time(name: str, seed: int) -> None:
    options = [{"whitespace": "compact"}, {}, {"property_order": "any", "whitespace": "compact"}][seed % 3]
    assert texts(SCHEMAS[name], seed, options) == 9


def test_random_objects() -> None:
    made = 0
    for seed in range(60):
        made += texts(budgets.with_limited_keys(random.Random(seed)), seed, {"whitespace": "compact"})
    assert made > 300


def test_what_fits_is_allowed() -> None:
    """Not only the cheapest text: the longest key, if it is written in as many tokens as there are."""
    vocabulary = vocabularies.small()
    compiled = constrain.GrammarCompiler(vocabulary).compile(
        constrain.Grammar.from_json_schema({**NAMES, "minProperties": 2}, whitespace="compact")
    )
    by_text = {text: token for token, text in enumerate(vocabulary.tokens)}
    for keys in (["x", "yy"], [LONG, "x"], ["yy", LONG], ["x", "yy", LONG], [LONG, "yy", "x"]):
        text = json.dumps(dict.fromkeys(keys, 1), separators=(",", ":")).encode()
        tokens = []
        while text:
            size = max(size for size in range(1, len(text) + 1) if text[:size] in by_text)
            tokens.append(by_text[text[:size]])
            text = text[size:]
        matcher = constrain.Matcher(compiled, max_tokens=len(tokens))
        assert matcher.accept_tokens(tokens), keys
        assert matcher.is_accepting()


def test_a_token_from_the_first_key_to_the_next() -> None:
    """Behind ``"a":1,`` the rules know of the key ``"a":`` in one token; a key that differs takes more."""
    words = [b'"a"', b'"a":', b":1,", b'":', b"aa"]
    vocabulary = constrain.Vocabulary([*(bytes([byte]) for byte in range(256)), *words, b"</s>"], eos_ids=[261])
    schema = {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False}
    grammar = constrain.Grammar.from_json_schema(schema, whitespace="compact")
    compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    key, onward, went_on = 256, 258, 0
    for most in range(4, 14):
        matcher = constrain.Matcher(compiled, max_tokens=most)
        if not (matcher.accept_token(ord("{")) and matcher.accept_token(key)):
            continue
        matcher.fill_next_token_bitmask(mask)
        is_allowed = onward in ids_in_mask(mask[0])
        assert matcher.accept_token(onward) is is_allowed
        went_on += is_allowed
        assert len(matcher.completion()) <= most - matcher.steps, most
    assert 0 < went_on < 8


def test_a_wide_budget_needs_no_completions() -> None:
    """Behind each key of the first object there is another second one; masks took 2 s each to finish them all."""
    pattern = {"^.{2,3}$": {"type": "number"}}
    members = {
        "ab": {"type": "array", "items": {"type": "null"}, "minItems": 2},
        "q": {"type": "object", "patternProperties": pattern, "minProperties": 2},
    }
    item = {"type": "object", "properties": members, "required": ["ab"], "propertyNames": {"maxLength": 2}}
    schema = {"type": "array", "items": item, "minItems": 2, "uniqueItems": True}
    grammar = constrain.Grammar.from_json_schema(schema, property_order="any")
    vocabulary = vocabularies.small()
    matcher = constrain.Matcher(constrain.CompiledGrammar(grammar.ir, vocabulary), max_tokens=1000)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    single = {data: token for token, data in enumerate(vocabulary.tokens)}
    matcher.fill_next_token_bitmask(mask)
    with processor_time() as spent:
        for byte in b'[{"":3,"}":6,"]":5,"x':
            assert matcher.accept_token(single[bytes([byte])])
            matcher.fill_next_token_bitmask(mask)
    assert spent.seconds < 1


DEAR = {"type": "array", "items": {"const": 1}, "minItems": 100}
FEW_ARE_SHORT = {"patternProperties": {"^(x|p{40}[ab]{7})$": {"const": 1}}, "minProperties": 8}


def fits_where_it_begins(schema: Any, vocabulary: constrain.Vocabulary, begin: bytes, budgets: list[int]) -> list[int]:
    """The budgets under which a text may begin so, which then must be enough for its completion."""
    grammar = constrain.Grammar.from_json_schema(schema, whitespace="compact")
    compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
    begun = []
    for most in budgets:
        matcher = constrain.Matcher(compiled, max_tokens=most)
        if matcher.accept_tokens(begin):
            assert len(matcher.completion()) <= most - len(begin), most
            begun.append(most)
    return begun


def test_a_key_whose_value_needs_several() -> None:
    """By the rules, and for the keys of the cheapest text, all eight are ``x``."""
    several = {"type": "object", **FEW_ARE_SHORT, "additionalProperties": DEAR}
    members = {"^(a|c[ab]{7})$": {"const": 1}, "^b[ab]{7}$": several}
    schema = {"type": "object", "patternProperties": members, "additionalProperties": DEAR, "minProperties": 1}
    assert fits_where_it_begins(schema, vocabularies.small(), b'{"ba', [308, 341, 400]) == [400]


def test_a_token_with_several_members() -> None:
    """By the rules a token is four members; each of them may be a dearer one."""
    tokens = [*(bytes([byte]) for byte in range(256)), *(b'a":1,"' * count for count in (1, 2, 4)), b"</s>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[259])
    members = {"^(a|[ab]{12})$": {"const": 1}}
    several = {"patternProperties": members, "additionalProperties": {"const": "v" * 9}, "minProperties": 24}
    schema = {"anyOf": [{"const": 0}, {"type": "object", **several}]}
    assert fits_where_it_begins(schema, vocabulary, b'{"', [340, 365, 400]) == [400]


def test_keys_that_the_rules_leave_out_are_paid_for() -> None:
    """In unique items rules leave out the keys that were written, and say what the cheapest costs for each of them."""

    def members(low: int, value: Any) -> Any:
        names = {"propertyNames": {"maxLength": 1}, "minProperties": low}
        return {"type": "object", "additionalProperties": {"anyOf": [{"type": "null"}, value]}, **names}

    ones = {"type": "array", "items": {"const": 1}, "minItems": 6}
    items = members(3, {**members(2, {}), "additionalProperties": ones})
    grammar = constrain.Grammar.from_json_schema(
        {"type": "array", "uniqueItems": True, "items": items}, property_order="any", whitespace="compact"
    )
    tokens = [bytes((byte,)) for byte in b'[]{},:"012 null+abcdefghijk'] + [b"</s>"]
    tokens = list(dict.fromkeys(tokens))
    compiled = constrain.CompiledGrammar(grammar.ir, constrain.Vocabulary(tokens, eos_ids=[len(tokens) - 1]))
    text = b'[{"2":null,"0":null,"1":null},{"n":{"":['
    reached = 0
    for most in range(84, 100):
        matcher = constrain.Matcher(compiled, max_tokens=most)
        if all(matcher.accept_token(tokens.index(bytes((byte,)))) for byte in text):
            rest = matcher.completion()
            assert matcher.accept_tokens(rest), most
            reached += matcher.is_accepting()
    assert reached


def with_keys(*patterns: str, **more: Any) -> Any:
    return {"type": "object", "patternProperties": {pattern: {"const": 1} for pattern in patterns}, **more}


@pytest.mark.parametrize("is_one_step", [False, True])
@pytest.mark.parametrize(
    ("schema", "begin", "shortest"),
    [
        # By the rules ``"b":`` is one token; ``"ba":`` is four.
        (with_keys("^b(|bbb*)$", "^b(babaaaabbaabaababbbbbbbbbaabba|a)$", additionalProperties=False), b'{"b":1,', 6),
        # Endlessly many, but after the first all are long.
        (with_keys("^b(|b{20}b*)$", additionalProperties=False), b'{"b":1,', 25),
        (with_keys("^b(|b{200}b*)$", additionalProperties=False), b'{"b":1,', 205),
        # One that is under way, and is there.
        (with_keys("^b(|b{20}b*)$", additionalProperties=False), b'{"b":1,"b', 23),
        # As many bytes more with each key.
        (with_keys("^(b{9})*$", additionalProperties=False), b'{"":1,"bbbbbbbbb":1,', 22),
    ],
)
def test_the_next_key_costs_far_more(schema: Any, begin: bytes, shortest: int, *, is_one_step: bool) -> None:
    grammar = constrain.Grammar.from_json_schema(schema, whitespace="compact")
    compiled = constrain.CompiledGrammar(grammar.ir, vocabularies.small())
    fits = []
    for left in range(shortest - 4, shortest + 5):
        most = left + (5 if is_one_step else len(begin))
        matcher = constrain.Matcher(compiled, max_tokens=most)
        if matcher.accept_bytes(begin, tokens=5) if is_one_step else matcher.accept_tokens(list(begin)):
            fits.append(left)
            rest = matcher.completion()
            assert len(rest) <= left
            assert matcher.accept_tokens(rest), left
            assert matcher.is_accepting()
    assert fits == list(range(shortest, shortest + 5))


def test_a_wide_budget_is_asked_where_keys_get_longer() -> None:
    """Behind n keys the next one takes n bytes more: a budget that was ample for the first is not for the last."""
    grammar = constrain.Grammar.from_json_schema(with_keys("^b*$", additionalProperties=False), whitespace="compact")
    vocabulary = vocabularies.small()
    compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    text = b"{" + b",".join(b'"%s":1' % (b"b" * count) for count in range(100)) + b","
    for left in (90, 104, 105, 400):
        matcher = constrain.Matcher(compiled, max_tokens=len(text) + left)
        for place, byte in enumerate(text[:-1]):
            # A mask now and then, at each place within keys.
            if place % 11 == 0:
                matcher.fill_next_token_bitmask(mask)
            assert matcher.accept_token(byte)
        matcher.fill_next_token_bitmask(mask)
        # 100 letters, two quotes, a colon, the value, and the brace, with the quote and the colon in one token.
        assert (ord(",") in ids_in_mask(mask[0])) == matcher.fork().accept_token(ord(",")) == (left >= 104)


def test_digits_that_may_be_repeated_are_no_way_to_the_end() -> None:
    """Behind a 0 the rules say that a short key may follow, but those that the text has come to leave it out."""
    item = {"patternProperties": {"^(a|b*)$": {"enum": [0, 1]}, "^a": False}, "additionalProperties": False}
    schema = {"type": "array", "items": {"type": "object", **item, "minProperties": 3}, "uniqueItems": True}
    grammar = constrain.Grammar.from_json_schema({**schema, "minItems": 2}, whitespace="compact")
    compiled = constrain.CompiledGrammar(grammar.ir, vocabularies.small(), limit_bytes=1 << 24)
    text = b'[{"":0,"b":0,"bb":0},{"":1,"b":0'
    matcher = constrain.Matcher(compiled, max_tokens=60)
    mask = constrain.allocate_token_bitmask(1, compiled.vocabulary.size)
    assert all(matcher.accept_token(byte) for byte in text)
    matcher.fill_next_token_bitmask(mask)
    assert {ord(","), ord(".")} <= set(ids_in_mask(mask[0]).tolist())
    assert b"".join(compiled.vocabulary.tokens[token] for token in matcher.completion()) == b',"bb":0}]'


def test_what_finishes_a_text_need_not_finish_one_with_other_values() -> None:
    """Under the same keys: the second object must differ from the first one."""
    item = {"patternProperties": {"^a(|b{9}b*)$": {"enum": [0, 1]}}, "additionalProperties": False, "minProperties": 3}
    schema = {"type": "array", "items": {"type": "object", **item}, "uniqueItems": True, "minItems": 2}
    grammar = constrain.Grammar.from_json_schema(schema, whitespace="compact")
    compiled = constrain.CompiledGrammar(grammar.ir, vocabularies.small())
    mask = constrain.allocate_token_bitmask(1, compiled.vocabulary.size)
    shortest = len(constrain.Matcher(compiled).completion())
    for value in (0, 1):
        text = b'[{"abbbbbbbbb":0,"a":%d,"abbbbbbbbbb":0},{"a":' % value
        for more in range(8):
            matcher = constrain.Matcher(compiled, max_tokens=shortest + 12 + more)
            for byte in text:
                matcher.fill_next_token_bitmask(mask)
                if not matcher.accept_token(byte):
                    break
                twin = matcher.fork()
                assert all(map(twin.accept_token, twin.completion()))
                assert twin.is_accepting()


def test_what_is_known_of_keys_keeps_no_places() -> None:
    """Each takes time whenever states get other numbers, or tables are begun anew."""
    schema = {"type": "object", "patternProperties": {"^a?b?$": True}, "additionalProperties": True, "minProperties": 3}
    grammar = constrain.Grammar.from_json_schema(schema, whitespace="compact")
    compiled = constrain.CompiledGrammar(grammar.ir, vocabularies.small())
    matcher = constrain.Matcher(compiled)
    assert len(matcher.completion()) > 9
    assert list(compiled.cursors) == [matcher]
