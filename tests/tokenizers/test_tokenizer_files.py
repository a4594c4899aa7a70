"""Files: what is recognised, what is refused, and with which words."""

from __future__ import annotations

import base64
import copy
import json
import math
import os

import pytest
from processor_time import processor_time

import constrain
from constrain.errors import TokenizerError
from constrain.tokenizers import load_tokenizer
from constrain.tokenizers.formats.rank_encodings import RankEncoding
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.splitting.patterns import by_name
from constrain.tokenizers.splitting.stages import RegexStage

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def rank_file(tokens):
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))


def test_formats_are_recognised(tmp_path, small_json, small_vocabulary):
    plain = load_tokenizer(write(tmp_path / "any.name", small_json))
    marked = load_tokenizer(write(tmp_path / "bom", b"\xef\xbb\xbf \n" + json.dumps(small_json).encode()))
    write(tmp_path / "tokenizer.json", small_json)
    folder = load_tokenizer(str(tmp_path))
    ranks = load_tokenizer(write(tmp_path / "x.tiktoken", rank_file(small_vocabulary[0])), encoding="r50k_base")
    for tokenizer in (plain, marked, folder, ranks):
        assert tokenizer.encode("the end").ids == plain.encode("the end").ids
    assert constrain.load_tokenizer is load_tokenizer


def test_folder_with_a_rank_file(tmp_path, small_vocabulary):
    write(tmp_path / "r50k_base.tiktoken", rank_file(small_vocabulary[0]))
    assert load_tokenizer(tmp_path, encoding="r50k_base").eos_ids == (50256,)
    with pytest.raises(TokenizerError, match=r"400 ranks, and r50k_base has 50256.*damaged"):
        load_tokenizer(tmp_path)
    write(tmp_path / "cl100k_base.tiktoken", rank_file(small_vocabulary[0]))
    with pytest.raises(TokenizerError, match=r"cl100k_base\.tiktoken, r50k_base\.tiktoken"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GGUF\x03\0\0\0", "damaged GGUF"),
        (b"\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02", "the vocabulary is empty"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"", "empty file"),
        (b"hello world\n", "this format is not supported"),
        (b"{", "not JSON"),
        (b'{"a": ' * 100_000, "nested too deeply|not JSON"),
        (b"[]", "not supported"),
        (b"{}", 'a JSON object with a "model"'),
        (b'{"model": {"type": "WordPiece", "vocab": {}}}', "vocab"),
        (b'{"model": "\xff"}', "not JSON"),
        (b"YQ== 0\nYQ=", "line 2 is not a token"),
        (b"YQ== 0\nYg== 0\n", "rank 0 is there twice"),
        (b"YQ== 0\nYg== 1\n", "2 ranks, and r50k_base has 50256"),
    ],
)
def test_refused_with_a_path_and_a_reason(tmp_path, data, words):
    path = tmp_path / "r50k_base"
    path.write_bytes(data)
    with pytest.raises(TokenizerError, match=words) as caught:
        load_tokenizer(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_places(tmp_path):
    with pytest.raises(TokenizerError, match="nowhere: no such file"):
        load_tokenizer(tmp_path / "nowhere")
    with pytest.raises(TokenizerError, match="no tokenizer in this folder"):
        load_tokenizer(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "tokenizer.json")
    for place in (tmp_path / "tokenizer.json", "/dev/null"):
        with pytest.raises(TokenizerError, match="a pipe or a device"):
            load_tokenizer(place)


def test_unknown_encoding(tmp_path):
    path = write(tmp_path / "mine", rank_file([bytes((byte,)) for byte in range(256)]))
    with pytest.raises(TokenizerError, match="give encoding= one of r50k_base"):
        load_tokenizer(path)
    with pytest.raises(TokenizerError, match="unknown encoding 'gpt5'"):
        load_tokenizer(path, encoding="gpt5")
    with pytest.raises(TokenizerError, match="unknown split pattern"):
        by_name("gpt5")
    json_file = write(tmp_path / "tokenizer.json", {"model": {}})
    with pytest.raises(TokenizerError, match="encoding= is for rank files"):
        load_tokenizer(json_file, encoding="llama3")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"YQ== 0\nYQ== 1\n", "twice"),
        (b"YQ== 99999999999\n", "ids must lie between"),
        (b"YQ== " + b"9" * 5000 + b"\n", "line 1 is not|ids must lie"),
    ],
)
def test_ranks_that_make_no_sense(tmp_path, data, words):
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(TokenizerError, match=words) as caught:
        load_tokenizer(path, encoding="r50k_base")
    assert str(path) in str(caught.value)


