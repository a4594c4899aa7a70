"""Streams: never half a character, never a character lost or repeated."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import processor_time
from tokenizer_texts import TEXTS

from constrain.errors import TokenizerError
from constrain.tokenizers import DecodeStream
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.mock import MockTokenizer


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


def test_batches(tokenizer):
    ids = tokenizer.encode("naïve 😀!").ids
    assert "".join(DecodeStream(tokenizer).step_batch(ids)) == "naïve 😀!"
    assert DecodeStream(tokenizer).step_batch([0xF0, 0x9F]) == []
    assert DecodeStream(tokenizer).step_batch([0xC3, 0xA4, ord("a")]) == ["ä", "a"]


class SpaceInFront(MockTokenizer):
    """Drops the space in front of a text, as SentencePiece does."""

    def decode_bytes(self, ids, skip_special_tokens=True):
        kept = [i for i in ids if not (skip_special_tokens and i in self.special_ids)]
        return super().decode_bytes(kept, skip_special_tokens).removeprefix(b" ")


class SpaceDroppedFromText(MockTokenizer):
    """The same, but the bytes keep it."""

    strips_leading_space = True


class AllSpacesInFront(MockTokenizer):
    """Drops all of them."""

    def decode_bytes(self, ids, skip_special_tokens=True):
        return super().decode_bytes(ids, skip_special_tokens).lstrip(b" ")


class Words(MockTokenizer):
    """Puts a space between tokens, as WordPiece does."""

    def decode_bytes(self, ids, skip_special_tokens=True):
        kept = [i for i in ids if not (skip_special_tokens and i in self.special_ids)]
        return b" ".join(MockTokenizer.decode_bytes(self, [i], False) for i in kept)


HARD = [32, 97, 0xC3, 0xA4, 256, 257, 264, 270]


@pytest.mark.parametrize("kind", [SpaceInFront, SpaceDroppedFromText, AllSpacesInFront, Words])
@given(ids=st.lists(st.sampled_from(HARD), max_size=8), cut=st.integers(0, 8), skip=st.booleans())
def test_tokenizers_that_treat_the_first_token_differently(kind, ids, cut, skip):
    tokenizer = kind()
    parts, rest = stream(tokenizer, ids, skip_special_tokens=skip)
    assert "".join(parts) + (rest or "") == tokenizer.decode(ids, skip)
    before = DecodeStream(tokenizer, skip_special_tokens=skip)
    known = "".join(before.step_batch(ids[:cut]))
    parts, rest = stream(tokenizer, ids[cut:], prompt_ids=ids[:cut], skip_special_tokens=skip)
    assert known + "".join(parts) + (rest or "") == tokenizer.decode(ids, skip)


def seconds(tokenizer, ids):
    decoder = DecodeStream(tokenizer)
    with processor_time() as spent:
        for token_id in ids:
            decoder.step(token_id)
    return spent.seconds


def test_a_hundred_thousand_tokens(tokenizer):
    ids = [(7919 * i) % 400 for i in range(100_000)]
    assert min(seconds(tokenizer, ids) for _ in range(3)) < 0.2


def test_a_step_costs_the_same_in_a_long_stream(tokenizer):
    # Bytes that never become a character are the hard case: what is held must not grow.
    for token_id in (0x80, 0xF0, 300):
        short = min(seconds(tokenizer, [token_id] * 10_000) for _ in range(3))
        long = min(seconds(tokenizer, [token_id] * 80_000) for _ in range(3))
        assert long < 8 * 3 * short
