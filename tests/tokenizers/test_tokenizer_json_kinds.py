"""``tokenizer.json`` of every kind against Hugging Face's library, id for id."""

from __future__ import annotations

import copy
import json
import pickle
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
import sentencepiece
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import processor_time
from tokenizer_json_files import KINDS, bert_like, byte_level, llama_like, split, t5_like, words_like
from tokenizer_texts import PIECES, TEXTS, TRAINING_TEXT
from tokenizers import normalizers, pre_tokenizers

import constrain
from constrain.errors import TokenizerError
from constrain.tokenizers.formats.sentencepiece_proto import parse_model
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.normalizing import precompiled
from constrain.tokenizers.normalizing.bert_text import BERT_STAGES, BertText
from constrain.tokenizers.normalizing.nmt_text import NmtText
from constrain.tokenizers.normalizing.precompiled import Precompiled
from constrain.tokenizers.splitting.stages import split_in_stages


@pytest.mark.parametrize("name", KINDS)
def test_equal_to_tokenizers(name):
    text = json.dumps(KINDS[name]())
    reference, ours = tokenizers.Tokenizer.from_str(text), parse_tokenizer_json(text.encode())
    assert ours.vocab_size == reference.get_vocab_size()

    @settings(max_examples=150)
    @given(st.one_of(TEXTS, TEXTS.map(lambda text: f" {text}</s>{text} ")))
    def check(text):
        expected, got = reference.encode(text, add_special_tokens=False), ours.encode(text)
        assert got.ids == expected.ids
        assert got.tokens == expected.tokens
        assert ours.decode(got.ids) == reference.decode(expected.ids)
        assert got.offsets == expected.offsets

    check()
    long = "".join(PIECES[i * 7 % len(PIECES)] for i in range(6_000))
    assert ours.encode(long).ids == reference.encode(long, add_special_tokens=False).ids


def test_a_token_outside_the_byte_alphabet_is_never_reached():
    content = byte_level(split(r"\p{N}"))
    place = max(content["model"]["vocab"].values()) + 1
    content["model"]["vocab"] |= {"two words": place, "\u65e5": place + 1}
    content["model"]["ignore_merges"] = True
    text = json.dumps(content)
    reference, ours = tokenizers.Tokenizer.from_str(text), parse_tokenizer_json(text.encode())
    for sample in ("two words", "\u65e5"):
        assert ours.encode(sample).ids == reference.encode(sample).ids
    assert ours.decode([place, place + 1]) == reference.decode([place, place + 1]) == "two words\u65e5"


def test_a_word_without_a_token(tmp_path):
    content = words_like()
    del content["model"]["vocab"]["[UNK]"]
    content["added_tokens"] = []
    ours = parse_tokenizer_json(json.dumps(content).encode())
    assert ours.encode("the the").tokens == ["the", "the"]
    with pytest.raises(TokenizerError, match="'zzz' is no token, and the vocabulary has none for unknown ones"):
        ours.encode("the zzz")


def test_every_character_in_nmt():
    reference, ours = normalizers.Nmt(), NmtText()
    text = "a".join(map(chr, (*range(1, 0xD800), *range(0xE000, 0x10100), *range(0xE0000, 0xE0100))))
    assert ours.apply(text, True) == reference.normalize_str(text)


@pytest.fixture(scope="module", params=["nmt_nfkc", "nmt_nfkc_cf"])
def charsmap(request, tmp_path_factory):
    """Real rules, out of a model that is trained on the spot."""
    folder = tmp_path_factory.mktemp("charsmap")
    (folder / "corpus.txt").write_text(TRAINING_TEXT, encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"), model_prefix=str(folder / "m"), vocab_size=300, model_type="unigram",
        minloglevel=2, hard_vocab_limit=False, normalization_rule_name=request.param,
    )  # fmt: skip
    return parse_model((folder / "m.model").read_bytes()).charsmap


CLUSTERS = (
    "\u0301",
    "\u0308",
    "\u20dd",
    "\u200d",
    "\u1100",
    "\u1161",
    "\u11a8",
    "\uac00",
    "\uac01",
    "\r\n",
    "\r",
    "\n",
)
CLUSTERS += (
    "\u00ad",
    "\u0600",
    "\u00bd",
    "\U000110cd",
    "A",
    "\u00aa",
    "\u0903",
    "\u093f",
    "\u0915",
    "\U0001f3fb",
    "\u2764",
    "\ufe0f",
    "\u01c5",
)


def test_precompiled_rules(charsmap):
    reference, ours = normalizers.Precompiled(charsmap), Precompiled(charsmap)
    blocks = (
        (1, 0x3100),
        (0xA600, 0xB000),
        (0xD7A0, 0xD800),
        (0xF900, 0x12000),
        (0x1D000, 0x1F400),
        (0xE0000, 0xE0200),
    )
    codes = [code for begin, end in blocks for code in range(begin, end)]
    for after in ("-", "\u0301"):
        text = "".join(f"A{chr(code)}{after}" for code in codes)
        assert ours.apply(text, True) == reference.normalize_str(text)

    # Behind a sign that belongs to it, a fraction is no cluster of its own that would lose its mark.
    text = "".join(f"-{chr(code)}\u00bd\u0301" for code in codes)
    assert ours.apply(text, True) == reference.normalize_str(text)

    for unit in ("\u0600", "\u1100", "\u1161\u0301", "\u0301", "\r", "\r\n", "\uac00\u11a8\u0301\u0301"):
        text = unit * 100_000
        with processor_time() as spent:
            assert ours.apply(text, True) == reference.normalize_str(text)
        assert spent.seconds < 2

    @settings(max_examples=300)
    @given(st.lists(st.one_of(TEXTS, st.sampled_from(CLUSTERS)), max_size=6).map("".join))
    def check(text):
        expected = reference.normalize_str(text)
        assert ours.apply(text, True) == expected
        aligned, spans = ours.align(text, True)
        assert aligned == expected
        assert len(spans) == len(aligned)
        assert all(0 <= begin < end <= len(text) for begin, end in spans)

    check()