def test_an_encoding_of_ones_own(tmp_path, small_vocabulary):
    path = write(tmp_path / "mine.tiktoken", rank_file(small_vocabulary[0]))
    with pytest.raises(TokenizerError, match=r"400 ranks tell which encoding this is.*RankEncoding"):
        load_tokenizer(path)
    mine = RankEncoding((RegexStage(r"\s"),), 400, {"<end>": 400}, ("<end>",))
    tokenizer = load_tokenizer(path, encoding=mine)
    assert tokenizer.eos_ids == (400,)
    ids = tokenizer.encode("a b<end>").ids
    assert [tokenizer.token_bytes(i) for i in ids] == [b"a", b" ", b"b", None]


def test_special_tokens_beside_a_rank_file(tmp_path, small_vocabulary):
    path = write(tmp_path / "tiktoken.model", rank_file(small_vocabulary[0]))
    entries = {"400": {"content": "<s>", "special": True}, "402": {"content": "</s>", "special": True}}
    write(tmp_path / "tokenizer_config.json", {"added_tokens_decoder": entries, "eos_token": "</s>"})
    tokenizer = load_tokenizer(path, encoding="r50k_base")
    assert tokenizer.special_ids == {400, 402}
    assert tokenizer.eos_ids == (402,)
    assert tokenizer.special_tokens.eos == 402
    for bad in ({"x": {"content": "a"}}, {"7": {}}, [1], {"1" * 30: {"content": "a"}}):
        write(tmp_path / "tokenizer_config.json", {"added_tokens_decoder": bad})
        with pytest.raises(TokenizerError, match="added_tokens_decoder"):
            load_tokenizer(path, encoding="r50k_base")


def test_special_tokens_over_ranks(tmp_path):
    path = write(tmp_path / "r50k_base.tiktoken", rank_file([b"%d" % number for number in range(50257)]))
    with pytest.raises(TokenizerError, match="belongs to another encoding"):
        load_tokenizer(path, encoding="r50k_base")


def test_a_token_too_long_for_ranks(tmp_path):
    path = write(tmp_path / "r50k_base.tiktoken", rank_file([b"a" * 1025]))
    with pytest.raises(TokenizerError, match="1025 bytes"):
        load_tokenizer(path, encoding="r50k_base")


TEXT = {"Sequence": {"id": "A", "type_id": 0}}


def template(single, ids):
    return {"type": "TemplateProcessing", "single": single, "special_tokens": {"x": {"ids": ids}}}


