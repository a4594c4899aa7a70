"""GGUF files: real vocabularies with their expected ids, small ones made on the spot, and damaged ones."""

from __future__ import annotations

import json
import struct
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import tokenizers
from gguf_files import gguf_file
from hypothesis import given, settings
from processor_time import processor_time
from tokenizer_texts import TEXTS

from constrain.errors import TokenizerError
from constrain.tokenizers import load_tokenizer
from constrain.tokenizers.byte_alphabet import bytes_to_text
from constrain.tokenizers.formats.gguf_metadata import read_gguf_metadata
from constrain.tokenizers.formats.gguf_splits import _STAGES, stages_of
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.splitting.patterns import _NAMES
from constrain.tokenizers.splitting.stages import RegexStage, split_in_stages

NAMES = ("bert-bge", "deepseek-coder", "gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2")


def vocabulary_file(data_folder, name):
    path = data_folder / "vocab" / f"ggml-vocab-{name}.gguf"
    if not path.is_file():
        pytest.skip(f"no {path}")
    return path


def expected_ids(path):
    texts = path.with_suffix(".gguf.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    assert texts.pop() == ""
    lines = path.with_suffix(".gguf.out").read_text().splitlines()
    return list(zip(texts, [[int(word) for word in line.split()] for line in lines], strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_real_vocabularies_exactly(data_folder, name):
    path = vocabulary_file(data_folder, name)
    tokenizer = load_tokenizer(path)
    cases = expected_ids(path)
    assert len(cases) > 40
    for text, ids in cases:
        assert tokenizer.encode(text).ids == ids, text
        if name != "bert-bge":
            assert tokenizer.decode(ids) == text


def test_a_large_vocabulary_opens_fast(data_folder):
    path = vocabulary_file(data_folder, "qwen2")
    load_tokenizer(path)
    with processor_time() as spent:
        tokenizer = load_tokenizer(path)
    assert spent.seconds < 1, "0.4 s when alone on the machine"
    assert tokenizer.vocab_size == 151_936
    assert tokenizer.eos_ids == (151643, 151645)
    assert tokenizer.token_bytes(151_900) is None, "a filler between the tokens and the size of the model"


def byte_level_metadata(small_vocabulary, pre="gpt-2", **more):
    tokens, merges = small_vocabulary
    written = [bytes_to_text(token) for token in tokens]
    count = len(written) + 1
    types = np.ones(count, dtype=np.int32)
    types[-1] = 3
    return {
        "general.architecture": "none",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": [*written, "<|endoftext|>"],
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": [f"{written[left]} {written[right]}" for left, right in merges],
        "tokenizer.ggml.eos_token_id": count - 1,
        **more,
    }


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_small_file_in_both_byte_orders(tmp_path, small_vocabulary, small_json, order):
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file(byte_level_metadata(small_vocabulary), order, tail=b"\xff" * 100))
    assert load_tokenizer(tmp_path).vocab_size == 401, "the only file of the folder"
    ours, same = load_tokenizer(path), parse_tokenizer_json(json.dumps(small_json).encode())
    text = "The end of the text<|endoftext|> 中文 it's"
    assert ours.encode(text).ids == same.encode(text).ids
    assert ours.tokens_as_bytes() == same.tokens_as_bytes()
    assert ours.eos_ids == (400,)


def test_every_pre_name_has_patterns_that_compile():
    for name in _STAGES:
        for stage in stages_of(name):
            if isinstance(stage, RegexStage):
                stage.check()


def test_every_pre_name_cuts_as_tokenizers_does():
    """The patterns in the engine of the library that has them in its files."""
    regexes = {name: regex for regex, name in _NAMES.items()}
    chains = {stages_of(name): name for name in _STAGES}
    references = {}
    for stages, name in chains.items():
        texts = [stage.regex if isinstance(stage, RegexStage) else regexes[stage.name] for stage in stages]
        references[name] = tokenizers.pre_tokenizers.Sequence(
            [tokenizers.pre_tokenizers.Split(tokenizers.Regex(text), "isolated") for text in texts]
        )
    assert len(references) > 25

    @settings(max_examples=60)
    @given(TEXTS)
    def check(text):
        data = np.frombuffer(bytearray(text.encode()), dtype=np.uint8)
        for stages, name in chains.items():
            cut = split_in_stages(data, stages)
            ours = [text.encode()[begin:end].decode() for begin, end in pairwise([0, *cut.ends.tolist()])]
            assert ours == [part for part, _ in references[name].pre_tokenize_str(text)], name

    check()


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("afmoe", ["1", "234", "567", "\u0e01\u0e02", " a"]),
        ("superbpe", ["1", "234", "567", "\u0e01\u0e02 a"]),
        ("youtu", ["1", "2", "3", "4", "5", "6", "7", "\u0e01\u0e02", " a"]),
        ("spark2_5", ["1", "2", "3", "4", "5", "6", "7", "\u0e01\u0e02", " a"]),
        ("hy_v4", ["123", "456", "7", "\u0e01\u0e02", " a"]),
        ("ufakzeka", ["1", "2", "3", "4", "5", "6", "7", "\u0e01\u0e02", " a"]),
        ("chameleon", ["1", "2", "3", "4", "5", "6", "7", "\u0e01\u0e02", " a"]),
    ],
)
def test_pieces_of_some_pre_names(name, pieces):
    text = "1234567\u0e01\u0e02 a"
    cut = split_in_stages(np.frombuffer(bytearray(text.encode()), dtype=np.uint8), stages_of(name))
    assert [text.encode()[a:b].decode() for a, b in pairwise([0, *cut.ends.tolist()])] == pieces


