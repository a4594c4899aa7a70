"""Streams: never half a character, never a character lost or repeated."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_texts import TEXTS

from constrain.errors import TokenizerError
from constrain.tokenizers import DecodeStream
from constrain.tokenizers.tokenizer_json import parse_tokenizer_json


@pytest.fixture(scope="module")
def tokenizer(small_json):
    return parse_tokenizer_json(json.dumps(small_json).encode())


def stream(tokenizer, ids, **options):
    decoder = DecodeStream(tokenizer, **options)
    parts = [part for part in map(decoder.step, ids) if part is not None]
    assert all(parts), "a step gives None rather than empty text"
    return parts, decoder.flush()


def test_whole_characters(tokenizer):
    ids = tokenizer.encode("naïve 😀!").ids
    parts, rest = stream(tokenizer, ids)
    assert "".join(parts) == "naïve 😀!"
    assert "😀" in "".join(parts[-2:])
    assert rest is None


def test_any_text(tokenizer):
    @settings(max_examples=100)
    @given(TEXTS)
    def check(text):
        parts, rest = stream(tokenizer, tokenizer.encode(text).ids, skip_special_tokens=False)
        assert "".join(parts) == text
        assert rest is None
        assert not any("\ufffd" in part for part in parts) or "\ufffd" in text

    check()


def test_any_ids(tokenizer):
    # Ill-formed UTF-8 included: the stream and a decoding of everything agree.
    @settings(max_examples=150)
    @given(
        st.lists(st.one_of(st.integers(0, 400), st.integers(128, 255)), max_size=20), st.integers(0, 20), st.booleans()
    )
    def check(ids, cut, skip):
        parts, rest = stream(tokenizer, ids, skip_special_tokens=skip)
        assert "".join(parts) + (rest or "") == tokenizer.decode(ids, skip)
        # With a prompt: only what comes after the complete characters of the prompt.
        prompt, later = ids[:cut], ids[cut:]
        before = DecodeStream(tokenizer, skip_special_tokens=skip)
        known = "".join(filter(None, map(before.step, prompt)))
        parts, rest = stream(tokenizer, later, prompt_ids=prompt, skip_special_tokens=skip)
        assert known + "".join(parts) + (rest or "") == tokenizer.decode(ids, skip)

    check()


def test_flush_gives_what_is_held_back_once(tokenizer):
    decoder = DecodeStream(tokenizer)
    assert decoder.step(0xF0) is None
    assert decoder.step(0x9F) is None
    assert decoder.flush() == "\ufffd"
    assert decoder.flush() is None
    assert decoder.step(ord("a")) == "a"


def test_unknown_id(tokenizer):
    with pytest.raises(TokenizerError):
        DecodeStream(tokenizer).step(401)


def test_a_hundred_thousand_tokens(tokenizer):
    decoder = DecodeStream(tokenizer)
    begin = time.perf_counter()
    for _ in range(100_000):
        decoder.step(300)
    assert time.perf_counter() - begin < 2, "0.1 s when alone on the machine"