DOUBLED = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
CHANGES = [
    (("model", "vocab"), [], "vocab"),
    (("model", "vocab"), {}, "vocab"),
    (("model", "vocab"), {"a": "b"}, "vocab"),
    (("model", "vocab"), {"a": True}, "vocab"),
    (("model", "vocab"), {"a": 1, "b": 1}, "same id"),
    (("model",), {"vocab": {"a": -1}, "merges": []}, "ids must lie"),
    (("model",), {"vocab": {"a": 2**40}, "merges": []}, "ids must lie"),
    (("model",), {"type": "WordLevel", "vocab": {"a": 2**22}}, "ids must lie between 0 and 4194303"),
    (("model",), {"vocab": {"a": 2**64}, "merges": [["a", "a"]]}, "ids must lie"),
    (("model",), {"vocab": {"a": 0}, "merges": [], "unk_token": {}}, "unk_token.* must be a string"),
    (("model",), {"type": "a\nb", "vocab": {"a": 0}}, r"model 'a\\nb' is not supported"),
    (("model",), {"type": "Unigram", "unk_id": 0, "vocab": [["a", 10**400]]}, "score is not a finite number"),
    (("added_tokens",), [{"id": 2**40, "content": "<x>"}], "ids must lie"),
    (("model", "merges"), None, "merges"),
    (("model", "merges"), [["a"]], r"merge 0, \['a'\]"),
    (("model", "merges"), ["a b c"], "merge 0"),
    (("model", "merges"), ["a zzz"], "merge 0"),
    (("model", "merges"), [[1, 2]], "merge 0"),
    (("model", "merges"), [7], "merge 0"),
    (("model", "dropout"), 0.1, "dropout"),
    (("model", "byte_fallback"), True, "byte_fallback"),
    (("model", "end_of_word_suffix"), 5, "end_of_word_suffix"),
    (("model", "continuing_subword_prefix"), "##", "merge 0"),
    (("normalizer",), {"type": "Rot13"}, "normalizer Rot13"),
    (("added_tokens",), [{"id": 9999, "content": "a\ud800b"}], "added token .* has a lone surrogate"),
    (("normalizer",), {"type": "Prepend", "prepend": "\ud800"}, "Prepend: .prepend. has a lone surrogate"),
    (("pre_tokenizer",), {"type": "Metaspace", "replacement": "\ud800"}, "has a lone surrogate"),
    (("normalizer",), {"type": "Replace", "pattern": {"String": ""}, "content": "a"}, "Replace: an empty pattern"),
    (("decoder",), {"type": "Replace", "pattern": {"String": ""}, "content": "a"}, "Replace: an empty pattern"),
    (("decoder",), {"type": "Sequence", "decoders": [DOUBLED] * 40}, "makes more than 134,217,728 characters"),
    (("model",), {"type": "Unigram", "unk_id": 0, "vocab": [["a", 1e308]]}, "score is not a finite number, or too"),
    (("normalizer",), {"type": "a\n"}, r"normalizer 'a\\n' is not supported"),
    (("normalizer",), {"type": "Sequence"}, "normalizers"),
    (("normalizer",), {"type": "Replace", "pattern": {"Regex": "a*"}, "content": ""}, "which may match nothing"),
    (("pre_tokenizer",), {"type": "UnicodeScripts"}, "pre_tokenizer UnicodeScripts is not supported"),
    (("pre_tokenizer",), {"type": "FixedLength", "length": 0}, "FixedLength: its length"),
    (
        ("pre_tokenizer",),
        {"type": "Split", "pattern": {"Regex": "$"}, "behavior": "Contiguous", "invert": False},
        "behavior Contiguous is not supported with the regex",
    ),
    (("decoder",), {"type": "Metaspace"}, "Metaspace: .replacement. must be"),
    (("pre_tokenizer",), {"type": "Metaspace"}, "Metaspace: .replacement. must be"),
    (("pre_tokenizer",), {"type": "Digits", "individual_digits": 1}, "individual_digits"),
    (("pre_tokenizer",), {"type": "Metaspace", "replacement": "ab"}, "Metaspace: its replacement must be one"),
    (("pre_tokenizer",), {"type": "Sequence", "pretokenizers": 5}, "pretokenizers"),
    (("post_processor",), {"type": "BertProcessing"}, "post_processor names None"),
    (("post_processor",), {"type": "BertProcessing", "cls": ["a", "1"], "sep": ["a", 1]}, "names 'a' without an id"),
    (("post_processor",), {"type": "RobertaProcessing", "cls": ["<s>", 1]}, "'<s>', which is not in the vocabulary"),
    (("post_processor",), {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}]}, "malformed"),
    (("post_processor",), template([{"SpecialToken": {"id": "x"}}, TEXT], [2**40]), "post_processor: id 1099511627776"),
    (("post_processor",), template([{"SpecialToken": {"id": "x"}}, TEXT], [-1]), "post_processor: id -1 is not in"),
    (("post_processor",), template([{"SpecialToken": {"id": "x"}}, TEXT], [math.inf]), "malformed"),
    (
        ("post_processor",),
        {"type": "Sequence", "processors": [template([TEXT], [0]), {"type": "ByteLevel"}, template([TEXT], [0])]},
        "post_processor TemplateProcessing . TemplateProcessing is not supported: only one part",
    ),
    (("post_processor",), template([TEXT, TEXT], []), "has the text 2 times; only once is supported"),
    (("post_processor",), template([], []), "has the text 0 times"),
    (("post_processor",), template([{"Sequence": {"id": "B"}}], []), "malformed"),
    (("added_tokens",), [{"id": 1}], "no id or no content"),
    (("added_tokens",), [{"id": 5, "content": "x"}], "contradicts the vocabulary"),
    (("added_tokens",), [{"id": 500, "content": "a"}], "contradicts the vocabulary"),
    (("added_tokens",), 5, "no id or no content"),
    (("added_tokens",), [{"id": 500, "content": "x"}, {"id": 501, "content": "x"}], "there twice"),
]


