"""SentencePiece models against the ``sentencepiece`` package, id for id, and damaged files."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from gguf_files import gguf_file
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import processor_time
from tokenizer_texts import CORPUS, PIECES, TEXTS, TRAINING_TEXT

import constrain
from constrain.errors import TokenizerError
from constrain.tokenizers import load_tokenizer
from constrain.tokenizers.formats.sentencepiece_proto import parse_model
from constrain.tokenizers.normalizing.charsmap import Charsmap, SpaceOptions

sentencepiece = pytest.importorskip("sentencepiece", reason="the sentencepiece package is not installed")

KINDS = {
    "unigram": {"model_type": "unigram", "vocab_size": 800},
    "unigram with bytes": {
        "model_type": "unigram",
        "vocab_size": 900,
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
    },
    "unigram with symbols": {
        "model_type": "unigram",
        "vocab_size": 800,
        "user_defined_symbols": ["<sep>", "def ", "the", "\u2581of"],
        "split_by_whitespace": False,
    },
    "bpe with symbols": {
        "model_type": "bpe",
        "vocab_size": 900,
        "user_defined_symbols": ["<sep>", "the", "  ", "\t"],
    },
    "bpe, spaces behind": {
        "model_type": "bpe",
        "vocab_size": 900,
        "treat_whitespace_as_suffix": True,
        "normalization_rule_name": "nfkc_cf",
    },
    "bpe, long tokens": {
        "model_type": "bpe",
        "vocab_size": 900,
        "add_dummy_prefix": False,
        "split_by_whitespace": False,
        "max_sentencepiece_length": 40,
    },
    "bpe with bytes": {"model_type": "bpe", "vocab_size": 1000, "byte_fallback": True},
    "unigram, spaces as a symbol": {
        "model_type": "unigram",
        "vocab_size": 800,
        "user_defined_symbols": ["\u2581\u2581", "ab"],
        "remove_extra_whitespaces": False,
    },
    "words": {"model_type": "word", "vocab_size": 400, "user_defined_symbols": ["<sep>"]},
    "characters": {"model_type": "char", "vocab_size": 80, "user_defined_symbols": ["the"]},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    """A model file of each kind, trained on the spot."""
    folder = tmp_path_factory.mktemp("sentencepiece")
    corpus = folder / "corpus.txt"
    lines = [*CORPUS.splitlines(), *TRAINING_TEXT.splitlines()]
    lines += [" ".join(PIECES[i::7]).replace("\0", "").replace("\n", " ").replace("\r", " ") for i in range(7)]
    corpus.write_text("\n".join(lines * 2))
    paths = {}
    for place, (name, options) in enumerate(KINDS.items()):
        prefix = folder / f"model{place}"
        sentencepiece.SentencePieceTrainer.train(
            input=str(corpus),
            model_prefix=str(prefix),
            minloglevel=2,
            num_threads=1,
            hard_vocab_limit=False,
            **options,
        )
        paths[name] = prefix.with_suffix(".model")
    return paths


def check_equal(ours, reference, examples):
    @settings(max_examples=examples)
    @given(st.one_of(TEXTS, st.text()))
    def check(text):
        expected = reference.encode(text)
        got = ours.encode(text)
        assert got.ids == expected
        if reference.unk_id() not in expected:
            assert ours.decode(expected) == reference.decode(expected)
        assert got.tokens == reference.encode(text, out_type=str)
        for begin, end in got.offsets:
            assert 0 <= begin <= end <= len(text)

    check()


@pytest.mark.parametrize("name", KINDS)
def test_equal_to_sentencepiece(models, name):
    ours = load_tokenizer(models[name])
    reference = sentencepiece.SentencePieceProcessor(model_file=str(models[name]))
    assert ours.vocab_size == reference.vocab_size()
    check_equal(ours, reference, 200)
    for text in ("", " ", "  ", "".join(PIECES[i * 7 % len(PIECES)] for i in range(30_000))):
        assert ours.encode(text).ids == reference.encode(text)
    copy = pickle.loads(pickle.dumps(ours))
    assert copy.encode("the end").ids == ours.encode("the end").ids


def test_llama2(data_folder):
    path = data_folder / "vocab" / "llama2.spm.model"
    if not path.is_file():
        pytest.skip(f"no {path}")
    ours = load_tokenizer(path)
    reference = sentencepiece.SentencePieceProcessor(model_file=str(path))
    check_equal(ours, reference, 200)
    long = "".join(PIECES[i * 7 % len(PIECES)] for i in range(60_000))
    ids = ours.encode(long).ids
    assert ids == reference.encode(long)
    assert ours.decode(ids) == long, "nothing is normalized away in this vocabulary"
    assert ours.eos_ids == (2,)
    assert ours.special_tokens.roles() == {"bos": 1, "eos": 2, "unk": 0}
    assert [ours.token_bytes(i) for i in (0, 1, 2, 3, 13, 278)] == [None, None, None, b"\0", b"\n", b" the"]


def test_ties_in_long_texts(models):
    # All ways to cut a run in equal pieces but one have the same sum; rounding alone decides which it is.
    ours = load_tokenizer(models["unigram"])
    reference = sentencepiece.SentencePieceProcessor(model_file=str(models["unigram"]))
    for unit in ("I", "-", "ab"):
        for count in (9, 1001, 20_001, 50_001, 300_001):
            assert ours.encode(unit * count).ids == reference.encode(unit * count)


@pytest.mark.parametrize("name", ["unigram with bytes", "bpe with bytes"])
def test_masks(models, name):
    tokenizer = load_tokenizer(models[name])
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer)
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_regex(" ?(the|end) é?"))
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    for text in ("", " t", " the", " the "):
        matcher = constrain.Matcher(compiled)
        assert matcher.accept_bytes(text.encode())
        matcher.fill_next_token_bitmask(mask, 0)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: vocabulary.size]
        for token_id in range(vocabulary.size):
            data = tokenizer.token_bytes(token_id)
            whole = text.encode() + (data or b"")
            allowed = data is not None and any(
                sentence.encode().startswith(whole) for sentence in (" the é", " end é", "the é", "end é")
            )
            if token_id in tokenizer.eos_ids:
                allowed = text == " the "
            assert bits[token_id] == allowed, (text, token_id)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("unit", ["a", " ", "the", "\u00e9", "\u4e2d"])
def test_repetition_is_not_quadratic(models, name, unit):
    tokenizer = load_tokenizer(models[name])
    tokenizer.encode(unit)
    text = unit * (1_000_000 // len(unit.encode()))
    with processor_time() as spent:
        tokenizer.encode(text)
    assert spent.seconds < 2, "0.1 to 0.5 s when alone on the machine"


def test_gguf_of_a_unigram_model(models, tmp_path):
    model = parse_model(models["unigram"].read_bytes())
    metadata = {
        "tokenizer.ggml.model": "t5",
        "tokenizer.ggml.tokens": model.pieces,
        "tokenizer.ggml.scores": np.array(model.scores, dtype=np.float32),
        "tokenizer.ggml.token_type": np.array(model.kinds, dtype=np.int32),
        "tokenizer.ggml.precompiled_charsmap": np.frombuffer(model.charsmap, dtype=np.int8),
        "tokenizer.ggml.add_space_prefix": True,
        "tokenizer.ggml.remove_extra_whitespaces": True,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_eos_token": True,
    }
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file(metadata))
    ours, same = load_tokenizer(path), load_tokenizer(models["unigram"])
    for text in ("the end of the text", "  Ab\u0301c \uff21\n", "what? \u00bd"):
        assert ours.encode(text).ids == same.encode(text).ids
    assert ours.encode("the", add_special_tokens=True).ids[-1] == 2
    assert ours.encode("the</s>end").ids.count(2) == 1


def test_truncated_and_damaged_files(models, tmp_path):
    data = models["unigram"].read_bytes()
    path = tmp_path / "x.model"
    rng = np.random.default_rng(1)
    variants = [data[:end] for end in (*range(5, 60), *range(60, len(data), len(data) // 60))]
    for _ in range(150):
        damaged = bytearray(data)
        for place in rng.integers(0, len(data), 3).tolist():
            damaged[place] = int(rng.integers(0, 256))
        variants.append(bytes(damaged))
    refused = 0
    with processor_time() as spent:
        for variant in variants:
            path.write_bytes(variant)
            try:
                # A file that is cut between two pieces is whole, only smaller.
                load_tokenizer(path).encode("the e\u0301nd of \uff21 text")
            except TokenizerError as error:
                refused += str(error).startswith(f"{path}: ") or "lead nowhere" in str(error)
        assert refused > 100
    assert spent.seconds < 20


def piece(text: bytes, score: float = 0.0, kind: int = 1) -> bytes:
    body = b"\x0a" + bytes([len(text)]) + text + b"\x15" + struct.pack("<f", score) + b"\x18" + bytes([kind])
    return b"\x0a" + bytes([len(body)]) + body


UNK = piece(b"<unk>", kind=2)
BPE = b"\x12\x02\x18\x02"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (UNK + b"\x0a\x80\x80\x80\x80\x04", "1073741824 bytes wanted, 0 are left"),
        (UNK + b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "bytes wanted"),
        (UNK + b"\x0a" + b"\xff" * 20, "a number does not end"),
        (UNK + b"\x0b", "wire type 3"),
        (UNK + b"\x02\x00", "field 0"),
        (UNK + b"\x08\x01", "a message was expected"),
        (UNK + piece(b"\xff\xfe"), "piece 1 is not UTF-8"),
        (UNK + piece(b"a", kind=9), "unknown kind 9"),
        (UNK + piece(b"a") + piece(b"a"), "there twice"),
        (UNK + piece(b""), "a piece is empty"),
        (UNK + UNK.replace(b"unk", b"unq") + piece(b"a"), "2 unknown pieces"),
        (UNK + piece(b"a", float("nan")), "not a finite number"),
        (UNK + piece(b"a", float("inf")) + BPE, "not a finite number"),
        (UNK + piece(b"ab", kind=5) + BPE, "unused pieces are not supported"),
        (UNK + piece(b"a") + b"\x12\x02\x18\x05", "type 5 is not supported"),
        (UNK + piece(b"a") + b"\x2a\x03\x12\x01x", "denormalization rules .byte .* are not supported"),
        (UNK + piece(b"a") + b"\x12\x03\x98\x02\x01", "byte_fallback without a token for every byte"),
        (UNK + piece(b"<0xZZ>", kind=6), "names no byte"),
        (UNK + piece(b"a") + b"\x1a\x04\x12\x02ab", "precompiled_charsmap is damaged"),
        (UNK + piece(b"a") + b"\x1a\x0b\x12\x09\xff\xff\xff\x7fabcd\x00", "precompiled_charsmap is damaged"),
    ],
)
def test_hostile_files(tmp_path, data, words):
    path = tmp_path / "x.model"
    path.write_bytes(data)
    with pytest.raises(TokenizerError, match=words) as caught:
        load_tokenizer(path)
    assert str(path) in str(caught.value)


def test_replacements_that_are_no_text():
    units = np.zeros(256, dtype=np.uint32)
    units[0] = 1 << 10  # the children of the root are at 1
    units[1 ^ ord("a")] = (2 << 10) | (1 << 8) | ord("a")  # "a" ends a rule; its value is at (1 ^ "a") ^ 2
    units[1 ^ ord("a") ^ 2] = 1 << 31 | 1
    compiled = struct.pack("<I", len(units) * 4) + units.tobytes()
    assert Charsmap(compiled + "bé\0".encode(), SpaceOptions()).apply("xa", True) == "\u2581xé"
    with pytest.raises(TokenizerError, match="not UTF-8"):
        Charsmap(compiled + b"b\xc3\0", SpaceOptions())
    with pytest.raises(TokenizerError, match="lead nowhere"):
        Charsmap(compiled + "é\0".encode(), SpaceOptions()).apply("xa", True)


def test_rules_that_lead_nowhere():
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(300):
        units = rng.integers(0, 2**32, 8, dtype=np.uint32)
        units[0] = rng.integers(0, 2**13, dtype=np.uint32)
        compiled = struct.pack("<I", 32) + units.tobytes() + b"ab\0c\0"
        step = Charsmap(compiled, SpaceOptions())
        try:
            step.apply("some text \u00e9 \U0001f600" * 5, True)
        except TokenizerError as error:
            refused += "damaged" in str(error)
    assert refused > 0
