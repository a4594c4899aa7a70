"""Decoding of long lists of ids against the join of single tokens."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.errors import TokenizerError
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json


@pytest.fixture(scope="module")
def tokenizer(small_json):
    return parse_tokenizer_json(json.dumps(small_json).encode())


def test_equal_to_the_bytes_of_each_token(tokenizer):
    @settings(max_examples=50)
    @given(st.lists(st.integers(0, tokenizer.vocab_size - 1), min_size=90, max_size=400), st.booleans())
    def check(ids, skip):
        expected = b"".join(
            tokenizer.token_bytes(i) or (b"" if skip else tokenizer.id_to_token(i).encode()) for i in ids
        )
        for form in (
            ids,
            tuple(ids),
            iter(ids),
            np.array(ids),
            np.array(ids, dtype=np.uint16),
            np.array(ids[::-1])[::-1],
        ):
            assert tokenizer.decode_bytes(form, skip_special_tokens=skip) == expected
        assert tokenizer.decode(ids, skip_special_tokens=skip) == expected.decode("utf-8", "replace")

    check()


@pytest.mark.parametrize("bad", [-1, 401, 2**31, 2**63, 2**64, -(2**70)])
@pytest.mark.parametrize("count", [5, 500])
def test_an_id_without_a_token_is_named(tokenizer, bad, count):
    with pytest.raises(TokenizerError, match=f"id {bad} "):
        tokenizer.decode([1] * count + [bad, 2])


@pytest.mark.parametrize("count", [5, 500])
def test_what_is_no_number(tokenizer, count):
    with pytest.raises((TypeError, ValueError)):
        tokenizer.decode([1] * count + ["x"])


def test_threads_share_the_tables(small_json):
    tokenizer = parse_tokenizer_json(json.dumps(small_json).encode())
    ids = list(range(256)) * 20
    expected = tokenizer.decode(ids)
    results = []
    threads = [threading.Thread(target=lambda: results.append(tokenizer.decode(ids))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8