def test_precompiled_rules_forget_what_they_saw(charsmap, monkeypatch):
    monkeypatch.setattr(precompiled, "_REMEMBERED", 10)
    ours = pickle.loads(pickle.dumps(Precompiled(charsmap)))
    text = "".join(f"{chr(code)}\u0301" for code in range(0x61, 0x17F))
    assert ours.apply(text, True) == Precompiled(charsmap).apply(text, True)
    assert len(ours._known) <= 10


def test_offsets_cover_the_words():
    ours = parse_tokenizer_json(json.dumps(bert_like()).encode())
    text = "The  Étude, end"
    for word in ("Étude", "end"):
        assert "".join(word[begin:end] for begin, end in ours.encode(word).offsets) == word
    joined = ours.encode(text)
    assert all(text[begin:end].strip() == text[begin:end] != "" for begin, end in joined.offsets)
    llama = parse_tokenizer_json(json.dumps(llama_like()).encode())
    # The blank that is put in front may be a token of its own, at the place of the first character.
    offsets = llama.encode(text).offsets
    assert offsets == sorted(offsets)
    assert {place for begin, end in offsets for place in range(begin, end)} == set(range(len(text)))


@pytest.mark.parametrize("name", ["llama", "t5", "bert uncased"])
def test_masks(name):
    """Every token that a mask allows, and no other, keeps the text a beginning of what the grammar says."""
    tokenizer = parse_tokenizer_json(json.dumps(KINDS[name]()).encode(), eos_ids=(1,))
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer)
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_choices([" the end", "the"]))
    matcher = constrain.Matcher(compiled)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    matcher.fill_next_token_bitmask(mask, 0)
    allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[: vocabulary.size]).tolist()
    expected = [
        token_id
        for token_id in range(vocabulary.size)
        if (data := tokenizer.token_bytes(token_id)) is not None
        and any(sentence.startswith(data) for sentence in (b" the end", b"the"))
        and token_id != 1
    ]
    assert allowed == expected
    assert expected


def changed(content, **changes):
    content = copy.deepcopy(content)
    for key, value in changes.items():
        content["model"][key] = value
    return json.dumps(content).encode()


def test_hostile_files():
    unigram, llama, bert = t5_like(), llama_like(), bert_like()
    for data, words in (
        (changed(unigram, vocab=[["a"]]), "entry 0 is not a token and its score"),
        (changed(unigram, vocab=[["a", "b"]]), "entry 0 is not a token and its score"),
        (changed(unigram, vocab=[["a", 1.0], ["a", 2.0]]), "twice, the second time as id 1"),
        (changed(unigram, unk_id=None), "unk_id"),
        (changed(unigram, vocab={}), "list of tokens"),
        (changed(unigram, byte_fallback=True), "without a token for every byte"),
        (changed(bert, unk_token="[NO]"), "'.NO.' is not in the vocabulary"),
        (changed(bert, max_input_chars_per_word="x"), "max_input_chars_per_word"),
        (changed(bert, vocab={"[UNK]": 0, "\ud800": 1}).replace(b"[CLS]", b"[UNK]"), "surrogate|twice|contradicts"),
        (changed(llama, merges=[["a", "no such"]]), "merge 0"),
        (changed(llama, dropout=0.1), "dropout"),
        (changed(llama, type="Words"), "model Words is not supported"),
        (json.dumps({**llama, "normalizer": {"type": "Rot13"}}).encode(), "normalizer Rot13 is not supported"),
        (json.dumps({**llama, "decoder": {"type": "CTC"}}).encode(), "decoder CTC is not supported"),
        (json.dumps({**llama, "pre_tokenizer": {"type": "UnicodeScripts"}}).encode(), "UnicodeScripts"),
        (
            json.dumps({**llama, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "!"}}).encode(),
            "not base 64",
        ),
        (
            json.dumps({**llama, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}).encode(),
            "damaged",
        ),
    ):
        with pytest.raises(TokenizerError, match=words):
            parse_tokenizer_json(data)


def test_every_character_in_bert():
    # Characters that came with a later Unicode than that of Python are left out: their lower case is not known.
    reference, ours = normalizers.BertNormalizer(), BertText()
    codes = [code for code in range(1, 0x20000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    wrong = [code for code in codes if reference.normalize_str(f"a{chr(code)}b") != ours.apply(f"a{chr(code)}b", True)]
    assert not wrong
    splitter = pre_tokenizers.BertPreTokenizer()
    for begin in range(0, len(codes), 1000):
        text = "aa".join(map(chr, codes[begin : begin + 1000]))
        data = np.frombuffer(bytearray(text.encode()), dtype=np.uint8)
        pieces = split_in_stages(data, BERT_STAGES)
        raw = bytes(pieces.data)
        cut = [raw[first:last].decode() for first, last in pairwise([0, *pieces.ends.tolist()])]
        assert cut == [part for part, _ in splitter.pre_tokenize_str(text)]
