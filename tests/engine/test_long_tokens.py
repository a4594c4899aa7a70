"""Vocabularies with very long tokens: right masks, and time and memory in proportion to their bytes."""

from __future__ import annotations

import json
import random
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
from processor_time import processor_time

import constrain
from constrain.engine.conditions.unique_keys import quote_tokens
from constrain.engine.conditions.unique_keys.quote_tokens import QuoteTokens

BYTES = [bytes((byte,)) for byte in range(256)]


def vocabulary(long: list[bytes]) -> constrain.Vocabulary:
    return constrain.Vocabulary([*BYTES, *long, b"</s>"], eos_ids=[256 + len(long)])


def words(count: int, size: int) -> list[bytes]:
    letters = np.frombuffer(b'abcdefghij  ":,{}[]1', np.uint8)
    rng = np.random.default_rng(7)
    return [letters[rng.integers(0, len(letters), size)].tobytes() for _ in range(count)]


@pytest.mark.parametrize(
    "long",
    [words(300, 2000), [b"x" * 1990 + b"%010d" % i for i in range(300)], [b"a" * (1 << 20), b"ab" * (1 << 19)]],
    ids=["random", "one beginning", "a megabyte"],
)
def test_memory_is_in_proportion_to_the_bytes(long: list[bytes]) -> None:
    total = sum(map(len, long))
    least = vocabulary([]).nbytes
    tracemalloc.start()
    try:
        made = vocabulary(long)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made.nbytes - least < 40 * total
    # What is only there while it is made is in proportion too; a part of it to the longest token alone.
    assert peak - least < 80 * total + (4 << 20)


@pytest.mark.parametrize(
    "grammar",
    [
        constrain.Grammar.from_regex('[a-z ]{0,2100}[0-9"]?'),
        constrain.Grammar.from_regex("(a|ab)*"),
        constrain.Grammar.from_json_schema({"type": ["array", "object", "string"], "items": {"maxLength": 1500}}),
    ],
    ids=["counted", "repeated", "schema"],
)
def test_masks_equal_what_is_accepted(grammar: constrain.Grammar, masks_compared: Any) -> None:
    pieces = ["a", "ab", "b", " ", '"', "1", ",", "[", "]", '"a":', '","', "{", "}"]
    choose = random.Random(3)
    long = []
    for piece in pieces:
        for size in (10, 100, 1000, 1990, 3000):
            long.append(((piece * size)[:size]).encode())
            long.append(('"' + (piece * size)[:size] + choose.choice(pieces)).encode())
            long.append(json.dumps([(piece * size)[:size], {"a": piece}], separators=(",", ":")).encode())
    made = vocabulary(long)
    matcher = constrain.Matcher(constrain.CompiledGrammar(grammar.ir, made))
    mask = constrain.allocate_token_bitmask(1, made.size)
    taken = 0
    for text in (b"", b"a", b"b", b'"', b'["', b'["ab', b'{"a', b'["a",'):
        matcher.reset()
        if not matcher.accept_bytes(text):
            continue
        taken += 1
        matcher.fill_next_token_bitmask(mask)
        masks_compared.add()
        for token in range(made.size):
            allowed = bool(mask[0, token >> 5] >> (token & 31) & 1)
            twin = matcher.fork()
            assert twin.accept_token(token) == allowed, (text, made.tokens[token][:50])
    assert taken >= 2


STRING_REST = re.compile(rb'((?:[^"\\]|\\.)*)"', re.DOTALL)


def test_strings_in_tokens() -> None:
    choose = random.Random(5)
    tokens = [bytes(choose.choices(b'"\\a,:u0 \n', k=choose.randrange(14))) for _ in range(20_000)]
    for token in tokens:
        expected = []
        for place, byte in enumerate(token):
            rest = STRING_REST.match(token, place + 1) if byte == ord('"') else None
            if rest is not None:
                expected.append((place + 1, rest.end() - 1))
        assert list(quote_tokens._strings(token)) == expected


@pytest.mark.parametrize("unit", [b'"', b'":', b",", b'\\"', b'," ', b'"\\', b" ", b':"', b'{"a":1,', b"\\"])
def test_quotes_in_long_tokens_take_linear_time(unit: bytes) -> None:
    for end in (b"", b"a", b",x"):
        token = unit * (100_000 // len(unit)) + end
        with processor_time() as spent:
            QuoteTokens(vocabulary([token]))
        assert spent.seconds < 2.5


def test_strings_within_strings_have_a_limit() -> None:
    with pytest.raises(constrain.LimitError, match="hold strings of"):
        QuoteTokens(vocabulary([b'\\"' * 20_000 + b'"']))
