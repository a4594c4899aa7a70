"""Masks inside strings, however they are come by: shared, by difference, or by a walk; and with bounds near and far."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import constrain
from tests.masks import by_trying, mask_of


def vocabulary() -> constrain.Vocabulary:
    """Every byte, and some thousand words and runs of up to 30 characters, with quotes and commas at all places."""
    tokens = [bytes([byte]) for byte in range(256)]
    rng = np.random.default_rng(5)
    alphabet = list("abcdenopqrst ,:{}[]0123456789\\/é") + ['"'] * 3
    for _ in range(6000):
        length = int(rng.integers(2, 9))
        tokens.append("".join(rng.choice(alphabet, length)).encode())
    for length in range(2, 31):
        tokens += [
            b"a" * length,
            b" " * length,
            b"n" * (length - 1) + b'"',
            b'"' + b"o" * length,
            "é".encode() * length,
        ]
    return constrain.Vocabulary([*tokens, b""], eos_ids=[len(tokens)])


VOCABULARY = vocabulary()


BOUNDED = [{"type": "string", "minLength": low, "maxLength": high} for low, high in ((0, 3), (2, 19), (0, 21), (5, 28))]
KEYS = {
    "type": "object",
    "properties": {"note": {"type": "string"}, "nose": {"type": "integer"}, "a": {"type": "string", "maxLength": 200}},
    "required": ["a"],
}
EXCLUDED = {
    "type": "object",
    "properties": {name: {"type": "null"} for name in ("a", "an", "not", "note", "\u00e9t\u00e9", '"')},
}
CASES: list[tuple[Any, str]] = [
    (EXCLUDED, '{"a":null,"no'),
    (EXCLUDED, '{"\u00e9'),
    ({"type": "string", "minLength": 4}, '"n'),
    ({"type": "string", "pattern": "no+t"}, '"anoo'),
    ({"type": "string", "pattern": "^(a{1,3}.d|no)", "minLength": 2}, '"aa'),
    ({"type": "string", "minLength": 2, "maxLength": 13}, '"note: "'),
    (BOUNDED[0], '"no'),
    *((schema, '"not too lo') for schema in BOUNDED[1:]),
    *((schema, '"' + "s" * 16) for schema in BOUNDED[1:]),
    ({"type": "string", "maxLength": 400}, '"' + "s" * 30),
    ({"type": "string", "pattern": "^[a-e]{1,25}$"}, '"abc'),
    ({"type": "string", "pattern": "^[a-e]*$", "maxLength": 12}, '"abcde'),
    ({"type": ["string", "null"], "maxLength": 30}, '"é\\n'),
    (KEYS, '{"no'),
    (KEYS, '{"note": "se", "a": "'),
    (KEYS, '{"note": "se","a":"x", "nota'),
    ({"type": "string", "pattern": "^([a-z]+ )*no+te?$", "maxLength": 200}, '"not a noo'),
    ({"type": "string", "pattern": "^([a-z]+ )*no+te?$", "maxLength": 24}, '"not a noo'),
    ({"type": "string", "pattern": "no[a-z]{3}", "minLength": 1, "maxLength": 120}, '"anot'),
    ({"type": "string", "pattern": "no[a-z]{3}", "minLength": 7, "maxLength": 120}, '"anot'),
    ({"type": "string", "format": "email", "maxLength": 254}, '"note@no'),
    ({"enum": ["note", "nose", "anything"]}, '"no'),
    ({"anyOf": [{"type": "string", "maxLength": 9}, {"enum": ["note", "no quotes here"]}]}, '"note'),
]


@pytest.mark.parametrize(
    ("schema", "prefix"), CASES, ids=lambda case: json.dumps(case) if isinstance(case, str) else ""
)
def test_masks_in_strings_equal_brute_force(schema: Any, prefix: str, masks_compared: Any) -> None:
    grammar = constrain.Grammar.from_json_schema(schema)
    expected: dict[int, set[int]] = {}
    fresh = constrain.CompiledGrammar(grammar.ir, VOCABULARY)
    # The second grammar finds what the first one left with the vocabulary.
    for _ in range(2):
        compiled = constrain.CompiledGrammar(grammar.ir, VOCABULARY)
        matcher = constrain.Matcher(compiled)
        data = prefix.encode()
        for place in range(len(data)):
            assert matcher.accept_bytes(data[place : place + 1])
            if place % 5 == 0 or place == len(data) - 1:
                if place not in expected:
                    expected[place] = by_trying(fresh, data[: place + 1])
                assert mask_of(matcher) == expected[place]
                masks_compared.add()


# Lexemes that end inside the repetition they begin with, loop in one alternative of several, or count.
REPETITIONS = [
    ("start: TEXT REST\nTEXT: /[^e]{2,}s/\nREST: /e[a-z ]*/", "not so"),
    ('start: TEXT REST\nTEXT: /"[^,:]*"/\nREST: /[,:].*/', '"note" "no'),
    ('start: (TEXT "," REST)+\nTEXT: /([a-d]+|[^:]*!|[a-z ]{0,14})[,:]/\nREST: "no" | "te"', "abc,,note"),
    ('start: TEXT ": " TEXT\nTEXT: /([^"\\\\]|\\\\.)*"/', 'no\\\\"'),
    ('start: /[^e]{12,20}e/ "t"', "nnnn" * 4),
    ("start: /(?:.{2}){0,11}/", "abcdabcd"),
]


@pytest.mark.parametrize(("text", "prefix"), REPETITIONS)
def test_masks_in_repetitions_equal_brute_force(text: str, prefix: str, masks_compared: Any) -> None:
    grammar = constrain.Grammar.from_lark(text)
    expected: dict[int, set[int]] = {}
    fresh = constrain.CompiledGrammar(grammar.ir, VOCABULARY)
    for _ in range(2):
        compiled = constrain.CompiledGrammar(grammar.ir, VOCABULARY)
        matcher = constrain.Matcher(compiled)
        data = prefix.encode()
        for place in range(len(data) + 1):
            if place not in expected:
                expected[place] = by_trying(fresh, data[:place])
            assert mask_of(matcher) == expected[place]
            masks_compared.add()
            assert place == len(data) or matcher.accept_bytes(data[place : place + 1])


def test_masks_that_were_dropped_come_back_the_same() -> None:
    grammar = constrain.Grammar.from_regex("([a-e]{1,9}[,: ]){1,200}")
    compiled = constrain.CompiledGrammar(grammar.ir, VOCABULARY, mask_limit_bytes=0)
    keeping = constrain.CompiledGrammar(grammar.ir, VOCABULARY)
    matchers = [constrain.Matcher(compiled), constrain.Matcher(keeping)]
    for byte in b"abcde,a:bc,dbca " * 25:
        masks = [mask_of(matcher) for matcher in matchers]
        assert masks[0] == masks[1]
        assert all(matcher.accept_bytes(bytes([byte])) for matcher in matchers)
    assert compiled.mask_bytes < keeping.mask_bytes


def test_an_alternative_that_is_empty_counts() -> None:
    """An expression with it is not taken for the one without, whose split the vocabulary knows already."""
    from constrain.grammar.ir import GrammarBuilder
    from constrain.grammar.languages.regular import EPSILON, concat, literal, union

    tokens = [b"<", b"<a>", b"</s>"]
    vocabulary = constrain.Vocabulary(tokens, eos_ids=[2])
    for last, expected in (
        (union(literal("b"), literal("c")), {0}),
        (union(EPSILON, literal("b"), literal("c")), {0, 1}),
    ):
        builder = GrammarBuilder()
        ir = builder.finish(builder.lexeme(concat(literal("<"), literal("a"), last, literal(">"))))
        matcher = constrain.Matcher(constrain.CompiledGrammar(ir, vocabulary))
        mask = constrain.allocate_token_bitmask(1, 3)
        matcher.fill_next_token_bitmask(mask)
        assert {token for token in range(3) if mask[0][0] >> token & 1} == expected
