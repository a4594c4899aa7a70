"""Lengths beside patterns that count something themselves: the engine must not take one for the other."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from masks import by_trying, mask_of

import constrain

# Runs, so that masks are made from those of a string without bounds; the end token is the last one.
TOKENS = [bytes([byte]) for byte in range(256)] + [b"xxxxxx", b"abc", b"foo", b"aa1x", b",,,,,,", b'xx"', b""]
VOCABULARY = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])


def compiled_for(schema: dict[str, object]) -> constrain.CompiledGrammar:
    grammar = constrain.Grammar.from_json_schema(schema, spelling="canonical")
    return constrain.GrammarCompiler(VOCABULARY).compile(grammar)


@pytest.mark.parametrize("length", [{"minLength": 2}, {"minLength": 5}, {"minLength": 5, "maxLength": 3000}])
@pytest.mark.parametrize("text", [b'"', b'"a', b'"abc1', b'"abcx'])
def test_a_pattern_that_ends_in_a_bound_is_no_counter(length: dict[str, int], text: bytes) -> None:
    compiled = compiled_for({"type": "string", "pattern": "^[a-z]*[0-9]x{0,1000}$", **length})
    matcher = constrain.Matcher(compiled)
    assert matcher.accept_bytes(text)
    assert mask_of(matcher) == by_trying(compiled, text)


def test_a_format_beside_a_length_costs_what_it_takes() -> None:
    # The optional fragment of a URI, which comes once at most, was taken for the counter of its characters.
    url = {"type": "string", "format": "uri", "minLength": 1}
    compiled = compiled_for({"type": "object", "properties": {"a": url}, "required": ["a"]})
    matcher = constrain.Matcher(compiled, max_tokens=300)
    for byte in b'{"a": "http://example.org/"}':
        assert byte in mask_of(matcher)
        assert matcher.accept_token(byte)
    assert matcher.is_accepting()


@pytest.mark.parametrize(
    ("pattern", "most", "needed"),
    [
        # Behind the counter's last character the pattern's own end was taken for a counter.
        ("^.{0,30}foo.x{0,40}$", 6, 4),
        ("^.{0,30}foox{0,1}$", 6, 3),
        ("^(a|b){0,30}foo..{0,40}$", 6, 4),
        ("^.*[0-9][ab]{2}x{0,40}$", 5, 3),
    ],
)
def test_no_text_goes_on_where_a_pattern_needs_more_than_is_left(pattern: str, most: int, needed: int) -> None:
    compiled = compiled_for({"type": "string", "pattern": pattern, "maxLength": most})
    for count in range(most + 1):
        matcher = constrain.Matcher(compiled)
        assert matcher.accept_bytes(b'"' + b"a" * count) == (count + needed <= most), count
        if count + needed <= most:
            assert json.loads(b'"' + b"a" * count + b"".join(TOKENS[token] for token in matcher.completion()))


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
        assert mask_of(free) == by_trying(compiled, text)
        within = sorted(mask_of(held) - {len(TOKENS) - 1})
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