@pytest.mark.parametrize(("place", "value", "words"), CHANGES)
def test_what_is_not_supported_is_named(small_json, place, value, words):
    content = copy.deepcopy(small_json)
    target = content
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    with pytest.raises(TokenizerError, match=words):
        parse_tokenizer_json(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pattern": {"Regex": r"\p{Greek}+"}}, "property 'Greek' is not supported"),
        ({"pattern": {"String": ""}}, "Split: an empty pattern"),
        ({"pattern": " "}, "neither a regex nor a string"),
        ({"behavior": "Shuffled"}, "behavior 'Shuffled'"),
    ],
)
def test_split_that_is_not_supported(small_json, change, words):
    content = copy.deepcopy(small_json)
    split = {"type": "Split", "pattern": {"Regex": "x"}, "behavior": "Isolated", "invert": False, **change}
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, BYTE_LEVEL]}
    with pytest.raises(TokenizerError, match=words):
        parse_tokenizer_json(json.dumps(content).encode()).encode("x")


def test_merges_as_pairs(small_json):
    content = copy.deepcopy(small_json)
    content["model"]["merges"] = [merge.split(" ") for merge in content["model"]["merges"]]
    text = "the quick brown fox and the end"
    old, new = (parse_tokenizer_json(json.dumps(each).encode()) for each in (small_json, content))
    assert old.encode(text).ids == new.encode(text).ids


ROLE_FILES = [
    ({}, (400,)),
    ({"tokenizer_config.json": {"eos_token": "<a>"}}, (500,)),
    ({"tokenizer_config.json": {"eos_token": {"content": "<a>"}}}, (500,)),
    ({"tokenizer_config.json": {"eos_token": "not a token"}}, (400,)),
    ({"generation_config.json": {"eos_token_id": 501}}, (501,)),
    ({"generation_config.json": {"eos_token_id": [501, 500]}}, (500, 501)),
    ({"generation_config.json": {"eos_token_id": None}, "config.json": {"eos_token_id": 500}}, (500,)),
    ({"generation_config.json": {"eos_token_id": 501}, "tokenizer_config.json": {"eos_token": "<a>"}}, (500, 501)),
]


@pytest.mark.parametrize(("files", "expected"), ROLE_FILES)
def test_end_of_text_ids(tmp_path, small_json, files, expected):
    content = copy.deepcopy(small_json)
    for token_id, name in ((500, "<a>"), (501, "<b>")):
        content["added_tokens"].append({"id": token_id, "content": name, "special": True})
    write(tmp_path / "tokenizer.json", content)
    for name, values in files.items():
        write(tmp_path / name, values)
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.eos_ids == expected
    assert tokenizer.special_tokens.eos in expected
    roles = tokenizer.special_tokens.roles()
    assert set(tokenizer.special_tokens.additional) == {400, 500, 501} - set(roles.values())
    assert load_tokenizer(tmp_path, eos_ids=[400, 7]).eos_ids == (7, 400)


def test_no_end_of_text_is_known(tmp_path, small_json):
    content = {**copy.deepcopy(small_json), "added_tokens": []}
    tokenizer = load_tokenizer(write(tmp_path / "tokenizer.json", content))
    assert tokenizer.eos_ids == ()
    assert tokenizer.special_tokens.roles() == {}


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("generation_config.json", b'{"eos_token_id": "2"}', "eos_token_id must be an id"),
        ("generation_config.json", b"{", "not JSON"),
        ("tokenizer_config.json", b"[]", "object was expected"),
        ("generation_config.json", b'{"eos_token_id": 99999}', "out of range"),
    ],
)
def test_bad_configuration(tmp_path, small_json, name, data, words):
    write(tmp_path / "tokenizer.json", small_json)
    write(tmp_path / name, data)
    with pytest.raises(TokenizerError, match=words):
        load_tokenizer(tmp_path)


def test_llama3_opens_fast(llama3_json):
    load_tokenizer(llama3_json)
    with processor_time() as spent:
        tokenizer = load_tokenizer(llama3_json)
    assert spent.seconds < 3, "0.6 s when alone on the machine"
    assert tokenizer.vocab_size == 128_000
