"""The embedded model: small, fast, a probability distribution, and words rather than noise."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import processor_time
from tokenizer_texts import TEXTS

import constrain.demo
from constrain.demo.ngram import STEP
from constrain.demo.ngram_kernels import next_costs
from tools.demo_model.train import bits_per_byte

FOLDER = Path(constrain.demo.__file__).parent


@pytest.fixture(scope="module")
def demo():
    return constrain.demo.load()


def test_size_and_notice():
    files = [FOLDER / name for name in ("tokenizer.json", "model.npz")]
    assert sum(path.stat().st_size for path in files) <= 6_000_000
    notice = (FOLDER / "LICENSE-DATA").read_text("utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in notice


def test_loads_once_and_fits_its_tokenizer(demo):
    tokenizer, model = demo
    assert constrain.demo.load() is demo
    assert model.vocab_size == tokenizer.vocab_size
    assert len(tokenizer.eos_ids) == 1
    assert tokenizer.token_bytes(tokenizer.eos_ids[0]) is None


def test_tokenizer_equals_tokenizers(demo):
    tokenizer, _ = demo
    reference = tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer.json"))

    @settings(max_examples=100)
    @given(TEXTS)
    def check(text):
        assert tokenizer.encode(text).ids == reference.encode(text).ids

    check()


def test_no_token_reaches_across_a_quotation_mark(demo):
    tokenizer, _ = demo
    for data in tokenizer.tokens_as_bytes():
        if data is not None and b'"' in data:
            assert data.count(b'"') == 1
            assert data.lstrip(b" ").startswith(b'"')


def test_logits_are_log_probabilities(demo):
    tokenizer, model = demo

    @settings(max_examples=100)
    @given(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=8))
    def check(ids):
        logits = model.logits(ids)
        assert logits.dtype == np.float32
        assert logits.shape == (model.vocab_size,)
        assert math.isclose(np.exp(logits.astype(np.float64)).sum(), 1, abs_tol=1e-5)
        assert (logits == model.logits(np.array(ids, dtype=np.int32))).all()
        # No more than the order of the model has a say, and nothing before the end of a text.
        if len(ids) >= model.context_size:
            assert (logits == model.logits([3, *ids])).all()
        end = tokenizer.eos_ids[0]
        assert (model.logits([*ids, end]) == model.logits([])).all()

    check()


def test_quantized_costs_are_nearly_normalized_by_themselves(demo):
    # Were a weight or a child looked up in the wrong place, the sum before normalization would be off.
    tokenizer, model = demo
    for text in ("The", '{"name": "', '{"name":"John', "A person who", "xyzzy plugh", '{"price": 12'):
        context = np.array(tokenizer.encode(text).ids[-4:], dtype=np.int64)
        costs = np.empty(model.vocab_size, dtype=np.int32)
        next_costs(context, model._first, model._words, model._costs, model._weights, costs)
        assert 0.9 < np.exp(-STEP * costs).sum() < 1.1


def test_ids_out_of_range(demo):
    _, model = demo
    for wrong in (-1, model.vocab_size):
        with pytest.raises(ValueError, match="token ids must lie between"):
            model.logits([wrong])


def test_prefers_english_and_json_to_noise(demo):
    tokenizer, model = demo
    end = tokenizer.eos_ids[0]
    english = [
        "The dog ran across the street.",
        "He is a good man who works in the city.",
        "A small bird with a long tail.",
    ]
    records = [json.dumps({"name": "John Smith", "age": 31, "tags": ["small", "red"], "active": True})]
    records += [json.dumps(json.loads(records[0]), indent=2)]
    noise = ["Teh gdo nar rossac eht treets.", "xq zvkj wqpl mmrt"]
    assert bits_per_byte(model, tokenizer, english, end) < 2.2
    assert bits_per_byte(model, tokenizer, records, end) < 2.2
    assert bits_per_byte(model, tokenizer, noise, end) > 3.5


@pytest.mark.parametrize(
    "opening", ['{"description": "', '{"description":"', '{\n  "motto": "', '{"name": "Ada", "bio": "']
)
def test_strings_come_out_as_words(demo, opening):
    tokenizer, model = demo
    known = {word for text in _english(demo) for word in text}
    rng = np.random.default_rng(1)
    words: list[str] = []
    for _ in range(20):
        ids = tokenizer.encode(opening).ids
        start = len(ids)
        for _ in range(12):
            logits = model.logits(ids).astype(np.float64)
            likely = np.argsort(-logits, kind="stable")[:40]
            share = np.exp(logits[likely])
            ids.append(int(rng.choice(likely, p=share / share.sum())))
            if b'"' in (tokenizer.token_bytes(ids[-1]) or b'"'):
                break
        text = tokenizer.decode(ids[start:-1])
        words += [word for word in text.split()[:-1] if word.isalpha() and word.islower()]
    assert len(words) > 20
    assert sum(word in known for word in words) > 0.75 * len(words)


def _english(demo):
    """Words that are one token: the 8,000 or so that the model has seen most."""
    tokenizer, _ = demo
    for data in tokenizer.tokens_as_bytes():
        if data is not None and data.startswith(b" ") and data[1:].isalpha():
            yield [data[1:].decode()]


def test_fast_enough(demo):
    tokenizer, model = demo
    ids = tokenizer.encode('{"name": "John", "description": "A small').ids
    with processor_time() as spent:
        for _ in range(300):
            model.logits(ids)
    assert spent.seconds < 0.3, "0.05 ms each when alone on the machine; 1 ms is the limit"
