"""Tokens that are added later, and tokenizers that are written, against ``tokenizers``."""

from __future__ import annotations

import json
import pickle

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_json_files import (
    bert_like,
    byte_level,
    gemma_like,
    llama_like,
    mistral_like,
    no_bytes,
    split,
    t5_like,
    trained,
    words_like,
)
from tokenizer_texts import CORPUS

from constrain.errors import TokenizerError
from constrain.tokenizers import load_tokenizer, save_tokenizer_json
from constrain.tokenizers.adapters import adapt
from constrain.tokenizers.formats.json_writer import tokenizer_json_of
from constrain.tokenizers.formats.rank_encodings import RankEncoding
from constrain.tokenizers.formats.tiktoken_file import tokenizer_from_ranks
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.models.piece_tokenizer import PieceTokenizer
from constrain.tokenizers.splitting.patterns import names

NEW = ("<think>", " two words", "dog", "Ünï", "##", "<|x|>")
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *NEW,
                *CORPUS.split(" ")[:40],
                "The dog",
                "  ",
                "\n",
                " \n\n ",
                "12345",
                "'s",
                "'LL",
                "naïve",
                "人工",
                "\u2003",
            ]
        ),
        st.text(max_size=5),
    ),
    max_size=20,
).map("".join)


def of_json(content):
    return parse_tokenizer_json(json.dumps(content).encode())


def template(small_json):
    content = json.loads(json.dumps(small_json))
    token = content["added_tokens"][0]
    content["post_processor"] = json.loads(
        tokenizers.processors.TemplateProcessing(
            single="<|endoftext|> $A", pair="<|endoftext|> $A <|endoftext|>:1 $B:1",
            special_tokens=[(token["content"], token["id"])],
        ).__getstate__()
    )  # fmt: skip
    return content


def ranks(small_json, pattern):
    tokens = of_json(small_json).model_tokens()
    ordered = sorted(tokens.values(), key=lambda data: (len(data) > 1, len(data), data))
    special = {"<|end|>": len(ordered), "<|start|>": len(ordered) + 1}
    known = RankEncoding(split=pattern, ranks=len(ordered), special=special, eos=("<|end|>",))
    return tokenizer_from_ranks(dict(enumerate(ordered)), known)


def kinds(small_json):
    normal = json.loads(json.dumps(small_json)) | {"normalizer": {"type": "NFC"}}
    yield "small", of_json(small_json)
    yield "template", of_json(template(small_json))
    yield "NFC", of_json(normal)
    yield "stages", of_json(byte_level(split(r"\p{N}"), split(r"[A-Z]", "merged_with_next")))
    for pattern in names():
        yield pattern, ranks(small_json, pattern)
    # Ids of added tokens in front, and ids that no token has.
    tokens = [b"<|end|>", *sorted(of_json(small_json).model_tokens().values(), key=lambda data: (len(data), data))]
    for name, special in (("first", {"<|end|>": 0}), ("gap", {"<|end|>": 0, "<|more|>": len(tokens) + 3})):
        known = RankEncoding(split=names()[0], ranks=len(tokens) - 1, special=special, eos=("<|end|>",))
        yield name, tokenizer_from_ranks(dict(enumerate(tokens[1:], 1)), known)


def test_what_is_written_gives_the_same(small_json, tmp_path):
    for name, tokenizer in kinds(small_json):
        save_tokenizer_json(tokenizer, tmp_path / "tokenizer.json")
        hugging = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        again = load_tokenizer(tmp_path / "tokenizer.json")
        assert list(tmp_path.iterdir()) == [tmp_path / "tokenizer.json"]
        assert type(again) is type(tokenizer), name
        assert tokenizer.vocab_size == again.vocab_size, name
        assert len(tokenizer.get_vocab()) == hugging.get_vocab_size(), name
        assert again.options.split == tokenizer.options.split, name
        assert tokenizer.get_vocab() == again.get_vocab() == hugging.get_vocab(), name
        check_equal(name, tokenizer, again, hugging)


