"""Files of ``tokenizer.json`` whose parts stand in an unusual order, against Hugging Face's library."""

from __future__ import annotations

import json
import pickle

import pytest
import tokenizers
from tokenizer_json_files import MARK, byte_level, llama_like, words_like
from tokenizer_texts import PIECES

from bench.fuzz import tokenizer_files
from bench.fuzz.protocol import Counts
from bench.fuzz.tokenizer_parts import FilePlan
from constrain.errors import TokenizerError
from constrain.tokenizers import load_tokenizer
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.state_arrays import from_arrays, to_arrays

CLIP_SPLIT = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
TEXTS = [
    *(
        "",
        " ",
        "\u00e9\u0301 \u00e9 x\u00e9",
        "a photo of a cat",
        "The  Quick\tbrown fox's 123 \u00e9\u0301 \u4e2d\u6587 \U0001f600!",
        "a\n b",
    ),
    "".join(PIECES),
    *("".join(PIECES[place : place + 5]) for place in range(0, len(PIECES), 5)),
]


def clip_like():
    """Words end with ``</w>``, text is lower case, and what is no token is unknown."""
    symbols = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    vocab = {symbol: place for place, symbol in enumerate([*sorted(symbols), *(f"{s}</w>" for s in sorted(symbols))])}
    merges = [("c", "a"), ("ca", "t</w>"), ("p", "h"), ("o", "t"), ("ph", "ot"), ("phot", "o</w>"), ("t", "h")]
    for left, right in [*merges, ("th", "e</w>"), ("o", "f</w>"), ("1", "2</w>"), ("!", "!</w>")]:
        vocab.setdefault(left + right, len(vocab))
    merges += [("th", "e</w>"), ("o", "f</w>"), ("1", "2</w>"), ("!", "!</w>")]
    vocab |= {"<|startoftext|>": len(vocab), "<|endoftext|>": len(vocab) + 1}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": vocab[name], "content": name, **special} for name in ("<|startoftext|>", "<|endoftext|>")
        ],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "NFC"},
                {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
                {"type": "Lowercase"},
            ],
        },
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": CLIP_SPLIT}, "behavior": "Removed", "invert": True},
                {**BYTES, "add_prefix_space": False},
            ],
        },
        "post_processor": {
            "type": "RobertaProcessing",
            "sep": ["<|endoftext|>", vocab["<|endoftext|>"]],
            "cls": ["<|startoftext|>", vocab["<|startoftext|>"]],
            "trim_offsets": False,
            "add_prefix_space": False,
        },
        "decoder": BYTES,
        "model": {
            "type": "BPE",
            "unk_token": "<|endoftext|>",
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "</w>",
            "vocab": vocab,
            "merges": [list(pair) for pair in merges],
        },
    }


def with_prefix():
    """Characters within a word begin with ``##``; what is no token is dropped."""
    letters = "abcdehlnoprtuvwy"
    vocab = {symbol: place for place, symbol in enumerate([*letters, *(f"##{letter}" for letter in letters)])}
    merges = [("t", "##h"), ("th", "##e"), ("##h", "##e"), ("##l", "##l"), ("##o", "##u")]
    for left, right in merges:
        vocab.setdefault(left + right.removeprefix("##"), len(vocab))
    return {
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {
            "type": "BPE",
            "continuing_subword_prefix": "##",
            "vocab": vocab,
            "merges": [" ".join(pair) for pair in merges],
        },
    }


