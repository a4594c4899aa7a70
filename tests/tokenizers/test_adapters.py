"""Adapters: the other library's ids and text, and bytes that are exact for every token."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import tiktoken
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_texts import CORPUS, TEXTS
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors

import constrain
from constrain.errors import TokenizerError
from constrain.tokenizers import DecodeStream, SpecialTokens, load_tokenizer
from constrain.tokenizers.adapters import adapt
from constrain.tokenizers.adapters.hugging_face import HuggingFaceTokenizer
from constrain.tokenizers.adapters.sentencepiece_processor import SentencePieceTokenizer
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.mock import MockTokenizer

GRAMMAR = '{"type": "object", "properties": {"the": {"type": "string"}, "n": {"type": "number"}}, "required": ["the"]}'


def masks(tokenizer, text='{"the": "a quick dog", "n": 12}'):
    """The mask before every byte of the text."""
    compiled = constrain.GrammarCompiler(constrain.Vocabulary.from_tokenizer(tokenizer)).compile(
        constrain.Grammar.from_json_schema(GRAMMAR)
    )
    matcher, rows = constrain.Matcher(compiled), []
    for byte in text.encode():
        mask = constrain.allocate_token_bitmask(1, tokenizer.vocab_size)
        matcher.fill_next_token_bitmask(mask, 0)
        rows.append(mask[0])
        assert matcher.accept_bytes(bytes((byte,)))
    return np.array(rows)


def same_vocabulary(adapted, native):
    assert adapted.vocab_size == native.vocab_size
    assert adapted.tokens_as_bytes() == native.tokens_as_bytes()
    assert adapted.special_ids == native.special_ids
    assert adapted.eos_ids == native.eos_ids
    for token_id in [*range(0, native.vocab_size, 97), *native.special_ids]:
        token = native.id_to_token(token_id)
        assert adapted.id_to_token(token_id) == token
        if token is not None:
            assert adapted.token_to_id(token) == native.token_to_id(token) == token_id


def check_stream(tokenizer, ids):
    for skip in (True, False):
        stream = DecodeStream(tokenizer, skip_special_tokens=skip)
        text = "".join(stream.step_batch(ids)) + (stream.flush() or "")
        assert text == tokenizer.decode(ids, skip)


# Byte-level vocabularies.


def test_hugging_face_byte_level_equals_native(small_json):
    content = json.dumps(small_json)
    native = parse_tokenizer_json(content.encode())
    adapted = adapt(tokenizers.Tokenizer.from_str(content))
    assert isinstance(adapted, HuggingFaceTokenizer)
    same_vocabulary(adapted, native)
    assert (masks(adapted) == masks(native)).all()

    @settings(max_examples=60)
    @given(TEXTS)
    def check(text):
        ours, theirs = adapted.encode(text), native.encode(text)
        assert ours == theirs
        assert adapted.decode(ours.ids, False) == text
        check_stream(adapted, ours.ids)

    check()


def test_tiktoken_equals_native(small_vocabulary):
    from constrain.tokenizers.formats.rank_encodings import RankEncoding
    from constrain.tokenizers.formats.tiktoken_file import tokenizer_from_ranks

    ranks = {token: rank for rank, token in enumerate(small_vocabulary[0])}
    special = {"<|endoftext|>": len(ranks) + 3, "<|x|>": len(ranks) + 7}
    native = tokenizer_from_ranks(
        {rank: token for token, rank in ranks.items()}, RankEncoding("gpt2", len(ranks), special, ("<|endoftext|>",))
    )
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    encoding = tiktoken.Encoding("t", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    adapted = adapt(encoding)
    same_vocabulary(adapted, native)
    assert (masks(adapted) == masks(native)).all()
    assert adapted.special_tokens.eos == special["<|endoftext|>"]

    @settings(max_examples=60)
    @given(TEXTS)
    def check(text):
        assert adapted.encode(text) == native.encode(text)
        assert adapted.decode(adapted.encode(text).ids, False) == text

    check()
    assert pickle.loads(pickle.dumps(adapted)).encode("The<|x|>").ids == adapted.encode("The<|x|>").ids


def test_llama3_vocabularies_are_the_same_through_every_library(llama3_json, data_folder):
    native = load_tokenizer(llama3_json)
    adapted = adapt(tokenizers.Tokenizer.from_file(str(llama3_json)))
    same_vocabulary(adapted, native)
    text = CORPUS + "你好, नमस्ते 😀 <|eot_id|>"
    assert adapted.encode(text) == native.encode(text)
    assert (masks(adapted) == masks(native)).all()


# Decoders of other kinds: what a token adds is what the library's decoder makes of it.


def vocabulary(*tokens):
    return {token: i for i, token in enumerate(tokens)}


def word_piece(cleanup=True):
    tokens = ["[UNK]", "the", "##s", "dog", "##ging", ".", ",", "'", "##'s", "n't", "do", "é", "##é"]
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocabulary(*tokens, "[CLS]", "[SEP]"), unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=cleanup)
    tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 14), ("[CLS]", 13))
    return tokenizer


def metaspace(scheme="always"):
    tokens = ["<unk>", "▁", "▁the", "the", "s", "▁▁", "a▁b", "é", "."]
    tokenizer = tokenizers.Tokenizer(models.Unigram([(t, -float(i)) for i, t in enumerate(tokens)], 0, False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return tokenizer


def llama(strip=True):
    tokens = ["<unk>", *[f"<0x{b:02X}>" for b in range(256)], "▁", "t", "h", "e", "th", "the", "▁the", "s", "é"]
    merges = [("t", "h"), ("th", "e"), ("▁", "the")]
    bpe = models.BPE(vocabulary(*tokens), merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer = tokenizers.Tokenizer(bpe)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*parts, *([decoders.Strip(" ", 1, 0)] if strip else [])])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.add_tokens(["<tool>"])
    return tokenizer


def words_without_decoder():
    tokenizer = tokenizers.Tokenizer(models.WordLevel(vocabulary("[UNK]", "the", "dog", "."), unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s+"), "removed")
    return tokenizer


KINDS = {
    "WordPiece": word_piece(),
    "WordPiece without cleanup": word_piece(False),
    "Metaspace": metaspace(),
    "Metaspace first": metaspace("first"),
    "Metaspace never": metaspace("never"),
    "Llama": llama(),
    "Llama without strip": llama(False),
    "no decoder": words_without_decoder(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_equals_that_of_the_library(kind):
    library = KINDS[kind]
    adapted = adapt(library)

    @given(st.lists(st.integers(0, library.get_vocab_size() - 1), max_size=8))
    def check(ids):
        # Broken UTF-8 out of bytes: one U+FFFD for each byte there, for each ill-formed sequence here.
        ids = [i for i in ids if not (library.id_to_token(i).startswith("<0x") and i > 0x7F)]
        # The library drops the unknown token only where it is among the added ones.
        unknown = {i for i in ids if i in adapted.special_ids and i == 0}
        skippable = library.get_added_tokens_decoder().keys() >= unknown
        if skippable:
            assert adapted.decode(ids, True) == library.decode(ids, skip_special_tokens=True)
        plain = [i for i in ids if i not in adapted.special_ids]
        assert adapted.decode(plain, False) == library.decode(plain, skip_special_tokens=False)
        check_stream(adapted, ids)

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_ids_equal_those_of_the_library(kind):
    library = KINDS[kind]
    adapted = adapt(library)
    for text in ("the dogs.", "  the  dogging", "é 😀\n", "", "the</s>", "[CLS]"):
        for special in (False, True):
            ours, theirs = adapted.encode(text, special), library.encode(text, add_special_tokens=special)
            assert (ours.ids, ours.tokens, ours.offsets) == (theirs.ids, theirs.tokens, theirs.offsets)
            assert ours.special_tokens_mask == theirs.special_tokens_mask
    for token_id in range(library.get_vocab_size()):
        assert adapted.id_to_token(token_id) == library.id_to_token(token_id)
        assert adapted.token_to_id(adapted.id_to_token(token_id)) == token_id
    for token, token_id in library.get_vocab().items():
        assert adapted.token_to_id(token) == token_id


def test_bytes_of_each_kind_of_token():
    def data(kind, token):
        adapted = adapt(KINDS[kind])
        return adapted.token_bytes(adapted.token_to_id(token))

    assert data("WordPiece", "##ging") == b"ging"
    assert data("WordPiece", "dog") == b" dog"
    assert data("WordPiece", ".") == b"."
    assert data("WordPiece without cleanup", ".") == b" ."
    assert data("WordPiece", "##é") == "é".encode()
    assert data("WordPiece", "[UNK]") is None
    assert data("Metaspace", "▁the") == b" the"
    assert data("Metaspace", "a▁b") == b"a b"
    assert data("Metaspace", "<unk>") is None
    assert data("Llama", "<0x0A>") == b"\n"
    assert data("Llama", "<0xE9>") == b"\xe9"
    assert data("Llama", "▁the") == b" the"
    assert data("Llama", "▁") == b" "
    assert data("Llama", "<tool>") == b" <tool>", "as the library decodes it"
    assert data("Llama", "</s>") is None
    assert data("no decoder", "dog") == b" dog"
    assert adapt(KINDS["Llama"]).eos_ids == (adapt(KINDS["Llama"]).token_to_id("</s>"),)


@pytest.mark.parametrize("kind", ["Llama", "Llama without strip", "WordPiece"])
def test_bytes_equal_those_of_the_native_tokenizer(kind):
    library = KINDS[kind]
    native, adapted = parse_tokenizer_json(library.to_str().encode()), adapt(library)
    assert adapted.special_ids == native.special_ids
    pairs = zip(adapted.tokens_as_bytes(), native.tokens_as_bytes(), strict=True)
    differing = {adapted.id_to_token(i) for i, (ours, theirs) in enumerate(pairs) if ours != theirs}
    # The library decodes a normalized added token as its normalizer spells it, the native one as the file does.
    assert differing <= {"▁<tool>"}


def test_truncation_and_padding_are_left_behind():
    library = word_piece()
    library.enable_truncation(2)
    library.enable_padding(length=9)
    assert adapt(library).encode("the dogs.").ids == word_piece().encode("the dogs.", add_special_tokens=False).ids
    assert len(library.encode("the dogs.").ids) == 9, "the library's own is as it was"


@pytest.mark.parametrize(
    ("decoder", "name"),
    [
        (decoders.BPEDecoder(), "BPEDecoder"),
        (decoders.CTC(), "CTC"),
        (decoders.Strip(" ", 0, 1), "Strip"),
        (decoders.Sequence([decoders.ByteLevel(), decoders.Metaspace()]), "Metaspace"),
    ],
)
def test_decoders_without_exact_bytes_are_refused_by_name(decoder, name):
    library = metaspace()
    library.decoder = decoder
    with pytest.raises(TokenizerError, match=name):
        adapt(library)


def test_a_tokenizer_with_python_in_it_is_refused():
    class Nothing:
        def pre_tokenize(self, text):
            pass

    library = metaspace()
    library.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Nothing())
    with pytest.raises(TokenizerError, match="cannot be copied"):
        adapt(library)


# SentencePiece.


@pytest.fixture(scope="module", params=["bpe", "unigram", "unigram without bytes", "no prefix"])
def processor(request, tmp_path_factory):
    sentencepiece = pytest.importorskip("sentencepiece")
    prefix = tmp_path_factory.mktemp("sp") / "model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS.splitlines() * 20),
        model_prefix=str(prefix),
        model_type="unigram" if request.param.startswith("unigram") else "bpe",
        vocab_size=150 if request.param == "unigram without bytes" else 400,
        byte_fallback=request.param != "unigram without bytes",
        add_dummy_prefix=request.param != "no prefix",
        remove_extra_whitespaces=request.param == "unigram",
        normalization_rule_name="nmt_nfkc" if request.param == "unigram" else "identity",
        user_defined_symbols=["<tool>"],
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")


def test_sentencepiece(processor):
    adapted = adapt(processor)
    assert isinstance(adapted, SentencePieceTokenizer)
    assert adapted.vocab_size == processor.get_piece_size()
    assert adapted.special_ids == {0, 1, 2}
    assert (adapted.special_tokens.unk, adapted.special_tokens.bos, adapted.eos_ids) == (0, 1, (2,))
    assert adapted.token_bytes(adapted.token_to_id("<tool>")) == b"<tool>"
    if any(map(processor.is_byte, range(adapted.vocab_size))):
        assert adapted.token_bytes(adapted.token_to_id("<0x0A>")) == b"\n"

    @settings(max_examples=60)
    @given(TEXTS)
    def check(text):
        text = text.replace("\x00", "")
        encoding = adapted.encode(text)
        assert encoding.ids == processor.encode(text)
        assert encoding.tokens == [processor.id_to_piece(i) for i in encoding.ids]
        if 0 not in encoding.ids:
            assert adapted.decode(encoding.ids) == processor.decode(encoding.ids)
        check_stream(adapted, encoding.ids)
        for begin, end in encoding.offsets:
            assert 0 <= begin <= end <= len(text)

    check()

    @given(st.lists(st.integers(3, adapted.vocab_size - 1), max_size=8))
    def check_ids(ids):
        ids = [i for i in ids if not processor.is_byte(i) or 0x09 < ids[0] < 0x20]
        assert adapted.decode(ids) == processor.decode(ids)
        check_stream(adapted, ids)

    check_ids()
    both = SentencePieceTokenizer(processor, add_bos=True, add_eos=True).encode("the", add_special_tokens=True)
    assert both.ids == [1, *processor.encode("the"), 2]
    assert both.special_tokens_mask == [1, *[0] * (len(both.ids) - 2), 1]
    assert len(both.offsets) == len(both.ids)


def test_llama2_model(data_folder):
    sentencepiece = pytest.importorskip("sentencepiece")
    path = data_folder / "vocab" / "llama2.spm.model"
    if not path.is_file():
        pytest.skip(f"no {path}")
    library = sentencepiece.SentencePieceProcessor(model_file=str(path))
    adapted = adapt(library)
    assert adapted.vocab_size == 32000
    assert sorted(len(d) for d in adapted.tokens_as_bytes()[3:259]) == [1] * 256, "the bytes"
    native = load_tokenizer(path)
    assert adapted.tokens_as_bytes() == native.tokens_as_bytes()
    assert (adapted.special_ids, adapted.eos_ids) == (native.special_ids, native.eos_ids)
    assert (masks(adapted) == masks(native)).all()
    ids = adapted.encode(CORPUS + "नमस्ते 😀").ids
    assert native.encode(CORPUS + "नमस्ते 😀").ids == ids
    assert adapted.decode(ids) == library.decode(ids) == CORPUS + "नमस्ते 😀"
    check_stream(adapted, ids)
    assert adapted.encode("x", add_special_tokens=True).ids[0] == library.bos_id()
    # A byte piece and the piece of the same byte are two ways to say the same.
    rows = masks(adapted)
    one, other = adapted.token_to_id("<0x7B>"), adapted.token_to_id("{")
    assert ((rows[:, one // 32] >> one % 32) & 1 == (rows[:, other // 32] >> other % 32) & 1).all()


def test_sentencepiece_offsets_of_bytes(processor):
    adapted = adapt(processor)
    encoding = adapted.encode("the 😀")
    if "<0xF0>" in encoding.tokens:
        assert encoding.offsets[-4:] == [(4, 5)] * 4


# transformers.


def test_transformers_fast():
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=llama(), bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    fast.chat_template = "{{ bos_token }}{{ messages[0].content }}"
    adapted = adapt(fast)
    assert adapted.special_tokens.roles() == {"bos": 266, "eos": 267, "unk": 0}
    assert adapted.eos_ids == (267,)
    assert adapted.encode("the é😀").ids == fast.encode("the é😀", add_special_tokens=False)
    chat = [{"role": "user", "content": "the"}]
    assert adapted.apply_chat_template(chat) == fast.apply_chat_template(chat, tokenize=False) == "<s>the"


def test_transformers_slow():
    transformers = pytest.importorskip("transformers")

    class Slow(transformers.PreTrainedTokenizerBase):
        def __init__(self):
            pass

        def __getattr__(self, name):
            raise AttributeError(name)

    with pytest.raises(TokenizerError, match="Slow is neither a fast tokenizer nor"):
        adapt(Slow())


# llama_cpp, with a stand-in that has the same methods.


class StandInModel:
    def __init__(self, texts):
        self.texts = texts

    def token_get_text(self, token_id):
        return self.texts[token_id]


class StandInLlama:
    """What ``llama_cpp.Llama`` has, over a native vocabulary; loses long tokens as some versions do."""

    __module__ = "llama_cpp.llama"

    def __init__(self, native, metadata, bos, eos):
        self.native, self.metadata, self.bos, self.eos = native, metadata, bos, eos
        self._model = StandInModel([native.id_to_token(i) or "" for i in range(native.vocab_size)])

    def n_vocab(self):
        return self.native.vocab_size

    def token_bos(self):
        return self.bos

    def token_eos(self):
        return self.eos

    def tokenize(self, text, add_bos=True, special=False):
        assert isinstance(text, bytes)
        return [self.bos] * add_bos + self.native.encode(text.decode()).ids

    def detokenize(self, tokens, prev_tokens=None, special=False):
        assert len(tokens) == 1
        data = self.native.token_bytes(tokens[0])
        if data is None:
            data = (self.native.id_to_token(tokens[0]) or "").encode() if special else b""
        return data if len(data) <= 32 else b""


def test_llama_cpp_byte_level(small_json):
    content = json.loads(json.dumps(small_json))
    vocab = content["model"]["vocab"]
    vocab["Ġ" * 40] = len(vocab) + 5
    native = parse_tokenizer_json(json.dumps(content).encode())
    end = native.token_to_id("<|endoftext|>")
    metadata = {"tokenizer.ggml.model": "gpt2", "tokenizer.chat_template": "{{ messages[0].content }}"}
    adapted = adapt(StandInLlama(native, metadata, end, end))
    assert adapted.tokens_as_bytes() == native.tokens_as_bytes()
    assert adapted.token_bytes(vocab["Ġ" * 40]) == b" " * 40
    assert adapted.special_ids == {end}
    assert adapted.eos_ids == (end,)
    assert (masks(adapted) == masks(native)).all()
    for text in ("The dog <|endoftext|> naïve 😀", ""):
        assert adapted.encode(text) == native.encode(text)
        check_stream(adapted, adapted.encode(text).ids)
    begun = adapted.encode("The dog", add_special_tokens=True)
    assert begun.ids == [end, *native.encode("The dog").ids]
    assert begun.special_tokens_mask == [1, *[0] * (len(begun.ids) - 1)]
    assert begun.offsets == [(0, 0), *native.encode("The dog").offsets]
    assert adapted.apply_chat_template([{"role": "user", "content": "x"}]) == "x"


def test_llama_cpp_sentencepiece():
    native = adapt(llama())
    spellings = [native.id_to_token(i) for i in range(native.vocab_size)]
    adapted = adapt(StandInLlama(native, {"tokenizer.ggml.unknown_token_id": "0"}, 266, 267))
    assert adapted.tokens_as_bytes() == native.tokens_as_bytes()
    assert [adapted.id_to_token(i) for i in range(adapted.vocab_size)] == spellings
    ids = adapted.encode("the thes").ids
    assert adapted.decode(ids) == native.decode(ids) == "the thes"
    assert adapted.encode("thes").offsets == [(0, 3), (3, 4)], "the space in front is not in the text"
    metadata = {"tokenizer.ggml.unknown_token_id": "0", "tokenizer.ggml.add_space_prefix": "false"}
    assert adapt(StandInLlama(native, metadata, 266, 267)).decode(ids) == " the thes"


def test_llama_cpp_tokens_without_bytes_are_an_error():
    native = MockTokenizer([b"a", b"b" * 40], ["<s>", "</s>"])
    with pytest.raises(TokenizerError, match="no bytes for token 1"):
        adapt(StandInLlama(native, {"tokenizer.ggml.model": "bert"}, 2, 3))


# All of them.


def test_adapt_takes_own_tokenizers_and_refuses_others():
    tokenizer = MockTokenizer()
    assert adapt(tokenizer) is tokenizer
    with pytest.raises(TokenizerError, match=r"no adapter for builtins.dict; there are: tokenizers.Tokenizer"):
        adapt({})


def test_bad_ids_and_texts():
    for adapted in (
        adapt(llama()),
        adapt(tiktoken.Encoding("t", pat_str=".", mergeable_ranks={b"a": 0}, special_tokens={})),
    ):
        with pytest.raises(TokenizerError, match="surrogate at character 1"):
            adapted.encode("a\ud800")
        for token_id in (-1, 10**6):
            with pytest.raises(TokenizerError, match="out of range"):
                adapted.decode([token_id])
    with pytest.raises(TokenizerError, match="out of range"):
        HuggingFaceTokenizer(llama(), SpecialTokens(eos=10**6))
    with pytest.raises(TokenizerError, match="at most 4194303"):
        adapt(tiktoken.Encoding("t", pat_str=".", mergeable_ranks={b"a": 0}, special_tokens={"<x>": 2**31}))
    with pytest.raises(TokenizerError, match="empty"):
        adapt(tokenizers.Tokenizer(models.BPE()))


@pytest.mark.parametrize("kind", KINDS)
def test_adapters_are_picklable(kind):
    adapted = adapt(KINDS[kind])
    copy = pickle.loads(pickle.dumps(adapted))
    assert copy.tokens_as_bytes() == adapted.tokens_as_bytes()
    assert copy.encode("the dogs").ids == adapted.encode("the dogs").ids
    assert copy.decode([1, 2, 3]) == adapted.decode([1, 2, 3])


def test_mock_tokenizer():
    tokenizer = MockTokenizer()
    text = 'Hello the {"é": 1}<tool>'
    encoding = tokenizer.encode(text)
    assert tokenizer.decode(encoding.ids, skip_special_tokens=False) == text
    assert encoding.tokens[0] == "Hello"
    assert tokenizer.id_to_token(encoding.ids[-1]) == "<tool>"
    assert text[slice(*encoding.offsets[-1])] == "<tool>"
    assert pickle.loads(pickle.dumps(tokenizer)).encode(text) == encoding
    assert masks(tokenizer).any()
    with pytest.raises(TokenizerError, match="no token for the byte 0x62"):
        MockTokenizer([b"a"]).encode("ab")
    with pytest.raises(TokenizerError, match="twice"):
        MockTokenizer([b"a", b"a"])
