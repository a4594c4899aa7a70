"""Byte-level files whose splits remove text, against Hugging Face's library: ids and offsets."""

from __future__ import annotations

import json

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_json_files import byte_level, split
from tokenizer_texts import PIECES, TEXTS
from tokenizers import pre_tokenizers

from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json

BYTES_WITH_REGEX = pre_tokenizers.ByteLevel(add_prefix_space=False)
STAGES = {
    "words": [split(r"\s+", "removed")],
    "inverted": [pre_tokenizers.Split(tokenizers.Regex(r"\p{L}+"), "removed", invert=True)],
    "white space": [pre_tokenizers.WhitespaceSplit()],
    "words and signs": [pre_tokenizers.Whitespace()],
    "at a sign": [pre_tokenizers.CharDelimiterSplit("e")],
    "before GPT-2's": [split("[a-f]+", "removed"), BYTES_WITH_REGEX],
    "everything, before GPT-2's": [split(r"[^\n]+|\n+", "removed"), BYTES_WITH_REGEX],
    "of bytes": [BYTES_WITH_REGEX, split("[\u0120\u00c3]", "removed")],
    "twice": [split("the", "removed"), split("[0-9]", "isolated"), split(r"\p{P}", "removed")],
}


@pytest.mark.parametrize("name", STAGES)
def test_equal_to_tokenizers(name):
    content = byte_level(*STAGES[name])
    content["added_tokens"] = [
        {"id": 1 + max(content["model"]["vocab"].values()), "content": "<x>", "special": False, "normalized": False,
         "lstrip": False, "rstrip": False, "single_word": False}
    ]  # fmt: skip
    text = json.dumps(content)
    reference, ours = tokenizers.Tokenizer.from_str(text), parse_tokenizer_json(text.encode())

    @settings(max_examples=150)
    @given(st.one_of(TEXTS, st.lists(st.sampled_from([*PIECES, "<x>", "abc", " the"])).map("".join)))
    def check(text):
        expected, got = reference.encode(text), ours.encode(text)
        assert got.ids == expected.ids
        assert got.tokens == expected.tokens
        assert got.offsets == expected.offsets
        assert ours.encode_batch([text, text])[1].ids == expected.ids

    check()


def test_text_that_is_removed_as_a_whole():
    ours = parse_tokenizer_json(json.dumps(byte_level(split(r"\s+", "removed"))).encode())
    encoding = ours.encode("   ")
    assert (encoding.ids, encoding.tokens, encoding.offsets) == ([], [], [])