def added_byte(char):
    """The token of a byte, added as a word of its own."""
    token_id = byte_level(tokenizers.pre_tokenizers.Digits())["model"]["vocab"][char]
    flags = {"single_word": True, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    return {"id": token_id, "content": char, **flags}


def changed(content, **parts):
    return {**content, **parts}


METASPACE = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True}
FILES = {
    "clip": clip_like,
    "an added token that is a byte of the vocabulary": lambda: changed(
        byte_level(tokenizers.pre_tokenizers.Digits()),
        model={**byte_level(tokenizers.pre_tokenizers.Digits())["model"], "ignore_merges": True},
        added_tokens=[added_byte("\u00e9")],
    ),
    "prefix": with_prefix,
    "several normalizers": lambda: changed(
        byte_level(tokenizers.pre_tokenizers.Digits()),
        normalizer={
            "type": "Sequence",
            "normalizers": [
                {"type": "NFKC"},
                {"type": "Lowercase"},
                {"type": "Strip", "strip_left": True, "strip_right": False},
            ],
        },
    ),
    "metaspace behind a split": lambda: changed(
        llama_like(),
        normalizer=None,
        pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, METASPACE]},
    ),
    "metaspace at the first place only, behind a normalizer": lambda: changed(
        llama_like(),
        normalizer={"type": "StripAccents"},
        pre_tokenizer={
            "type": "Sequence",
            "pretokenizers": [{"type": "Punctuation"}, {**METASPACE, "prepend_scheme": "first"}],
        },
    ),
    "words that are not cut at markers": lambda: changed(
        llama_like(),
        normalizer=None,
        pre_tokenizer={
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, {**METASPACE, "split": False}],
        },
    ),
    "bytes twice": lambda: changed(
        byte_level(tokenizers.pre_tokenizers.Digits()),
        pre_tokenizer={"type": "Sequence", "pretokenizers": [BYTES, {**BYTES, "add_prefix_space": True}]},
    ),
    "bytes of words": lambda: changed(words_like(), pre_tokenizer=BYTES, decoder=BYTES),
    "bytes as a normalizer": lambda: changed(
        byte_level(tokenizers.pre_tokenizers.Digits()), normalizer={"type": "ByteLevel"}, pre_tokenizer=None
    ),
    "a decoder of no parts": lambda: changed(words_like(), decoder={"type": "Sequence", "decoders": []}),
    "ids around a text that are not those of the names": lambda: changed(
        words_like(), post_processor={"type": "BertProcessing", "cls": ["[UNK]", 1], "sep": ["[UNK]", 2]}
    ),
    "pieces of one length": lambda: changed(llama_like(), pre_tokenizer={"type": "FixedLength", "length": 3}),
    "pieces of one length, of bytes": lambda: changed(
        byte_level(tokenizers.pre_tokenizers.Digits()),
        pre_tokenizer={"type": "Sequence", "pretokenizers": [BYTES, {"type": "FixedLength", "length": 2}]},
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_equal_to_tokenizers(name):
    text = json.dumps(
        {"added_tokens": [], "post_processor": None, "decoder": None, "normalizer": None, **FILES[name]()}
    )
    reference, ours = tokenizers.Tokenizer.from_str(text), parse_tokenizer_json(text.encode())
    copies = (ours, pickle.loads(pickle.dumps(ours)), from_arrays(to_arrays(ours)))
    for sample in TEXTS:
        for around in (False, True):
            expected = reference.encode(sample, add_special_tokens=around)
            for copy in copies:
                assert copy.encode(sample, around).ids == expected.ids, sample
            assert ours.encode(sample, around).offsets == expected.offsets, sample
        assert ours.decode(expected.ids, False) == reference.decode(expected.ids, skip_special_tokens=False)


def test_text_that_spells_a_special_token_of_words_with_suffixes():
    ours = parse_tokenizer_json(json.dumps(clip_like()).encode())
    end = ours.token_to_id("<|endoftext|>")
    assert end in ours.encode("a cat<|endoftext|>").ids
    assert end not in ours.encode_ordinary("a cat<|endoftext|>").ids


def test_an_added_token_of_which_nothing_is_left():
    token = {"id": 5000, "content": "  ", "single_word": False, "lstrip": False, "rstrip": False, "special": False}
    content = llama_like()
    content["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": ""}
    content["added_tokens"].append({**token, "normalized": True})
    with pytest.raises(TokenizerError, match=r"added token '  ' .* is not supported: the normalizer leaves nothing"):
        parse_tokenizer_json(json.dumps(content).encode())


def test_the_campaign_sees_a_difference(monkeypatch):
    plan = FilePlan(with_prefix()["model"], [], [{"type": "Whitespace"}], [], [], [])
    assert tokenizer_files._check(plan, ["the bell", "\u00e9"], Counts()) == ""
    other = FilePlan({**plan.model, "merges": []}, [], [{"type": "Whitespace"}], [], [], [])
    ours = parse_tokenizer_json(json.dumps(other.content()).encode())
    monkeypatch.setattr(tokenizer_files, "parse_tokenizer_json", lambda data: ours)
    assert "the library has" in tokenizer_files._check(plan, ["the bell"], Counts())


@pytest.mark.parametrize(
    "model",
    [
        {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0], ["a" * 1025, -2.0]]},
        {"type": "WordPiece", "unk_token": "a", "vocab": {"a": 0, "##" + "a" * 1023: 1}},
    ],
    ids=["Unigram", "WordPiece"],
)
def test_a_token_that_is_read_on_for_ever(tmp_path, model):
    # In a text of one letter each place would be read on as far as the token goes.  It is no matter of what is
    # supported: the library takes as long.
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    with pytest.raises(TokenizerError, match="a token has 1,025 characters; the limit is 1,024"):
        load_tokenizer(path)