def check_equal(name, tokenizer, again, hugging):
    @settings(max_examples=60)
    @given(TEXTS)
    def check(text):
        for with_special in (False, True):
            encoding = tokenizer.encode(text, with_special)
            other = hugging.encode(text, add_special_tokens=with_special)
            assert encoding.ids == other.ids, name
            assert again.encode(text, with_special) == encoding, name
            assert hugging.decode(other.ids) == tokenizer.decode(encoding.ids) == again.decode(encoding.ids), name

    check()


def test_pairs_are_written(small_json, tmp_path):
    tokenizer = of_json(template(small_json))
    again = of_json(tokenizer_json_of(tokenizer))
    assert again.pair_template == tokenizer.pair_template is not None


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(
    "flags", [{}, {"lstrip": True}, {"rstrip": True, "single_word": True}, {"normalized": False}], ids=str
)
def test_added_tokens_are_those_of_the_reference(small_json, special, flags):
    content = json.loads(json.dumps(small_json)) | {"normalizer": {"type": "NFC"}}
    before = of_json(content)
    ours = before.with_added_tokens(NEW, special=special, **flags)
    hugging = tokenizers.Tokenizer.from_str(json.dumps(content))
    added = [tokenizers.AddedToken(text, **{"normalized": not special, **flags, "special": special}) for text in NEW]
    hugging.add_special_tokens(added) if special else hugging.add_tokens(added)
    written = of_json(tokenizer_json_of(ours))
    assert ours.vocab_size == hugging.get_vocab_size()
    assert before.vocab_size < ours.vocab_size
    assert [ours.token_to_id(text) for text in NEW] == [hugging.token_to_id(text) for text in NEW]

    @settings(max_examples=100)
    @given(TEXTS)
    def check(text):
        other = hugging.encode(text, add_special_tokens=False)
        for tokenizer in (ours, written, pickle.loads(pickle.dumps(ours))):
            encoding = tokenizer.encode(text)
            assert encoding.ids == other.ids
            for skip in (False, True):
                assert tokenizer.decode(encoding.ids, skip) == hugging.decode(other.ids, skip_special_tokens=skip)

    check()


def test_the_first_tokenizer_stays_as_it_is(small_json):
    tokenizer = of_json(small_json)
    ids = tokenizer.encode("a <think> b").ids
    decoded = tokenizer.decode(ids)
    more = tokenizer.with_added_tokens(["<think>"], special=True)
    assert tokenizer.encode("a <think> b").ids == ids
    assert tokenizer.decode(ids) == decoded == more.decode(ids)
    assert more.encode("a <think> b", special="none").ids == ids
    new = tokenizer.vocab_size
    assert more.encode("<think>").ids == [new]
    assert more.token_bytes(new) is None
    assert new in more.special_ids
    assert new in more.special_tokens.additional
    assert tokenizer.token_to_id("<think>") is None
    with pytest.raises(TokenizerError, match="out of range"):
        tokenizer.token_bytes(new)
    assert more.with_added_tokens(["<think>", "b b"]).encode("<think>b b").ids == [new, new + 1]
    assert more.with_added_tokens([]).get_vocab() == more.get_vocab()


def test_errors(small_json, tmp_path):
    tokenizer = of_json(small_json)
    for wrong, message in ((["a", ""], "no text"), (["x y", "x y"], "twice"), ("ab", "list of str"), ([5], "str")):
        with pytest.raises(TokenizerError, match=message):
            tokenizer.with_added_tokens(wrong)
    adapted = adapt(tokenizers.Tokenizer.from_str(json.dumps(small_json)))
    with pytest.raises(TokenizerError, match="HuggingFaceTokenizer takes no further tokens"):
        adapted.with_added_tokens(["x"])
    with pytest.raises(TokenizerError, match="HuggingFaceTokenizer cannot be written"):
        save_tokenizer_json(adapted, tmp_path / "x.json")
    with pytest.raises(TokenizerError, match="No such file"):
        save_tokenizer_json(tokenizer, tmp_path / "none" / "x.json")
    assert not list(tmp_path.iterdir())


def test_two_spellings_of_one_token(small_json):
    tokenizer = of_json(json.loads(json.dumps(small_json)) | {"normalizer": {"type": "NFC"}})
    once = tokenizer.with_added_tokens(["o\u0308l"])
    with pytest.raises(TokenizerError, match="normalization"):
        once.with_added_tokens(["\u00f6l"])
    (end,) = tokenizer.special_ids
    again = tokenizer.with_added_tokens(["<|endoftext|>", "<|more|>"], special=True)
    assert again.special_tokens.eos == end
    assert end not in again.special_tokens.additional


