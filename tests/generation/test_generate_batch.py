"""Batches: rows of different prompts and grammars, together and one after the other."""

from __future__ import annotations

import re

import numpy as np
import pytest

from constrain import Grammar, GrammarCompiler, Vocabulary
from constrain.errors import ConstrainError
from constrain.generation import generate, generate_batch
from constrain.sampling import Sampler
from constrain.tokenizers.mock import MockTokenizer

PATTERNS = ["[a-d]{3,9}", "(ab|ba)+c", "x", "yes|no|maybe so", "[0-9]{1,3}(,[0-9]{3})*"]
PROMPTS = ["one", "", "a longer prompt", "q", "7"]


class Hashed:
    """Logits that depend on the last three tokens."""

    def __init__(self, size):
        self.size = size
        self.asked = []

    def logits(self, ids):
        self.asked.append(len(ids))
        return np.random.default_rng([*(ids[-3:] or [0]), len(ids)]).normal(size=self.size).astype(np.float32) * 3


class HashedBatch(Hashed):
    can_batch = True

    def __init__(self, size):
        super().__init__(size)
        self.calls = []

    def logits_batch(self, contexts):
        self.calls.append([context is not None for context in contexts])
        rows = [np.full(self.size, np.nan) if context is None else self.logits(context) for context in contexts]
        return np.array(rows, np.float32)


@pytest.fixture(scope="module")
def tokenizer():
    return MockTokenizer()


@pytest.fixture(scope="module")
def grammars(tokenizer):
    compiler = GrammarCompiler(Vocabulary.from_tokenizer(tokenizer))
    return [compiler.compile(Grammar.from_regex(pattern)) for pattern in PATTERNS]


def sampler(seed=3):
    return Sampler(1.0, 0, 1.0, seed, repetition_penalty=1.2)


@pytest.mark.parametrize("overlap", [None, True])
@pytest.mark.parametrize("skip_forced", [True, False])
def test_rows_do_not_depend_on_each_other(tokenizer, grammars, overlap, skip_forced):
    options = {"max_tokens": 30, "skip_forced": skip_forced}
    together = HashedBatch(tokenizer.vocab_size)
    batch = generate_batch(
        together, tokenizer, grammars, PROMPTS, sampler=sampler(), overlap=overlap, threads=2, **options
    )
    pieces = [""] * len(PROMPTS)
    for row, step in batch:
        pieces[row] += step.text
    assert pieces == batch.texts
    one_by_one = generate_batch(
        Hashed(tokenizer.vocab_size), tokenizer, grammars, PROMPTS, sampler=sampler(), **options
    )
    rows = [row for row, _ in one_by_one]
    assert rows == sorted(rows)
    assert one_by_one.texts == batch.texts
    assert one_by_one.token_ids == batch.token_ids
    alone = generate(
        Hashed(tokenizer.vocab_size), tokenizer, grammars[0], prompt=PROMPTS[0], sampler=sampler(), **options
    )
    assert "".join(step.text for step in alone) == batch.texts[0]
    for text, pattern, statistics in zip(batch.texts, PATTERNS, batch.statistics, strict=True):
        assert statistics.finish_reason == "complete"
        assert re.fullmatch(pattern, text)
        assert statistics.tokens == len(statistics.token_seconds)
        assert statistics.total_seconds > 0
    # A row that is over is not asked about any more, and in the end nobody is.
    assert [sum(call) for call in together.calls] == sorted((sum(call) for call in together.calls), reverse=True)
    assert all(any(call) for call in together.calls)


def test_free_text_beside_grammars(tokenizer, grammars):
    batch = generate_batch(
        HashedBatch(tokenizer.vocab_size), tokenizer, [None, grammars[1]], ["a", "b"], max_tokens=12, sampler=sampler()
    )
    list(batch)
    assert batch.statistics[0].finish_reason in ("length", "complete")
    assert len(batch.token_ids[0]) > 0
    assert re.fullmatch(PATTERNS[1], batch.texts[1])


def test_one_grammar_for_all_and_stop_strings(tokenizer, grammars):
    batch = generate_batch(
        HashedBatch(tokenizer.vocab_size), tokenizer, grammars[0], ["a", "b", "c"], stop=["d"], sampler=sampler(5)
    )
    list(batch)
    for text, statistics in zip(batch.texts, batch.statistics, strict=True):
        assert "d" not in text
        assert statistics.finish_reason in ("stop", "complete")
    assert "stop" in {statistics.finish_reason for statistics in batch.statistics}


def test_one_row_is_cancelled_and_the_others_go_on(tokenizer, grammars):
    batch = generate_batch(
        HashedBatch(tokenizer.vocab_size), tokenizer, grammars[0], ["a", "b"], sampler=sampler(), max_tokens=20
    )
    next(batch)
    batch.cancel(1)
    list(batch)
    assert batch.statistics[1].finish_reason == "cancelled"
    assert batch.statistics[0].finish_reason == "complete"


@pytest.mark.parametrize(
    ("prompts", "message"),
    [([], "at least one prompt"), ("abc", "a sequence of at least one prompt"), (["a"], "5 grammars for 1 prompts")],
)
def test_prompts_and_grammars_that_do_not_fit(tokenizer, grammars, prompts, message):
    with pytest.raises(ConstrainError, match=message):
        generate_batch(HashedBatch(tokenizer.vocab_size), tokenizer, grammars, prompts)


def test_grammars_of_different_vocabularies(tokenizer, grammars):
    other = GrammarCompiler(Vocabulary([b"a"] * 300)).compile(Grammar.from_regex("a"))
    with pytest.raises(ConstrainError, match="one vocabulary"):
        generate_batch(HashedBatch(tokenizer.vocab_size), tokenizer, [grammars[0], other], ["", ""])


def test_logits_of_another_shape(tokenizer, grammars):
    model = HashedBatch(tokenizer.vocab_size)
    model.logits_batch = lambda contexts: np.zeros((1, tokenizer.vocab_size), np.float32)
    with pytest.raises(ConstrainError, match=r"logits of shape \(1, \d+\) for 2 rows"):
        list(generate_batch(model, tokenizer, grammars[0], ["", ""]))
