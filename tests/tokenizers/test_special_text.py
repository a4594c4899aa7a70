"""Text that spells special tokens: read, refused or encoded as text, for every family of tokenizers."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers_that_spell import MODELS, SPECIAL, WORDS, content_of

from constrain.errors import TokenizerError
from constrain.tokenizers import Sequence, load_tokenizer
from constrain.tokenizers.adapters import adapt
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.mock import MockTokenizer


def native(name):
    return parse_tokenizer_json(json.dumps(content_of(name)).encode())


texts = st.lists(st.sampled_from([*SPECIAL, "a", "b", " ", "<", "s>", "</s", ">", "x", "[SEP", "] "]), max_size=8).map(
    "".join
)
subsets = st.sets(st.sampled_from(SPECIAL))


@pytest.mark.parametrize("name", MODELS)
def test_text_is_never_a_special_token_that_is_not_allowed(name):
    tokenizer = native(name)

    @settings(max_examples=150)
    @given(texts, subsets)
    def run(text, allowed):
        names = tokenizer.spelled_special_tokens()
        refused = {names[word] for word in SPECIAL if word not in allowed} - {WORDS.index("<unk>")}
        for encoding in (tokenizer.encode(text, special=allowed), tokenizer.encode_ordinary(text)):
            assert not refused & set(encoding.ids)
            assert len(encoding.offsets) == len(encoding.tokens) == len(encoding.ids)
        assert set(tokenizer.encode_ordinary(text).ids).isdisjoint(tokenizer.special_ids - {WORDS.index("<unk>")})
        assert tokenizer.encode(text, special="all") == tokenizer.encode(text)
        assert tokenizer.encode(text, special=set(SPECIAL)) == tokenizer.encode(text)

    run()


def test_a_model_that_makes_special_tokens_is_kept_from_it():
    # WhitespaceSplit leaves "</s>" whole, and it is in the vocabulary: only its own absence makes it unknown.
    unknown = WORDS.index("<unk>")
    assert native("word level").encode_ordinary("a </s> b").ids == [WORDS.index("a"), unknown, WORDS.index("b")]
    assert native("word level").encode_ordinary("a </s> b").offsets == [(0, 1), (2, 6), (7, 8)]
    unigram = native("unigram")
    assert unigram.encode("<s>").ids == [0]
    assert unigram.encode_ordinary("<s>").tokens == ["<", "s", ">"]
    # u and k have no token.
    assert [unigram.id_to_token(i) for i in unigram.encode_ordinary("<unk>").ids] == ["<", "<unk>", "n", "<unk>", ">"]
    assert unigram.encode_ordinary("<unk>").tokens == ["<", "u", "n", "k", ">"]
    bpe = native("bpe")
    assert bpe.encode_ordinary("<s>").tokens == ["<s", ">"]
    again = pickle.loads(pickle.dumps(bpe))
    assert again.encode_ordinary("<s>").tokens == ["<s", ">"]


def test_the_longest_of_those_that_are_allowed_is_read():
    tokenizer = MockTokenizer(special_tokens=("<a", "<a>", ">b"))
    ids = {name: tokenizer.token_to_id(name) for name in ("<a", "<a>", ">b")}
    assert tokenizer.encode("<a>b").ids[0] == ids["<a>"]
    assert tokenizer.encode("<a>b", special={"<a", ">b"}).ids == [ids["<a"], ids[">b"]]
    assert tokenizer.encode("<a>b", special={">b"}).ids[-1] == ids[">b"]


@pytest.fixture(scope="module")
def every_family(small_json, data_folder):
    """One tokenizer of each kind that finds special tokens in text, with the name of one of them."""
    found = {
        "mock": (MockTokenizer(), "</s>"),
        "byte level": (parse_tokenizer_json(json.dumps(small_json).encode()), None),
    }
    found |= {name: (native(name), "</s>") for name in MODELS}
    vocab = data_folder / "vocab"
    for file in (
        "ggml-vocab-llama-spm.gguf",
        "ggml-vocab-bert-bge.gguf",
        "ggml-vocab-gpt-2.gguf",
        "ggml-vocab-phi-3.gguf",
    ):
        if (vocab / file).is_file():
            found[file] = (load_tokenizer(vocab / file), None)
    if (vocab / "cl100k_base.tiktoken").is_file():
        found["ranks"] = (load_tokenizer(vocab / "cl100k_base.tiktoken"), "<|endoftext|>")
    return found


def test_what_the_arguments_mean_in_every_family(every_family):
    for tokenizer, name in every_family.values():
        names = tokenizer.spelled_special_tokens()
        name = name or next(iter(names))
        token, text = names[name], f"a{name}a"
        assert token in tokenizer.encode(text).ids
        assert token in tokenizer.encode(text, special="all").ids
        assert token in tokenizer.encode(text, special={name}).ids
        for plain in (tokenizer.encode_ordinary(text), tokenizer.encode(text, special=set())):
            assert token not in plain.ids
        assert tokenizer.encode_batch([text, "a"], special="none") == [
            tokenizer.encode_ordinary(text),
            tokenizer.encode_ordinary("a"),
        ]
        with pytest.raises(TokenizerError, match="character 1, which special= does not name"):
            tokenizer.encode(text, special="none", disallowed="raise")
        assert token in tokenizer.encode(text, special={name}, disallowed="raise").ids
        sequence = Sequence(tokenizer)
        assert token not in sequence.append_text(text, special="none")
        with pytest.raises(TokenizerError, match="which is no special token"):
            tokenizer.encode(text, special={"<never>"})
        for wrong in ("some", 3, b"all"):
            with pytest.raises(TokenizerError, match='special= must be "all", "none"'):
                tokenizer.encode(text, special=wrong)
        with pytest.raises(TokenizerError, match='must be "raise" or "text"'):
            tokenizer.encode(text, special="none", disallowed="ignore")
        with pytest.raises(TokenizerError, match="needs special="):
            tokenizer.encode(text, disallowed="raise")


def test_what_is_read_of_text_decodes_to_the_text(every_family):
    for kind, (tokenizer, _) in every_family.items():
        if kind in MODELS or "bert" in kind:
            continue  # these lose text
        text = "a" + "a".join(tokenizer.spelled_special_tokens())
        assert tokenizer.decode(tokenizer.encode_ordinary(text).ids).removeprefix(" ") == text


def test_control_symbols_of_a_sentencepiece_model_are_read_where_somebody_asks(data_folder):
    path = data_folder / "vocab" / "llama2.spm.model"
    if not path.is_file():
        pytest.skip(f"no {path}")
    sentencepiece = pytest.importorskip("sentencepiece")
    tokenizer = load_tokenizer(path)
    library = adapt(sentencepiece.SentencePieceProcessor(model_file=str(path)))
    for one in (tokenizer, library):
        assert one.encode("</s>").ids == one.encode_ordinary("</s>").ids != [2]
        assert one.encode("Yes</s>No", special="all").ids == [*one.encode("Yes").ids, 2, *one.encode("No").ids]
        assert one.encode("Yes</s>No", special="all").offsets == [(0, 3), (3, 7), (7, 9)]
        assert one.encode("</s><s>", special={"<s>"}).ids[-1] == 1
        with pytest.raises(TokenizerError, match="'</s>' at character 0"):
            one.encode("</s>", special="none", disallowed="raise")


@pytest.mark.parametrize("name", MODELS)
def test_adapter_of_tokenizers_agrees(name):
    library = pytest.importorskip("tokenizers")
    tokenizer, adapted = native(name), adapt(library.Tokenizer.from_str(json.dumps(content_of(name))))

    @settings(max_examples=60)
    @given(texts, st.sampled_from([frozenset(), frozenset({"</s>", "[SEP]"}), frozenset({"<|end|>"})]))
    def run(text, allowed):
        ours, theirs = tokenizer.encode(text, special=allowed), adapted.encode(text, special=allowed)
        assert ours.ids == theirs.ids

    run()


def test_none_equals_the_setting_of_tokenizers(small_json):
    library = pytest.importorskip("tokenizers")
    content = json.dumps(small_json)
    reference = library.Tokenizer.from_str(content)
    reference.encode_special_tokens = True
    tokenizer = parse_tokenizer_json(content.encode())

    @given(st.lists(st.sampled_from(["<|endoftext|>", "<|end", "oftext|>", " a", "The", "é"])).map("".join))
    def run(text):
        expected = reference.encode(text, add_special_tokens=False)
        assert tokenizer.encode_ordinary(text).ids == expected.ids

    run()


def test_tiktoken_agrees(data_folder):
    tiktoken = pytest.importorskip("tiktoken")
    path = data_folder / "vocab" / "cl100k_base.tiktoken"
    if not path.is_file():
        pytest.skip(f"no {path}")
    tokenizer = load_tokenizer(path)
    ranks = {data: i for i, data in enumerate(tokenizer.tokens_as_bytes()) if data is not None}
    pattern = (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
        r"\s+(?!\S)|\s"
    )
    special = dict(tokenizer.spelled_special_tokens())
    reference = tiktoken.Encoding("cl100k", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    adapted = adapt(reference)

    @given(
        st.lists(st.sampled_from([*special, "<|end", "oftext|>", " a", "The", "é"])).map("".join),
        st.sets(st.sampled_from([*special])),
    )
    def run(text, allowed):
        expected = reference.encode(text, allowed_special=allowed, disallowed_special=())
        assert tokenizer.encode(text, special=allowed).ids == adapted.encode(text, special=allowed).ids == expected
        assert tokenizer.encode_ordinary(text).ids == reference.encode_ordinary(text)
        try:
            reference.encode(text, allowed_special=allowed)
        except ValueError:
            with pytest.raises(TokenizerError):
                tokenizer.encode(text, special=allowed, disallowed="raise")
        else:
            assert tokenizer.encode(text, special=allowed, disallowed="raise").ids == expected

    run()
