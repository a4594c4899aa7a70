"""Streams by two offsets give the texts of ``DecodeStream``, joined."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import processor_time
from tokenizer_json_files import bert_like, llama_like, t5_like
from tokenizer_texts import TEXTS

from constrain.demo import load
from constrain.errors import TokenizerError
from constrain.tokenizers import DecodeStream, OffsetDecodeStream
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json

KINDS = {
    "bytes": lambda: load()[0],
    **{
        make.__name__: lambda make=make: parse_tokenizer_json(json.dumps(make()).encode())
        for make in (llama_like, t5_like, bert_like)
    },
}


@pytest.mark.parametrize("name", KINDS)
def test_the_same_text(name):
    tokenizer = KINDS[name]()

    @settings(max_examples=100)
    @given(TEXTS, st.integers(0, 30), st.booleans())
    def check(text, cut, skip):
        ids = tokenizer.encode(text + "</s>" + text).ids
        other = DecodeStream(tokenizer, ids[:cut], skip)
        expected = "".join([*other.step_batch(ids[cut:]), other.flush() or ""])
        stream = OffsetDecodeStream(tokenizer, ids[:cut], skip)
        texts = []
        for token_id in ids[cut:]:
            texts.append(stream.step(token_id) or "")
            # Another process goes on from the numbers alone.
            stream = OffsetDecodeStream(
                tokenizer, stream.ids, skip, prefix_offset=stream.prefix_offset, read_offset=stream.read_offset
            )
        texts.append(stream.flush() or "")
        assert "".join(texts) == expected
        assert stream.ids == ids

    check()


def test_characters_come_whole():
    tokenizer, _ = load()
    stream = OffsetDecodeStream(tokenizer)
    ids = tokenizer.encode("na\u00efve \U0001f600").ids
    assert "".join(stream.step_batch(ids)) == "na\u00efve \U0001f600"
    assert stream.read_offset == len(ids)
    assert stream.flush() is None
    half = OffsetDecodeStream(tokenizer, tokenizer.encode("\U0001f600").ids[:-1])
    assert half.read_offset == 0
    assert half.flush().startswith("\ufffd")


def test_offsets_that_are_none():
    tokenizer, _ = load()
    for offsets in (
        {"prefix_offset": 0},
        {"prefix_offset": 2, "read_offset": 1},
        {"prefix_offset": 0, "read_offset": 9},
    ):
        with pytest.raises(TokenizerError, match="offset"):
            OffsetDecodeStream(tokenizer, [1, 2, 3], **offsets)


def test_bytes_that_begin_no_character_do_not_wait():
    tokenizer, _ = load()
    byte = next(i for i in range(tokenizer.vocab_size) if tokenizer.token_bytes(i) == b"\x80")
    half = next(i for i in range(tokenizer.vocab_size) if tokenizer.token_bytes(i) == b"\xe2")
    stream = OffsetDecodeStream(tokenizer)
    assert [stream.step(token_id) for token_id in (byte, byte, half, byte)] == ["\ufffd", "\ufffd", None, None]
    assert stream.read_offset == 2
    assert stream.flush() == "\ufffd"


def test_special_tokens_within_a_character():
    tokenizer, _ = load()
    ids = tokenizer.encode("a\U0001f600").ids
    ids[-1:-1] = [tokenizer.eos_ids[0]] * 9
    stream = OffsetDecodeStream(tokenizer, ids[:-1])
    assert stream.step(ids[-1]) == "\U0001f600"


def test_a_step_costs_the_same_whatever_comes():
    tokenizer, _ = load()
    byte = next(i for i in range(tokenizer.vocab_size) if tokenizer.token_bytes(i) == b"\x80")
    for token_id in (byte, tokenizer.eos_ids[0]):
        stream = OffsetDecodeStream(tokenizer)
        with processor_time() as spent:
            stream.step_batch([token_id] * 20_000)
        assert spent.seconds < 1, "0.1 s when alone on the machine; decoding all at each step took 3 s"
