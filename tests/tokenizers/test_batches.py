"""Batches as arrays, vocabularies as mappings, and counts."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from constrain.errors import TokenizerError
from constrain.tokenizers.batches import padded_batch
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.mock import MockTokenizer

TEXTS = ["The dog ran.", "", "The"]


@pytest.mark.parametrize("padding", ["left", "right"])
@pytest.mark.parametrize("truncation", ["left", "right"])
@pytest.mark.parametrize("most", [None, 2, 9])
def test_arrays_equal_those_of_tokenizers(small_json, padding, truncation, most):
    library = pytest.importorskip("tokenizers").Tokenizer.from_str(json.dumps(small_json))
    library.enable_padding(direction=padding, pad_id=5, pad_to_multiple_of=4)
    if most is not None:
        library.enable_truncation(most, direction=truncation)
    expected = library.encode_batch(TEXTS, add_special_tokens=False)
    tokenizer = parse_tokenizer_json(json.dumps(small_json).encode())
    batch = padded_batch(
        tokenizer.encode_batch(TEXTS),
        5,
        max_length=most,
        multiple_of=4,
        padding_side=padding,
        truncation_side=truncation,
    )
    assert batch["input_ids"].tolist() == [row.ids for row in expected]
    assert batch["attention_mask"].tolist() == [row.attention_mask for row in expected]
    assert batch["input_ids"].dtype == batch["attention_mask"].dtype == np.int64


def test_lengths_and_refusals():
    assert padded_batch([[1], []], 0, length=3)["input_ids"].tolist() == [[1, 0, 0], [0, 0, 0]]
    assert padded_batch([], 0)["input_ids"].shape == (0, 0)
    for call, message in (
        (lambda: padded_batch([[1, 2]], 0, length=1), "a row has 2 tokens, and length is 1"),
        (lambda: padded_batch([[1]], None), "has no token for padding"),
        (lambda: padded_batch([[1]], 0, multiple_of=0), "multiple_of must be 1 or more"),
        (lambda: padded_batch([[1]], 0, max_length=-1), "max_length must be 0 or more"),
        (lambda: padded_batch([[1]], 0, padding_side="up"), 'padding_side must be "left" or "right"'),
        (lambda: padded_batch([[1.5]], 0), "must be an integer"),
    ):
        with pytest.raises(TokenizerError, match=message):
            call()


def test_vocabulary_and_counts(small_json):
    library = pytest.importorskip("tokenizers").Tokenizer.from_str(json.dumps(small_json))
    tokenizer = parse_tokenizer_json(json.dumps(small_json).encode())
    assert tokenizer.get_vocab() == library.get_vocab(with_added_tokens=True)
    assert MockTokenizer().get_vocab()["</s>"] == MockTokenizer().eos_ids[0]
    text = "The dog<|endoftext|>"
    assert tokenizer.count_tokens(text) == len(tokenizer.encode(text))
    assert tokenizer.count_tokens(text, special="none") == len(tokenizer.encode_ordinary(text))
    rows = [tokenizer.encode(text).ids, []]
    assert tokenizer.decode_batch(rows) == ["The dog", ""]
    assert tokenizer.decode_batch(rows, skip_special_tokens=False) == [text, ""]


@pytest.mark.parametrize("threads", [None, 1, 2, 3, 50])
def test_threads_change_nothing(small_json, threads):
    tokenizer = parse_tokenizer_json(json.dumps(small_json).encode())
    texts = [" ".join(["The dog ran.", "naïve"][i % 2 :] * (i * 7919 % 300)) for i in range(20)]
    texts += ["", "The dog<|endoftext|>"]
    expected = [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_batch(texts, threads=threads) == expected
    plain = tokenizer.encode_batch(texts, special="none", threads=threads)
    assert plain[-1] == tokenizer.encode_ordinary(texts[-1]) != expected[-1]
    assert tokenizer.encode_batch([], threads=threads) == []
    # The first of several errors, as without threads.
    texts[7] += "\ud800"
    texts[15] += "a\ud800"
    with pytest.raises(TokenizerError, match=f"lone surrogate at character {len(texts[7]) - 1},"):
        tokenizer.encode_batch(texts, threads=threads)


class Watched(MockTokenizer):
    """Notes which threads encode."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def encode(self, text, add_special_tokens=False, **options):
        self.names.add(threading.current_thread().name)
        return super().encode(text, add_special_tokens, **options)


def test_threads_are_used_where_they_gain(monkeypatch):
    monkeypatch.setattr("constrain.tokenizers.threaded._cores", lambda: 3)
    here = {threading.current_thread().name}
    long = ["ab" * 600] * 30
    for texts, gain, threads, is_shared in (
        (long, True, None, True),
        (long, False, None, False),  # a tokenizer that does not say that it lets threads run
        (long, False, 2, True),
        (long, True, 1, False),
        (long[:1], True, None, False),
        (["ab"] * 20_000, True, None, False),
    ):
        tokenizer = Watched()
        tokenizer.lets_threads_run = gain
        before = set(threading.enumerate())
        tokenizer.encode_batch(texts, threads=threads)
        assert (tokenizer.names != here) == is_shared
        assert not [thread for thread in threading.enumerate() if thread not in before and "encode" in thread.name]
    for threads, message in ((0, "threads must be 1 or more"), (-1, "1 or more"), (1.5, "integer"), ("2", "integer")):
        with pytest.raises(TokenizerError, match=message):
            MockTokenizer().encode_batch(["a"], threads=threads)