def broken(metadata, key, value):
    changed = dict(metadata)
    if value is None:
        del changed[key]
    else:
        changed[key] = value
    return changed


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("tokenizer.ggml.pre", "qwen99", "unknown pre-tokenizer 'qwen99'; known: .*qwen2"),
        ("tokenizer.ggml.model", "rwkv", "model 'rwkv' is not supported; supported: gpt2"),
        ("tokenizer.ggml.model", None, "tokenizer.ggml.model is missing"),
        ("tokenizer.ggml.tokens", None, "tokenizer.ggml.tokens is missing"),
        ("tokenizer.ggml.tokens", [], "tokenizer.ggml.tokens is missing"),
        ("tokenizer.ggml.tokens", [b"\xff"], r"tokens\[0\] is not UTF-8"),
        ("tokenizer.ggml.token_type", np.ones(3, np.int32), "token_type must have one int32 for each token"),
        ("tokenizer.ggml.token_type", "x", "token_type must have"),
        ("tokenizer.ggml.token_type", "seven", r"token_type\[3\] is 7; supported are 1 to 6"),
        ("tokenizer.ggml.merges", None, "merges is missing"),
        ("tokenizer.ggml.merges", ["a"], "merge 0, 'a'"),
        ("tokenizer.ggml.merges", ["a zzz"], "merge 0"),
        ("tokenizer.ggml.merges", ["e r", "a"], "merge 1, 'a'"),
        ("tokenizer.ggml.eos_token_id", "x", "eos_token_id is no id"),
        ("tokenizer.ggml.add_bos_token", 1, "add_bos_token is no boolean"),
    ],
)
def test_bad_metadata(tmp_path, small_vocabulary, key, value, words):
    path = tmp_path / "model.gguf"
    metadata = byte_level_metadata(small_vocabulary)
    if isinstance(value, str) and value == "seven":
        value = metadata[key].copy()
        value[3] = 7
    path.write_bytes(gguf_file(broken(metadata, key, value)))
    with pytest.raises(TokenizerError, match=words) as caught:
        load_tokenizer(path)
    assert str(path) in str(caught.value)


def test_duplicate_tokens(tmp_path, small_vocabulary):
    metadata = byte_level_metadata(small_vocabulary)
    metadata["tokenizer.ggml.tokens"][5] = metadata["tokenizer.ggml.tokens"][4]
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file(metadata))
    with pytest.raises(TokenizerError, match="twice"):
        load_tokenizer(path)


def test_truncated_anywhere(tmp_path, small_vocabulary):
    data = gguf_file(byte_level_metadata(small_vocabulary))
    path = tmp_path / "model.gguf"
    for end in (*range(4, 200), *range(200, len(data), 97)):
        path.write_bytes(data[:end])
        with pytest.raises(TokenizerError, match="damaged GGUF"):
            load_tokenizer(path)


