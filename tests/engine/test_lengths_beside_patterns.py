"""Lengths beside patterns that count something themselves: the engine must not take one for the other."""

from __future__ import annotations

import json
import re

import pytest
from finite_texts import mask_of
from hypothesis import given
from hypothesis import strategies as st

import constrain

# Runs, so that masks are made from those of a string without bounds; the end token is the last one.
TOKENS = [bytes([byte]) for byte in range(256)] + [b"xxxxxx", b"abc", b"foo", b"aa1x", b",,,,,,", b'xx"', b""]
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])


def compiled_for(schema: dict[str, object]) -> constrain.CompiledGrammar:
    grammar = constrain.Grammar.from_json_schema(schema, spelling="canonical")
    return constrain.GrammarCompiler(VOCABULARY).compile(grammar)


def by_bytes(compiled: constrain.CompiledGrammar, text: bytes) -> set[int]:
    """The tokens with text that may follow, each tried byte by byte."""
    recognizer = compiled.recognizer()
    assert all(recognizer.try_push_byte(byte) for byte in text)
    found = set()
    for token, data in enumerate(TOKENS[:-1]):
        pushed = 0
        while pushed < len(data) and recognizer.try_push_byte(data[pushed]):
            pushed += 1
        if pushed == len(data):
            found.add(token)
        recognizer.pop_bytes(pushed)
    return found


@pytest.mark.parametrize("length", [{"minLength": 2}, {"minLength": 5}, {"minLength": 5, "maxLength": 3000}])
@pytest.mark.parametrize("text", [b'"', b'"a', b'"abc1', b'"abcx'])
def test_a_pattern_that_ends_in_a_bound_is_no_counter(length: dict[str, int], text: bytes) -> None:
    compiled = compiled_for({"type": "string", "pattern": "^[a-z]*[0-9]x{0,1000}$", **length})
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_bytes(text)
    assert mask_of(matcher, len(TOKENS)) == by_bytes(compiled, text)


def test_a_format_beside_a_length_costs_what_it_takes() -> None:
    # The optional fragment of a URI, which comes once at most, was taken for the counter of its characters.
    url = {"type": "string", "format": "uri", "minLength": 1}
    compiled = compiled_for({"type": "object", "properties": {"a": url}, "required": ["a"]})
    matcher = constrain.Matcher(compiled, max_tokens=300)
    for byte in b'{"a": "http://example.org/"}':
        assert byte in mask_of(matcher, len(TOKENS))
        assert matcher.accept_token(byte)
    assert matcher.is_accepting()


PARTS = [".", "[a-z]*", "[0-9]", "x{0,40}", ".{0,30}", "[^,]{1,20}", "foo", "(ab|c)?", ".*", "(x.){0,9}"]


@given(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=4),
    st.integers(0, 6),
    st.none() | st.integers(6, 45),
    st.lists(st.integers(0, len(TOKENS)), max_size=12),
)
def test_masks_and_completions_of_patterns_with_lengths(
    parts: list[str], least: int, most: int | None, steps: list[int]
) -> None:
    pattern = f"^{''.join(parts)}$"
    lengths = {"minLength": least} if most is None else {"minLength": least, "maxLength": most}
    try:
        compiled = compiled_for({"type": "string", "pattern": pattern, **lengths})
    except constrain.GrammarError:
        return
    free, held = constrain.Matcher(compiled), constrain.Matcher(compiled, max_tokens=60)
    text = b""
    for step in steps:
        allowed = sorted(mask_of(free, len(TOKENS)) - {len(TOKENS) - 1})
        assert set(allowed) == by_bytes(compiled, text)
        within = sorted(mask_of(held, len(TOKENS)) & set(allowed))
        if not within:
            break
        token = within[step % len(within)]
        assert free.accept_token(token)
        assert held.accept_token(token)
        text += TOKENS[token]
    text += b"".join(TOKENS[token] for token in held.completion())
    value = json.loads(text)
    assert re.fullmatch(pattern, value)
    assert least <= len(value) <= (len(value) if most is None else most)
