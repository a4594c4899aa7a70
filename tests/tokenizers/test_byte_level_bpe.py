"""Byte-level BPE against the reference libraries, id for id, and against an obvious twin."""

from __future__ import annotations

import copy
import json
import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
import tiktoken
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from processor_time import processor_time
from tiktoken.load import load_tiktoken_bpe
from tokenizer_texts import CORPUS, PIECES, TEXTS, naive_merge, pieces_of

from constrain.errors import TokenizerError
from constrain.tokenizers import load_tokenizer
from constrain.tokenizers.formats.rank_encodings import ENCODINGS, RankEncoding
from constrain.tokenizers.formats.tiktoken_file import tokenizer_from_ranks
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.splitting.patterns import find_regex

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTION + (r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": LLAMA3,
    "qwen2": LLAMA3.replace("{1,3}", ""),
    "cl100k": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k": "|".join(
        [
            rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTION}?",
            rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTION}?",
            r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ]
    ),
}
BYTES = {bytes((byte,)): byte for byte in range(256)}


def with_pattern(content, regex):
    """The ``tokenizer.json`` with another split pattern."""
    content = copy.deepcopy(content)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, byte_level]}
    return content


@pytest.mark.parametrize("name", PATTERNS)
def test_pieces_equal_those_of_the_regex(name):
    # Ranks that merge every piece of the text whole show where tiktoken's regex engine cuts.
    @settings(max_examples=150)
    @given(TEXTS)
    @example("a\n  ")
    @example("日A日Ab 's'S")
    def check(text):
        pieces = pieces_of(text, name)
        assert b"".join(pieces) == text.encode()
        assert all(pieces)
        ranks = {**BYTES, **{piece: 256 + i for i, piece in enumerate(dict.fromkeys(p for p in pieces if len(p) > 1))}}
        reference = tiktoken.Encoding("t", pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens={})
        assert reference.encode_ordinary(text) == [ranks[piece] for piece in pieces]

    check()


def test_every_character_is_cut_like_in_the_reference():
    # Each code point between two letters, and after a digit: shows its class in full.
    text = "".join(f"a{chr(code)}b1{chr(code)} " for code in range(0x20000) if not 0xD800 <= code < 0xE000)
    for name in ("llama3", "gpt2"):
        reference = tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERNS[name]), "isolated")
        assert [p.encode() for p, _ in reference.pre_tokenize_str(text)] == pieces_of(text, name)


@pytest.mark.parametrize("name", [name for name in PATTERNS if name != "cl100k"])
def test_small_vocabulary_equals_tokenizers(small_json, name):
    content = json.dumps(with_pattern(small_json, PATTERNS[name]))
    reference, ours = tokenizers.Tokenizer.from_str(content), parse_tokenizer_json(content.encode())
    assert find_regex(PATTERNS[name]).name == name

    @settings(max_examples=150)
    @given(TEXTS)
    def check(text):
        expected, got = reference.encode(text, add_special_tokens=False), ours.encode(text)
        assert got.ids == expected.ids
        assert got.tokens == expected.tokens
        assert got.offsets == expected.offsets
        assert ours.decode(got.ids, skip_special_tokens=False) == text
        assert ours.decode(got.ids) == reference.decode(expected.ids)

    check()


def test_small_ranks_equal_tiktoken_and_the_naive_twin(small_vocabulary):
    ranks = {token: rank for rank, token in enumerate(small_vocabulary[0])}
    special = {"<|endoftext|>": len(ranks) + 3}
    known = RankEncoding("gpt2", len(ranks), special, ("<|endoftext|>",))
    ours = tokenizer_from_ranks({rank: token for token, rank in ranks.items()}, known)
    reference = tiktoken.Encoding("t", pat_str=PATTERNS["gpt2"], mergeable_ranks=ranks, special_tokens=special)
    assert ours.vocab_size == reference.n_vocab == len(ranks) + 4
    assert ours.token_bytes(len(ranks)) is None, "an id between the ranks and the special tokens"

    @settings(max_examples=120)
    @given(TEXTS)
    def check(text):
        got = ours.encode(text).ids
        assert got == reference.encode(text, allowed_special="all")
        if "<|endoftext|>" not in text:
            twin = [part for piece in pieces_of(text, "gpt2") for part in naive_merge(piece, ranks)]
            assert [ours.token_bytes(token_id) for token_id in got] == twin

    check()


@settings(max_examples=60)
@given(st.integers(30, 400), st.integers(0, 2**32 - 1))
def test_long_pieces_merge_like_short_ones(length, seed):
    # Pieces above 48 bytes go another way through the kernel.
    rng = random.Random(seed)
    alphabet = "ab" if seed % 2 else "abcdefé"
    ranks = dict(BYTES)
    while len(ranks) < 330:
        token = rng.choice(list(ranks)[256:] or [b"a"]) + rng.choice(alphabet).encode()
        ranks.setdefault(token, len(ranks))
    text = "".join(rng.choice(alphabet) for _ in range(length))
    ours = tokenizer_from_ranks({rank: token for token, rank in ranks.items()}, RankEncoding("gpt2", 0, {}, ()))
    reference = tiktoken.Encoding("t", pat_str=PATTERNS["gpt2"], mergeable_ranks=ranks, special_tokens={})
    assert ours.encode(text).ids == reference.encode_ordinary(text)


