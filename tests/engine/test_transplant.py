"""Compaction (parser/transplant.py) changes no mask, however often it happens, and keeps tables within their limit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import constrain

TOKENS = [bytes((byte,)) for byte in range(256)]
TOKENS += [b'{"', b'":', b'","', b'"a"', b"true", b"[[", b"]]", b"1.0", b'"]', b"[1,2]", b"ab", b"ba", b"</s>"]
EOS = len(TOKENS) - 1

GRAMMARS = {
    "any JSON": constrain.Grammar.from_json_schema({}, whitespace="compact"),
    "patterns": constrain.Grammar.from_json_schema(
        {
            "properties": {"a": {"type": "string", "pattern": "^(ab|ba)+$", "maxLength": 9}, "b": {"type": "integer"}},
            "patternProperties": {"^x": {"not": {"const": 12}}},
            "additionalProperties": False,
            "maxProperties": 3,
        }
    ),
    "numbers": constrain.Grammar.from_json_schema({"type": "array", "items": {"multipleOf": 7, "minimum": -99}}),
    "counts": constrain.Grammar.from_regex(r"(a|b)*a(a|b){9}(c|[^a]{2,5})"),
    "complements": constrain.Grammar.from_lark('start: (A "," )* A\nA: /(?!ab)[ab]{1,6}(?<!ba)/\n'),
    "ambiguous": constrain.Grammar.from_lark('start: start "+" start | /[0-9]+/ | "(" start ")"\n'),
}


@pytest.fixture(scope="module")
def vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary(TOKENS, eos_ids=[EOS])


def allowed(matcher: constrain.Matcher) -> list[int]:
    mask = constrain.allocate_token_bitmask(1, len(TOKENS))
    matcher.fill_next_token_bitmask(mask)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", list(GRAMMARS))
@pytest.mark.parametrize("budget", [None, 60])
def test_masks_are_the_same(vocabulary: constrain.Vocabulary, name: str, budget: int | None) -> None:
    """Compacted before each call, with twins that were left behind, and against a grammar that never is."""
    often = constrain.CompiledGrammar(GRAMMARS[name].ir, vocabulary)
    never = constrain.CompiledGrammar(GRAMMARS[name].ir, vocabulary)
    compared = 0
    for seed in range(3):
        choose = random.Random(seed)
        pairs = [(constrain.Matcher(often, budget), constrain.Matcher(never, budget))]
        for _ in range(40):
            often._compact_above = 0
            one, other = choose.choice(pairs)
            tokens = allowed(other)
            assert allowed(one) == tokens
            assert one.is_accepting() == other.is_accepting()
            compared += 1
            action = choose.random()
            if action < 0.1 and len(pairs) < 4:
                pairs.append((one.fork(), other.fork()))
            elif (action < 0.2 or one.is_terminated()) and one.steps:
                count = choose.randrange(1, one.steps + 1)
                one.rollback(count)
                other.rollback(count)
            elif tokens:
                token = choose.choice(tokens)
                assert one.accept_token(token)
                assert other.accept_token(token)
    assert often.tables_made > 50
    assert compared == 120


def test_a_text_that_needs_ever_new_lexer_states(vocabulary: constrain.Vocabulary) -> None:
    """In one step and in many, in a tenth of the memory that its lexer states take together."""
    limit = 3_000_000
    ir = constrain.Grammar.from_regex(r"(a|b)*a(a|b){14}c").ir
    tight = constrain.CompiledGrammar(ir, vocabulary, limit_bytes=limit)
    wide = constrain.CompiledGrammar(ir, vocabulary)
    matcher, reference = constrain.Matcher(tight), constrain.Matcher(wide)
    choose = random.Random(1)

    def both(call: str, *args: Any) -> None:
        assert getattr(matcher, call)(*args) == getattr(reference, call)(*args)
        assert allowed(matcher) == allowed(reference)
        assert tight.nbytes <= limit

    both("accept_bytes", bytes(choose.choices(b"ab", k=100_000)))
    for _ in range(500):
        both("accept_bytes", bytes(choose.choices(b"ab", k=16)))
    both("rollback", 400)
    both("accept_bytes", bytes(choose.choices(b"ab", k=20_000)))
    both("rollback", 102)
    assert wide.nbytes > 4 * limit
    assert tight.tables_made > 10
