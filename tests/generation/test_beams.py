"""Beam search by all texts of small grammars, and the log-probabilities of prompts."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from constrain import Grammar, GrammarCompiler, Matcher, Vocabulary
from constrain.errors import ConstrainError
from constrain.generation import beam_search, prompt_log_probabilities
from constrain.tokenizers.mock import MockTokenizer

TOKENS = [bytes([byte]) for byte in b"abcd"] + [b"ab", b"cd", b"bc", b"</s>"]
SIZE = len(TOKENS)
EOS = SIZE - 1


class ByteTokenizer:
    def encode(self, text):
        return SimpleNamespace(ids=[b"abcd".index(byte) for byte in text.encode()])


class Hashed:
    """A model whose logits depend on everything before."""

    def __init__(self, seed=0, size=SIZE):
        self.seed, self.size = seed, size

    def logits(self, ids):
        return np.random.default_rng([self.seed, *ids, len(ids)]).normal(0, 2, self.size).astype(np.float32)


def log_softmax(row):
    values = row.astype(np.float64) - row.max()
    return values - math.log(np.exp(values).sum())


def all_texts(model, compiled, prompt, most):
    """Every way to write a text of the grammar, and how likely the model finds it with its end."""
    found = {}

    def go(ids, total, matcher):
        values = log_softmax(model.logits([*prompt, *ids]))
        if matcher.is_accepting():
            found[ids] = total + values[EOS]
        for token in range(EOS):
            if len(ids) < most and matcher.fork().accept_token(token):
                follow = matcher.fork()
                follow.accept_token(token)
                go((*ids, token), total + values[token], follow)

    go((), 0.0, Matcher(compiled))
    return found


@pytest.fixture(scope="module")
def compiler():
    return GrammarCompiler(Vocabulary(TOKENS, eos_ids=[EOS], special_ids=[EOS]))


@pytest.mark.parametrize("pattern", ["[abcd]{2,4}", "(ab|bc|cd)*", "a(b|c)*d"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_wide_beams_find_the_most_likely_texts(compiler, pattern, seed):
    compiled, model = compiler.compile(Grammar.from_regex(pattern)), Hashed(seed)
    expected = all_texts(model, compiled, (0,), 5)
    best = sorted(expected, key=expected.__getitem__, reverse=True)[:6]
    # As many beams as there are texts: nothing is lost on the way.
    found = beam_search(
        model,
        ByteTokenizer(),
        compiled,
        prompt=[0],
        beams=1000,
        max_tokens=6,
        length_penalty=0.0,
        early_stopping="never",
    )
    whole = [beam for beam in found if len(beam.token_ids) <= 5][:6]
    assert [beam.token_ids for beam in whole] == best
    for beam in whole:
        assert beam.log_probability == pytest.approx(expected[beam.token_ids], abs=1e-5)
        assert beam.score == beam.log_probability
        assert beam.finish_reason == "complete"
        assert beam.text == b"".join(TOKENS[token] for token in beam.token_ids).decode()


def test_one_beam_is_greedy_and_a_budget_completes_texts(compiler):
    compiled, model = compiler.compile(Grammar.from_regex("(abcd)+")), Hashed(4)
    for most in (4, 5, 9):
        (beam,) = beam_search(model, ByteTokenizer(), compiled, beams=1, max_tokens=most)
        assert beam.finish_reason == "complete"
        assert len(beam.text) % 4 == 0
        assert len(beam.token_ids) <= most
    (cut,) = beam_search(model, ByteTokenizer(), compiled, beams=1, max_tokens=1, budget=False)
    assert cut.finish_reason == "length"
    with pytest.raises(ConstrainError):
        beam_search(model, ByteTokenizer(), compiled, beams=1, max_tokens=1)


def test_a_long_text_by_its_penalty(compiler):
    compiled, model = compiler.compile(Grammar.from_regex("a{1,6}")), Hashed(5)
    lengths = [
        np.mean([len(b.token_ids) for b in beam_search(model, ByteTokenizer(), compiled, beams=8, max_tokens=8,
                                                       length_penalty=penalty)[:1]])
        for penalty in (-2.0, 0.0, 3.0)
    ]  # fmt: skip
    assert lengths[0] <= lengths[1] <= lengths[2]
    assert lengths[0] < lengths[2]


def test_without_a_token_that_ends_a_text():
    compiler = GrammarCompiler(Vocabulary(TOKENS[:-1]))
    found = beam_search(Hashed(1, EOS), ByteTokenizer(), compiler.compile(Grammar.from_choices(["ab", "cd"])), beams=4)
    assert {beam.text for beam in found} == {"ab", "cd"}
    assert all(beam.finish_reason == "complete" for beam in found)


def test_logits_beyond_the_vocabulary(compiler):
    class Padded(Hashed):
        """The last logit belongs to no token; the model finds it far more likely than any."""

        def logits(self, ids):
            return np.append(super().logits(ids), self.last).astype(np.float32)

    compiled, model = compiler.compile(Grammar.from_regex("ab|cd")), Padded()
    tokenizer = ByteTokenizer()
    model.last = -np.inf
    plain = beam_search(model, tokenizer, compiled, beams=2, max_tokens=4)
    model.last = 1e4
    far = beam_search(model, tokenizer, compiled, beams=2, max_tokens=4)
    assert [beam.token_ids for beam in far] == [beam.token_ids for beam in plain]
    model.last = np.nan
    with pytest.raises(ConstrainError, match="contain NaN"):
        beam_search(model, tokenizer, compiled, beams=2, max_tokens=4)


def test_free_text():
    tokenizer = MockTokenizer()
    model = Hashed(2, tokenizer.vocab_size)
    found = beam_search(model, tokenizer, None, prompt="Hello", beams=3, max_tokens=4)
    assert len(found) == 3
    assert [beam.score for beam in found] == sorted((beam.score for beam in found), reverse=True)
    assert len({beam.token_ids for beam in found}) == 3


def test_what_is_refused(compiler):
    compiled = compiler.compile(Grammar.from_regex("a+"))
    for options, words in (
        ({"beams": 0}, "beams must be from 1 to 1,000, not 0"),
        ({"beams": 1001}, "beams must be from 1 to 1,000, not 1001"),
        ({"beams": 1.5}, "beams must be an integer"),
        ({"max_tokens": 0}, "max_tokens must be"),
        ({"length_penalty": math.inf}, "length_penalty"),
        ({"length_penalty": math.nan}, "length_penalty must be between -40 and 40, not nan"),
        ({"length_penalty": 400}, "length_penalty must be between -40 and 40, not 400"),
        ({"early_stopping": "soon"}, "early_stopping"),
    ):
        with pytest.raises(ConstrainError, match=words):
            beam_search(Hashed(), ByteTokenizer(), compiled, **options)
    with pytest.raises(ConstrainError, match="needs a whole tokenizer"):
        beam_search(Hashed(), ByteTokenizer(), None)
    with pytest.raises(ConstrainError, match=r"shape \(3,\) for 8 tokens"):
        beam_search(Hashed(0, 3), ByteTokenizer(), compiled)

    class Full(Hashed):
        max_seq_len = 2

    with pytest.raises(ConstrainError, match="no room for more"):
        beam_search(Full(), ByteTokenizer(), compiled, prompt=[0, 1])


def test_the_log_probabilities_of_a_prompt():
    model = Hashed(7)
    ids = [0, 3, 2, 5]
    found = prompt_log_probabilities(model, ByteTokenizer(), ids, top=2)
    assert [token.token_id for token in found] == ids
    assert found[0].log_probability is None
    for place in range(1, 4):
        values = log_softmax(model.logits(ids[:place]))
        assert found[place].log_probability == pytest.approx(values[ids[place]])
        assert [token for token, _ in found[place].top] == np.argsort(-values)[:2].tolist()
        assert found[place].top[0][1] == pytest.approx(values.max())

    class AtOnce(Hashed):
        def prompt_logits(self, ids):
            return np.stack([super(AtOnce, self).logits(ids[:end]) for end in range(1, len(ids) + 1)])

        def logits(self, ids):
            raise AssertionError("asked token by token")

    assert prompt_log_probabilities(AtOnce(7), ByteTokenizer(), ids, top=2) == found
    assert prompt_log_probabilities(model, ByteTokenizer(), []) == []
    with pytest.raises(ConstrainError, match="top must be 0"):
        prompt_log_probabilities(model, ByteTokenizer(), ids, top=-1)
    with pytest.raises(ConstrainError, match="the prompt has the token 99"):
        prompt_log_probabilities(model, ByteTokenizer(), [0, 99])