def clip_like():
    """BPE in words whose last characters are marked, after lower case."""
    model = tokenizers.models.BPE(unk_token="<unk>", end_of_word_suffix="</w>")
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    return trained(
        model,
        trainer,
        tokenizers.normalizers.Lowercase(),
        tokenizers.pre_tokenizers.Whitespace(),
        tokenizers.decoders.ByteLevel(),
    )


PIECES = {
    "Llama": llama_like,
    "Mistral": mistral_like,
    "Gemma": gemma_like,
    "characters": lambda: next(no_bytes()),
    "T5": t5_like,
    "BERT": bert_like,
    "BERT, any case": lambda: bert_like(lowercase=False, strip_accents=False),
    "words": words_like,
    "CLIP": clip_like,
}


@pytest.mark.parametrize("name", PIECES)
def test_pieces_are_written(name, tmp_path):
    tokenizer = of_json(PIECES[name]())
    assert type(tokenizer) is PieceTokenizer
    save_tokenizer_json(tokenizer, tmp_path / "tokenizer.json")
    hugging = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    again = load_tokenizer(tmp_path / "tokenizer.json")
    assert tokenizer.vocab_size == again.vocab_size == hugging.get_vocab_size()
    assert tokenizer.get_vocab() == again.get_vocab()
    assert tokenizer_json_of(again) == tokenizer_json_of(tokenizer)
    check_equal(name, tokenizer, again, hugging)


@pytest.mark.parametrize("flags", [{}, {"lstrip": True, "single_word": True}, {"normalized": False}], ids=str)
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("name", PIECES)
def test_tokens_added_to_pieces_are_those_of_the_reference(name, special, flags):
    content = PIECES[name]()
    known = next(text for text in content_tokens(content) if len(text) > 3 and text.isalpha())
    before = of_json(content)
    texts = [*NEW, known]
    ours = before.with_added_tokens(texts, special=special, **flags)
    hugging = tokenizers.Tokenizer.from_str(json.dumps(content))
    added = [tokenizers.AddedToken(text, **{"normalized": not special, **flags, "special": special}) for text in texts]
    hugging.add_special_tokens(added) if special else hugging.add_tokens(added)
    written = of_json(tokenizer_json_of(ours))
    assert ours.vocab_size == hugging.get_vocab_size() == written.vocab_size
    assert [ours.token_to_id(text) for text in texts] == [hugging.token_to_id(text) for text in texts]
    assert before.token_to_id("<think>") is None

    @settings(max_examples=60)
    @given(TEXTS)
    def check(text):
        other = hugging.encode(text, add_special_tokens=False)
        for tokenizer in (ours, written, pickle.loads(pickle.dumps(ours))):
            encoding = tokenizer.encode(text)
            assert encoding.ids == other.ids
            assert encoding.offsets == other.offsets
            for skip in (False, True):
                assert tokenizer.decode(encoding.ids, skip) == hugging.decode(other.ids, skip_special_tokens=skip)

    check()


def content_tokens(content):
    vocab = content["model"]["vocab"]
    return vocab if isinstance(vocab, dict) else [text for text, _ in vocab]


def test_tokens_added_to_a_sentencepiece_file(data_folder, tmp_path):
    before = load_tokenizer(data_folder / "vocab" / "llama2.spm.model")
    more = before.with_added_tokens(["<think>", "<end>"], special=True).with_added_tokens(["<plain>"])
    size = before.vocab_size
    assert more.encode("a<think>b<plain>").ids == [
        *before.encode("a").ids,
        size,
        *before.encode("b").ids,
        size + 2,
    ]
    assert more.decode([size + 2, size]) == "<plain>"
    assert more.token_bytes(size) is None
    assert more.encode("x<think>", special="none").ids == before.encode("x<think>").ids
    with pytest.raises(TokenizerError, match="normalized text"):
        before.with_added_tokens(["x"], normalized=True)
    with pytest.raises(TokenizerError, match="cannot be written"):
        save_tokenizer_json(more, tmp_path / "x.json")
