"""What an encoding says about its tokens: offsets, masks, hashes."""

from __future__ import annotations

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_texts import TEXTS

from constrain.errors import TokenizerError
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json

HASH_OF_65_122 = "6770bd69fbbecad2b983724056b1e6ad"


def pair(content):
    text = json.dumps(content)
    return tokenizers.Tokenizer.from_str(text), parse_tokenizer_json(text.encode())


@pytest.fixture
def content(small_json):
    content = copy.deepcopy(small_json)
    content["pre_tokenizer"]["trim_offsets"] = False
    return content


def test_fields(content):
    _, tokenizer = pair(content)
    encoding = tokenizer.encode("née the end<|endoftext|>")
    assert encoding.tokens[-1] == "<|endoftext|>"
    assert encoding.offsets[-1] == (11, 24)
    assert encoding.special_tokens_mask == [0] * len(encoding)
    joined = "".join("née the end<|endoftext|>"[begin:end] for begin, end in dict.fromkeys(encoding.offsets))
    assert joined == "née the end<|endoftext|>"
    restored = pickle.loads(pickle.dumps(encoding))
    assert restored == encoding
    assert restored.special_tokens_mask == encoding.special_tokens_mask
    assert encoding != tokenizer.encode("née the end")


def test_hash_is_that_of_the_ids(content):
    _, tokenizer = pair(content)
    assert tokenizer.encode("Az").hash() == HASH_OF_65_122
    assert tokenizer.encode("ab").hash() == tokenizer.encode("ab").hash()
    assert tokenizer.encode("ab").hash() != tokenizer.encode("ba").hash()


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_normalizers_equal_tokenizers(content, form):
    content["normalizer"] = {"type": form}
    flags = dict.fromkeys(("lstrip", "rstrip", "single_word", "special"), False)
    content["added_tokens"].append({"id": 401, "content": "é!", "normalized": True, **flags})
    reference, ours = pair(content)
    letters = st.sampled_from("aeé\u0301\u0323\u1ea5ﬁ²Å한\u1112\u1161\u11ab!A<ữ\u0327\u0958")

    @settings(max_examples=120)
    @given(st.text(letters, max_size=12))
    def check(text):
        expected, got = reference.encode(text, add_special_tokens=False), ours.encode(text)
        assert got.ids == expected.ids
        assert got.offsets == expected.offsets

    check()


def test_prefix_space_equals_tokenizers(content):
    content["pre_tokenizer"]["add_prefix_space"] = True
    reference, ours = pair(content)

    @settings(max_examples=100)
    @given(TEXTS)
    def check(text):
        expected, got = reference.encode(text, add_special_tokens=False), ours.encode(text)
        assert got.ids == expected.ids
        assert all(0 <= begin <= end <= len(text) for begin, end in got.offsets)

    check()
    assert ours.encode("the").offsets == [(0, 3)]


@pytest.mark.parametrize("flag", [None, "lstrip", "rstrip", "single_word"])
def test_added_tokens_equal_tokenizers(content, flag):
    for i, text in enumerate(("<x>", "<x>>", "of", " of")):
        flags = {key: key == flag for key in ("lstrip", "rstrip", "single_word")}
        content["added_tokens"].append({"id": 401 + i, "content": text, "special": i < 2, "normalized": False, **flags})
    reference, ours = pair(content)

    @settings(max_examples=120)
    @given(st.lists(st.sampled_from(["<x>", ">", " ", "of", "a", "_", "é", "1", "\n", "\u2003", "<"]), max_size=12))
    def check(parts):
        text = "".join(parts)
        expected, got = reference.encode(text, add_special_tokens=False), ours.encode(text)
        assert got.ids == expected.ids
        assert got.offsets == expected.offsets
        assert ours.decode(got.ids) == reference.decode(expected.ids)

    check()


