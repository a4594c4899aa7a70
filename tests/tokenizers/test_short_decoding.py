"""Decoding of short lists, whose texts are kept by id, against the join of the bytes of single tokens."""

from __future__ import annotations

import json
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_json_files import KINDS, bert_like, byte_level, llama_like

from constrain.errors import TokenizerError
from constrain.tokenizers.adapters import adapt
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json


def joined(tokenizer, ids, skip):
    parts = []
    for i in ids:
        data = tokenizer.token_bytes(i)
        if data is None:
            data = b"" if skip and i in tokenizer.special_ids else tokenizer.decode_bytes([i], skip)
        parts.append(data)
    data = b"".join(parts)
    if tokenizer.strips_leading_space:
        data = data.removeprefix(b" ")
    return data.decode("utf-8", "replace")


@pytest.fixture(scope="module", params=["small", "llama", "mistral", "deepseek"])
def tokenizer(request, small_json):
    content = small_json if request.param == "small" else KINDS[request.param]()
    return parse_tokenizer_json(json.dumps(content).encode())


def test_equal_to_the_bytes_of_each_token(tokenizer):
    having = [i for i in range(tokenizer.vocab_size) if tokenizer.id_to_token(i) is not None]
    assert not tokenizer.first_forms

    @settings(max_examples=150)
    @given(st.lists(st.sampled_from(having), max_size=40), st.booleans())
    def check(ids, skip):
        expected = joined(tokenizer, ids, skip)
        for _ in range(2):  # the second time the texts are known
            assert tokenizer.decode(ids, skip) == expected
        for form in (tuple(ids), iter(ids), np.array(ids, dtype=np.int64), list(map(np.int32, ids))):
            assert tokenizer.decode(form, skip_special_tokens=skip) == expected

    check()


def test_characters_in_pieces():
    tokenizer = parse_tokenizer_json(json.dumps(byte_level()).encode())
    of_byte = {tokenizer.token_bytes(i): i for i in range(tokenizer.vocab_size)}
    for data in ("naïve 😀 人".encode(), b"\xed\xa0\x80x", b"\xf0\x9f\x98", b"a\xffb\xc3", b"\xc3\xa9\xc3"):
        ids = [of_byte[bytes([byte])] for byte in data]
        for _ in range(2):
            assert tokenizer.decode(ids) == data.decode("utf-8", "replace")


@pytest.mark.parametrize(
    "bad", [-1, -2, 401, 10**6, 2**70, -(2**70), "x", None, 1.0, slice(0, 2), np.float64(1), [1]], ids=repr
)
def test_what_has_no_token_is_an_error_before_and_after(small_json, bad):
    tokenizer = parse_tokenizer_json(json.dumps(small_json).encode())
    for _ in range(2):
        for ids in ([bad, 2], [2, bad], [bad, bad], [bad]):
            with pytest.raises(TokenizerError):
                tokenizer.decode(ids)
        assert tokenizer.decode([2, 3, 4]) == joined(tokenizer, [2, 3, 4], True)


def test_special_tokens_are_shown_or_not_in_any_order(small_json):
    tokenizer = parse_tokenizer_json(json.dumps(small_json).encode())
    (special,) = tokenizer.special_ids
    ids = [*tokenizer.encode("The dog").ids, special]
    for skip in (True, False, 1, 0, "yes", "", None):
        assert tokenizer.decode(ids, skip) == ("The dog" if skip else "The dog<|endoftext|>")
        assert tokenizer.decode([special, special], skip) == ("" if skip else "<|endoftext|>" * 2)


def test_first_forms_stay():
    tokenizer = parse_tokenizer_json(json.dumps(bert_like()).encode())
    assert tokenizer.first_forms
    first = next(iter(tokenizer.first_forms))
    for _ in range(3):
        text = tokenizer.decode([first, first])
        assert text.startswith(tokenizer.first_forms[first].decode())
        assert text == tokenizer.decode((first, first))


def test_decoders_whose_tokens_depend_on_each_other():
    tokenizers = pytest.importorskip("tokenizers")
    hugging = tokenizers.Tokenizer.from_str(json.dumps(llama_like()))
    adapted = adapt(hugging)
    ids = hugging.encode("a ab b a", add_special_tokens=False).ids
    for _ in range(3):
        assert adapted.decode(ids) == hugging.decode(ids)
        assert adapted.decode(ids[1:]) == hugging.decode(ids[1:])


def test_threads_and_pickles(small_json):
    tokenizer = parse_tokenizer_json(json.dumps(small_json).encode())
    lists = [list(range(start, start + 20)) for start in range(0, 380, 7)]
    expected = [joined(tokenizer, ids, True) for ids in lists]
    results = []
    threads = [
        threading.Thread(target=lambda: results.append([tokenizer.decode(ids) for ids in lists])) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8
    data = pickle.dumps(tokenizer)
    assert len(data) < len(pickle.dumps(parse_tokenizer_json(json.dumps(small_json).encode()))) + 500
    assert [pickle.loads(data).decode(ids) for ids in lists] == expected