HEAD = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
KEY = struct.pack("<Q", 23) + b"tokenizer.ggml.whatever"
HOSTILE = {
    "key of 1 GB": HEAD + struct.pack("<Q", 2**30),
    "string of 2**63 bytes": HEAD + KEY + struct.pack("<IQ", 8, 2**63),
    "2**40 numbers": HEAD + KEY + struct.pack("<IIQ", 9, 6, 2**40),
    "2**61 wide numbers": HEAD + KEY + struct.pack("<IIQ", 9, 12, 2**61),
    "2**40 strings": HEAD + KEY + struct.pack("<IIQ", 9, 8, 2**40),
    "2**40 arrays": HEAD + KEY + struct.pack("<IIQ", 9, 9, 2**40),
    "deep arrays": HEAD + KEY + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 10_000,
    "unknown type": HEAD + KEY + struct.pack("<I", 77),
    "2**64 - 1 entries": b"GGUF" + struct.pack("<IQQ", 3, 0, 2**64 - 1),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("wanted", [True, False])
def test_hostile_lengths(tmp_path, name, wanted):
    path = tmp_path / "model.gguf"
    path.write_bytes(HOSTILE[name])
    tracemalloc.start()
    with pytest.raises(TokenizerError, match="damaged GGUF"):
        read_gguf_metadata(path, lambda key: wanted)
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


def test_versions(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 1, 0, 0))
    with pytest.raises(TokenizerError, match="version 1 is not supported"):
        read_gguf_metadata(path)


def test_bpe_over_characters_by_merges(tmp_path):
    letters = ["<unk>", "<bos>", "<eos>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words = ["\n", "\n\n", "\u2581", "t", "h", "e", "th", "the", "\u2581the", "x\n"]
    types = np.array([2, 3, 3] + [6] * 256 + [1] * len(words), dtype=np.int32)
    metadata = {
        "tokenizer.ggml.model": "gemma4",
        "tokenizer.ggml.tokens": [*letters, *words],
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": ["t h", "th e", "\u2581 the"],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
    }
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file(metadata))
    tokenizer = load_tokenizer(path)
    assert tokenizer.encode("the the\n\nth\u00e9").tokens == [
        *("the", "\u2581the", "\n\n", "th", "<0xC3>", "<0xA9>"),
    ]
    assert tokenizer.encode("\n\n\n").tokens == ["\n"] * 3, "a run of newlines that is no token"
    assert tokenizer.encode("e", add_special_tokens=True).tokens == ["<bos>", "e"]
    assert tokenizer.decode(tokenizer.encode(" the\u00e9\n").ids) == " the\u00e9\n"
    assert tokenizer.token_bytes(3 + 0xC3) == b"\xc3"
    assert tokenizer.eos_ids == (2,)


def test_tokens_that_are_not_written_in_the_byte_alphabet(tmp_path, small_vocabulary):
    """They have their own text, and no text becomes them."""
    metadata = byte_level_metadata(small_vocabulary, pre="llama-bpe")
    metadata["tokenizer.ggml.tokens"][7:9] = ["two words", "\u65e5"]
    metadata["tokenizer.ggml.merges"] = []
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file(metadata))
    tokenizer = load_tokenizer(path)
    assert tokenizer.token_bytes(7) == b"two words"
    assert tokenizer.token_bytes(8) == "\u65e5".encode()
    assert tokenizer.id_to_token(8) == "\u65e5"
    assert tokenizer.token_to_id("\u65e5") == 8
    assert tokenizer.token_to_id("two words") == 7
    assert tokenizer.decode([7, 8]) == "two words\u65e5"
    assert len(tokenizer.encode("\u65e5").ids) == 3


def character_metadata(words, **more):
    letters = ["<unk>", "<bos>", "<eos>", *(f"<0x{byte:02X}>" for byte in range(256))]
    return {
        "tokenizer.ggml.tokens": [*letters, *words],
        "tokenizer.ggml.token_type": np.array([2, 3, 3] + [6] * 256 + [1] * len(words), dtype=np.int32),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        **more,
    }


def loaded(tmp_path, metadata):
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file(metadata))
    return load_tokenizer(path)


def test_merges_of_characters_under_the_name_of_bytes(tmp_path):
    words = ["\n", "\n\n", "\u2581", "a", "b", "ab", "\u2581ab", "a\u2581"]
    merges = ["a b", "\u2581 ab"]
    for pre, newlines, begin in (("granite-embed-multi-311m", ["\n\n"], ["<bos>"]), ("sarvam-moe", ["\n", "\n"], [])):
        metadata = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre, "tokenizer.ggml.merges": merges}
        tokenizer = loaded(tmp_path, character_metadata(words, **metadata))
        assert tokenizer.encode("ab ab\n\n").tokens == ["ab", "\u2581ab", *newlines]
        assert tokenizer.encode("a", add_special_tokens=True).tokens == [*begin, "a"]
        assert tokenizer.decode(tokenizer.encode(" ab \u00e9").ids) == " ab \u00e9"


