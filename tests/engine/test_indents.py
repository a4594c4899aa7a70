"""Masks where indents are counted, with tokens of more blanks than may come: compared with brute force."""

from __future__ import annotations

import pytest
from conftest import MaskCount
from hypothesis import example, given, settings
from hypothesis import strategies as st
from masks import mask_of, tokens_from

import constrain

RUNS = (*range(1, 13), 15, 16, 17, 31, 32, 33, 40, 64, 94, 95, 96, 97, 98, 128)


def tokens_of(inner: int) -> list[bytes]:
    """Tokens with blanks at their beginning, and with up to ``inner`` of them behind another byte."""
    blanks = [blank * size for blank in (b" ", b"\t") for size in RUNS]
    mixed = [b"\t" * 3 + b" " * 5, b" " * 4 + b"\t", b" " * 50 + b"\t" * 50, b"\t" * 96, b"\t" * 95 + b" "]
    behind = [size * b" " + rest for size in (1, 2, 4, 95, 96, 97) for rest in (b'"', b'"a', b"1", b"}", b"]", b"\n")]
    lines = [
        before + end + size * b" " + after
        for before in (b"", b"{", b",", b"[", b'",', b"1,")
        for end in (b"\n", b"\r\n", b"\r")
        for size in RUNS
        if size <= inner
        for after in (b"", b'"')
    ]
    single = [bytes([byte]) for byte in b' \t\n\r{}[]:,"0123ab\\x'] + ["é".encode()]
    return [*dict.fromkeys([*single, *blanks, *mixed, *behind, *lines, b'"a":', b'": ', b" :", b"  :", b' "'])]


SHORT, LONG = tokens_of(20), tokens_of(98)

SCHEMAS = (
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["b"]},
    {"type": "array", "items": {"type": "array", "items": {"enum": ["a", 1, 12]}, "minItems": 1}, "minItems": 1},
    True,
)
PATTERNS = (
    r"a(?: {0,2}|\r?\n[ \t]{0,96})(?:\{|\"[ab]*\")",
    r"a(?: {0,2}|\r?\n[ \t]{0,5})(?:1|\n *2)",
    r"(?:a[ \t]{0,40}b)*",
    r"a[ \t]{3,33}(?: a|b)?",
    r"(?:a(?:\n {0,36}|b\t{0,34})[ \t1]*)*",
    r"(?:a(?:\n {0,36}| {0,40})1)*",
)


def compiled(grammar: constrain.Grammar, tokens: list[bytes]) -> constrain.CompiledGrammar:
    vocabulary = constrain.Vocabulary([*tokens, b"</s>"], eos_ids=[len(tokens)])
    return constrain.GrammarCompiler(vocabulary).compile(grammar)


GRAMMARS = [
    *(constrain.Grammar.from_json_schema(schema) for schema in SCHEMAS),
    constrain.Grammar.from_json_schema(SCHEMAS[0], max_whitespace=33),
    *map(constrain.Grammar.from_regex, PATTERNS),
]
COMPILED = [(compiled(grammar, tokens), tokens) for grammar in GRAMMARS for tokens in (SHORT, LONG)]


@pytest.mark.parametrize("number", range(len(COMPILED)))
@settings(max_examples=12)
@given(walk=st.lists(st.integers(0, 10**6), min_size=1, max_size=25))
@example(walk=[2, 2, 2, 2])
def test_masks_are_exact(number: int, walk: list[int], masks_compared: MaskCount) -> None:
    grammar, tokens = COMPILED[number]
    matcher, recognizer = constrain.Matcher(grammar), grammar.recognizer()
    for choice in walk:
        expected = tokens_from(recognizer, tokens)
        found = mask_of(matcher) - {len(tokens)}
        assert found == expected, [tokens[token] for token in found ^ expected]
        masks_compared.add()
        # Blanks and line ends are what this is about.
        blank = [token for token in expected if not tokens[token].strip(b" \t\r\n")]
        ways = sorted(blank if blank and choice % 3 else expected)
        if not ways:
            break
        token = ways[choice // 3 % len(ways)]
        assert matcher.accept_token(token)
        assert all(map(recognizer.try_push_byte, tokens[token]))


@pytest.mark.parametrize("left", [0, 1, 4, 40, 90, 95, 96])
def test_every_number_of_blanks(left: int, masks_compared: MaskCount) -> None:
    for tokens in (SHORT, LONG):
        grammar = compiled(GRAMMARS[0], tokens)
        matcher, recognizer = constrain.Matcher(grammar), grammar.recognizer()
        before = b'{"a": 1,\n' + (96 - left) * b" "
        assert matcher.accept_bytes(before)
        assert all(map(recognizer.try_push_byte, before))
        assert mask_of(matcher) - {len(tokens)} == tokens_from(recognizer, tokens)
        masks_compared.add()


def test_blanks_behind_another_byte_are_counted() -> None:
    assert constrain.Vocabulary([b"a" + b" " * 70 + b"b \t", b" " * 100]).inner_blanks == 70
    assert constrain.Vocabulary([b"\n" + b" \t" * 20, b"x"]).inner_blanks == 40
    assert constrain.Vocabulary([b" " * 100, b"x"]).inner_blanks < 40