@pytest.mark.parametrize("name", ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"])
def test_rank_files_equal_tiktoken(data_folder, name):
    path = data_folder / "vocab" / f"{name}.tiktoken"
    ours, known = load_tokenizer(path), ENCODINGS[name]
    regex = PATTERNS[known.split]
    reference = tiktoken.Encoding(
        name, pat_str=regex, mergeable_ranks=load_tiktoken_bpe(str(path)), special_tokens=known.special
    )
    assert ours.vocab_size == reference.n_vocab

    @settings(max_examples=150)
    @given(TEXTS)
    def check(text):
        ids = ours.encode(text).ids
        assert ids == reference.encode(text, allowed_special="all")
        assert ours.decode(ids, skip_special_tokens=False) == text

    check()
    long = mixed_text(200_000)
    assert ours.encode(long).ids == reference.encode(long, allowed_special="all")


def test_llama3_equals_tokenizers(llama3_json):
    reference, ours = tokenizers.Tokenizer.from_file(str(llama3_json)), load_tokenizer(llama3_json)

    @settings(max_examples=150)
    @given(TEXTS)
    def check(text):
        expected = reference.encode(text, add_special_tokens=False)
        assert ours.encode(text).ids == expected.ids

    check()
    long = mixed_text(200_000)
    assert ours.encode(long).ids == reference.encode(long, add_special_tokens=False).ids


def test_both_files_of_llama3_agree(data_folder, llama3_json):
    ranks, content = load_tokenizer(data_folder / "vocab" / "llama3.tiktoken"), load_tokenizer(llama3_json)
    text = mixed_text(100_000).replace("<|endoftext|>", "")
    assert ranks.encode(text).ids == content.encode(text).ids
    assert ranks.tokens_as_bytes()[:128000] == content.tokens_as_bytes()
    assert ranks.vocab_size == 128256
    assert ranks.eos_ids == (128001, 128009)
    assert ranks.encode("<|begin_of_text|>hi", add_special_tokens=True).ids[:2] == [128000, 128000]


def mixed_text(length: int) -> str:
    rng = random.Random(7)
    return "".join(rng.choice(PIECES) for _ in range(length // 3))


@pytest.mark.parametrize("unit", ["a", " ", "\n", "ab", "1", "é", "!", "A日"])
def test_repetition_is_not_quadratic(small_json, unit):
    tokenizer = parse_tokenizer_json(json.dumps(with_pattern(small_json, PATTERNS["o200k"])).encode())
    tokenizer.encode(unit)
    text = unit * (1_000_000 // len(unit.encode()))
    with processor_time() as spent:
        ids = tokenizer.encode(text).ids
    assert spent.seconds < 3, "linear takes 0.1 to 0.5 s, quadratic takes hours"
    assert tokenizer.decode(ids) == text


def test_tokens_that_merges_do_not_reach(small_json):
    # Without ignore_merges such a token is never made; with it, it is made of the piece that equals it.
    content = copy.deepcopy(small_json)
    content["model"]["vocab"]["xyzzy"] = 400
    content["added_tokens"] = []
    for ignore in (False, True):
        content["model"]["ignore_merges"] = ignore
        reference = tokenizers.Tokenizer.from_str(json.dumps(content))
        ours = parse_tokenizer_json(json.dumps(content).encode())
        for _ in range(2):  # the second time what is known about the token comes from the first
            for text in ("xyzzy", "xyzzy xyzzy", "the xyzzyx"):
                assert ours.encode(text).ids == reference.encode(text, add_special_tokens=False).ids


def test_bytes_of_tokens(small_json):
    tokenizer = parse_tokenizer_json(json.dumps(small_json).encode())
    table = tokenizer.tokens_as_bytes()
    assert len(table) == tokenizer.vocab_size == 401
    assert table[400] is None
    assert tokenizer.special_ids == {400}
    for token_id, data in enumerate(table):
        assert tokenizer.token_bytes(token_id) == data
        assert tokenizer.token_to_id(tokenizer.id_to_token(token_id)) == token_id
    assert table[32] == b" "
    assert tokenizer.id_to_token(32) == "Ġ"
    assert tokenizer.token_to_id("no such token") is None
    for wrong in (-1, 401, 10**9):
        with pytest.raises(TokenizerError, match=r"0 to 400"):
            tokenizer.token_bytes(wrong)
        with pytest.raises(TokenizerError, match=r"0 to 400"):
            tokenizer.decode([wrong])


def test_special_tokens_in_output(small_json):
    tokenizer = parse_tokenizer_json(json.dumps(small_json).encode())
    ids = tokenizer.encode("a<|endoftext|>b").ids
    assert ids == [97, 400, 98]
    assert tokenizer.decode(ids) == "ab"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "a<|endoftext|>b"


def test_lone_surrogate_has_its_place(small_json):
    tokenizer = parse_tokenizer_json(json.dumps(small_json).encode())
    with pytest.raises(TokenizerError, match="character 15"):
        tokenizer.encode("a<|endoftext|>b\ud800c")


def test_a_byte_without_a_token(small_json):
    content = copy.deepcopy(small_json)
    del content["model"]["vocab"]["ÿ"]
    tokenizer = parse_tokenizer_json(json.dumps(content).encode())
    assert tokenizer.encode("abc").ids
    latin = {**content, "model": {**content["model"], "vocab": {"a": 0, "b": 1}, "merges": []}, "added_tokens": []}
    # What has no token is dropped, as by the library, and its neighbours meet.
    assert parse_tokenizer_json(json.dumps(latin).encode()).encode("aéb").ids == [0, 1]


def test_threads_and_pickling(small_json):
    tokenizer = parse_tokenizer_json(json.dumps(small_json).encode())
    texts = [CORPUS[i:] for i in range(60)]
    expected = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    fresh = pickle.loads(pickle.dumps(parse_tokenizer_json(json.dumps(small_json).encode())))
    with ThreadPoolExecutor(4) as pool:
        assert [encoding.ids for encoding in pool.map(fresh.encode, texts)] == expected