def test_merges_reach_tokens_of_every_type(tmp_path):
    metadata = character_metadata(["a", "b", "ab", "a c"])
    metadata |= {"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.merges": ["a b", "a \u0120c"]}
    metadata["tokenizer.ggml.tokens"][-1:] = [" c", "a c"]
    metadata["tokenizer.ggml.token_type"] = np.append(metadata["tokenizer.ggml.token_type"], np.int32(1))
    metadata["tokenizer.ggml.token_type"][-5:] = [1, 1, 5, 1, 1]
    tokenizer = loaded(tmp_path, metadata)
    assert tokenizer.encode("ab").tokens == ["ab"], "an unused one"
    metadata["tokenizer.ggml.merges"] = ["a b", "a \u0120d"]
    with pytest.raises(TokenizerError, match="merge 1"):
        loaded(tmp_path, metadata)


def test_byte_tokens_without_a_type(tmp_path):
    metadata = character_metadata(["\u2581", "a"], **{"tokenizer.ggml.model": "llama"})
    metadata["tokenizer.ggml.scores"] = np.zeros(261, dtype=np.int32)
    metadata["tokenizer.ggml.token_type"][3:259] = 1
    tokenizer = loaded(tmp_path, metadata)
    assert tokenizer.encode("a\u00e9").tokens == ["\u2581", "a", "<0xC3>", "<0xA9>"]
    assert tokenizer.token_bytes(3 + 0xC3) == b"\xc3"


def test_words_that_lose_their_white_space(tmp_path):
    metadata = {"tokenizer.ggml.model": "whitespace", "tokenizer.ggml.pre": "whitespace"}
    metadata |= {"tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.normalizer.lowercase": True}
    tokenizer = loaded(tmp_path, character_metadata(["a", "b", "ab"], **metadata))
    assert tokenizer.encode("AB  a\tb").tokens == ["ab", "a", "b"]


def test_the_mask_token_swallows_white_space(tmp_path, small_vocabulary):
    metadata = byte_level_metadata(small_vocabulary, pre="jina-v2-code")
    metadata["tokenizer.ggml.tokens"][-1] = "<mask>"
    tokenizer = loaded(tmp_path, metadata)
    assert tokenizer.encode("a  <mask> a").tokens == ["a", "<mask>", *tokenizer.encode(" a").tokens]


def unigram_metadata(prefix, extra):
    words = ["\u2581a", "\u2581", "a", "\u2581b", "b"]
    metadata = character_metadata(words, **{"tokenizer.ggml.model": "t5", "tokenizer.ggml.unknown_token_id": 0})
    scores = np.full(264, -5, dtype=np.float32)
    scores[-5:] = [-1, -2, -3, -1, -3]
    return metadata | {
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.add_space_prefix": prefix,
        "tokenizer.ggml.remove_extra_whitespaces": extra,
    }


@pytest.mark.parametrize(
    ("prefix", "extra", "tokens"),
    [
        (True, True, ["\u2581a", "\u2581b"]),
        (False, True, ["\u2581a", "\u2581b"]),
        (True, False, ["\u2581", "\u2581a", "\u2581", "\u2581b"]),
        (False, False, ["\u2581a", "\u2581", "\u2581b"]),
    ],
)
def test_spaces_of_unigram_files(tmp_path, prefix, extra, tokens):
    assert loaded(tmp_path, unigram_metadata(prefix, extra)).encode(" a  b").tokens == tokens


def test_unused_pieces_of_unigram_files_are_met(tmp_path):
    """As in llama.cpp, whose trie has normal, user-defined and unused pieces, and which writes nothing for the last."""
    metadata = unigram_metadata(True, True)
    metadata["tokenizer.ggml.token_type"][-5] = 5  # "\u2581a", of the highest score
    tokenizer = loaded(tmp_path, metadata)
    encoding = tokenizer.encode("a b")
    assert encoding.tokens == ["\u2581a", "\u2581b"]
    assert tokenizer.token_bytes(encoding.ids[0]) is None, "it is never generated"
    assert tokenizer.decode(encoding.ids) == "b"
    assert tokenizer.decode_bytes(encoding.ids * 100) == b" b" * 100
    metadata["tokenizer.ggml.scores"][-5] = -20
    assert loaded(tmp_path, metadata).encode("a").tokens == ["\u2581", "a"]


def test_user_defined_pieces_out_of_normalization(tmp_path):
    metadata = unigram_metadata(True, True)
    metadata["tokenizer.ggml.tokens"] += ["\u2581b\u2581b"]
    metadata["tokenizer.ggml.token_type"] = np.append(metadata["tokenizer.ggml.token_type"], np.int32(4))
    metadata["tokenizer.ggml.scores"] = np.append(metadata["tokenizer.ggml.scores"], np.float32(-90))
    tokenizer = loaded(tmp_path, metadata)
    assert tokenizer.encode("b b a").tokens == ["\u2581b\u2581b", "\u2581a"], "it scores 0"