@pytest.mark.parametrize("kind", ["TemplateProcessing", "RobertaProcessing"])
def test_special_tokens_around_a_text(content, kind):
    for i, name in enumerate(("<s>", "</s>")):
        content["added_tokens"].append({"id": 401 + i, "content": name, "special": True, "normalized": False})
    template = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "</s>", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            name: {"id": name, "ids": [401 + i], "tokens": [name]} for i, name in enumerate(("<s>", "</s>"))
        },
    }
    roberta = {
        "type": kind,
        "sep": ["</s>", 402],
        "cls": ["<s>", 401],
        "trim_offsets": False,
        "add_prefix_space": False,
    }
    content["post_processor"] = template if kind == "TemplateProcessing" else roberta
    for entry in content["added_tokens"]:
        entry.update(dict.fromkeys(("lstrip", "rstrip", "single_word"), False))
    reference, ours = pair(content)
    expected, got = reference.encode("the end"), ours.encode("the end", add_special_tokens=True)
    assert got.ids == expected.ids
    assert got.offsets == expected.offsets
    assert got.special_tokens_mask == expected.special_tokens_mask
    assert ours.encode("the end").ids == got.ids[1:-1]


def split(regex, behavior="Isolated"):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": False}


STAGES = {
    "one": [split(r"\s*[a-z]+")],
    "two": [split(r"\p{N}{1,3}"), split(r" ?\p{L}+|\s+(?!\S)", "MergedWithPrevious")],
    "three": [split(r"\p{N}"), split("[一-龥]+"), split(r"[^\r\n\p{L}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|\s+")],
}


@pytest.mark.parametrize("form", [None, "NFC", "NFKD"])
@pytest.mark.parametrize("stages", [None, *STAGES])
def test_short_and_long_texts_take_two_ways_to_the_same(content, stages, form):
    # A short text takes one kernel call and works out its tokens and offsets later.
    if form is not None:
        content["normalizer"] = {"type": form}
    if stages is not None:
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
        content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [*STAGES[stages], byte_level]}
    reference, tokenizer = pair(content)
    assert tokenizer._short_ids("The dog") == reference.encode("The dog").ids
    assert (tokenizer._short_ids("née") is None) == (form is not None)

    @settings(max_examples=80)
    @given(TEXTS)
    def check(text):
        short, long = tokenizer.encode(text), tokenizer._encode_long(text, False)
        assert short.ids == long.ids == reference.encode(text).ids
        assert short.tokens == long.tokens
        assert short.offsets == long.offsets
        assert short.special_tokens_mask == long.special_tokens_mask

    check()
    longest = "é" * 256
    assert (
        tokenizer.encode(longest + "é").ids[: len(tokenizer.encode(longest).ids) - 8]
        == (tokenizer.encode(longest).ids[:-8])
    )


def test_a_token_that_normalization_spells_otherwise_is_found_in_short_texts(content):
    content["normalizer"] = {"type": "NFKC"}
    flags = dict.fromkeys(("lstrip", "rstrip", "single_word", "special"), False)
    content["added_tokens"].append({"id": 401, "content": "ﬁt", "normalized": True, **flags})
    reference, tokenizer = pair(content)
    assert tokenizer.encode("a fit").ids == reference.encode("a fit").ids
    assert tokenizer.encode("a fit").ids[-1] == 401


def test_stages_that_take_too_many_steps_are_an_error(content):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split("(a|a)+b"), byte_level]}
    _, tokenizer = pair(content)
    with pytest.raises(TokenizerError, match="too many steps"):
        tokenizer.encode("a" * 100)
    assert tokenizer.encode("b").ids


def test_threads_share_what_short_texts_need(content):
    _, tokenizer = pair(content)
    texts = ["The dog", "née", "x" * 700, "the end " * 90, "人工", "<|endoftext|>a"] * 30
    expected = [tokenizer._encode_long(text, False).ids for text in texts]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert [encoding.ids for encoding in pool.map(tokenizer.encode, texts)] == expected
