"""Streams by two offsets give the texts of ``DecodeStream``, joined."""

from __future__ import annotations

import base64
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import processor_time
from tokenizer_json_files import bert_like, llama_like, t5_like
from tokenizer_texts import TEXTS

from constrain.demo import load
from constrain.errors import TokenizerError
from constrain.tokenizers import DecodeStream, OffsetDecodeStream, load_tokenizer
from constrain.tokenizers.formats.rank_encodings import RankEncoding
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


@pytest.fixture(scope="module")
def cutting(tmp_path_factory):
    """A tokenizer whose tokens begin and end within characters."""
    more = (
        b"\x98\x80\xf0\x9f",
        b"a\xf0",
        b"\xf0\x9f",
        b"\x98\x80",
        b"\x80a",
        b" \xe2\x82",
        b"\xac\xe2",
        b"\xef\xbf\xbd",
    )
    tokens = [*(bytes((byte,)) for byte in range(256)), *more, b"\xbd\xf0"]
    path = tmp_path_factory.mktemp("cutting") / "cutting.tiktoken"
    path.write_bytes(b"".join(b"%s %d\n" % (base64.b64encode(token), i) for i, token in enumerate(tokens)))
    special = {"<end>": len(tokens)}
    return load_tokenizer(path, encoding=RankEncoding("gpt2", len(tokens), special, eos=("<end>",)))


def test_each_step_gives_the_same_text(cutting):
    """Also where the prompt ends within a character, or characters are begun one after the other and none is ended."""
    pool = [0xF0, 0x9F, 0x98, 0x80, 0xE2, 0x82, 0xAC, ord("a"), 0xFF, *range(256, cutting.vocab_size)]
    rng = random.Random(1)
    for _ in range(2_000):
        ids = rng.choices(pool, k=rng.randrange(12))
        cut, skip = rng.randrange(len(ids) + 1), rng.random() < 0.5
        other = DecodeStream(cutting, ids[:cut], skip)
        stream = OffsetDecodeStream(cutting, ids[:cut], skip)
        for token_id in ids[cut:]:
            assert stream.step(token_id) == other.step(token_id), (ids, cut, skip)
            stream = OffsetDecodeStream(
                cutting, stream.ids, skip, prefix_offset=stream.prefix_offset, read_offset=stream.read_offset
            )
        assert [stream.flush(), stream.flush()] == [other.flush(), None], (ids, cut, skip)


def test_characters_come_whole():
    tokenizer, _ = load()
    stream = OffsetDecodeStream(tokenizer)
    ids = tokenizer.encode("na\u00efve \U0001f600").ids
    assert "".join(stream.step_batch(ids)) == "na\u00efve \U0001f600"
    assert stream.read_offset == len(ids)
    assert stream.flush() is None
    half = OffsetDecodeStream(tokenizer, tokenizer.encode("\U0001f600").ids[:-1])
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
    begun = next(i for i in range(tokenizer.vocab_size) if tokenizer.token_bytes(i) == b"\xf0")
    for token_id in (byte, begun, tokenizer.eos_ids[0]):
        stream = OffsetDecodeStream(tokenizer)
        with processor_time() as spent:
            stream.step_batch([token_id] * 20_000)
        assert spent.seconds < 1, "0.1 s when alone on the machine; decoding all at each step took 3 s"


@pytest.mark.parametrize(
    "data", [b"\xed\xad", b"\xed\xad\x80", b"\xed\xada", b"\xed\xad\xed\xad", b"a\xed\xa0", b"\xe2\x82"], ids=repr
)
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_half_of_a_surrogate_is_held_back_as_in_the_other_stream(data, cut):
    """Its two bytes wait for a third, which they cannot have, and are two characters if the text ends."""
    tokenizer = KINDS["bytes"]()
    of_byte = {tokenizer.token_bytes(token): token for token in range(tokenizer.vocab_size)}
    ids = [of_byte[data[place : place + 1]] for place in range(len(data))]
    streams = [kind(tokenizer, ids[:cut]) for kind in (DecodeStream, OffsetDecodeStream)]
    steps = [[*(stream.step(token) for token in ids[cut:]), stream.flush()] for stream in streams]
    assert steps[0] == steps[1]
