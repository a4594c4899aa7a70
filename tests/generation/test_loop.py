"""The generation loop with small models: how it ends, what it reports, and what it refuses."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain import Grammar, GrammarCompiler, Matcher, Vocabulary
from constrain.backends import load_backend
from constrain.errors import ConstrainError
from constrain.generation import Statistics, beam_search, generate, generate_batch
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.languages.regular import byte_set, literal
from constrain.grammar.tokens import token_set
from constrain.sampling import Sampler
from constrain.tokenizers.mock import MockTokenizer

TOKENS = [bytes([b]) for b in range(256)] + [b"ab", b"ba", b"aab", b"</s>"]
EOS = len(TOKENS) - 1


class ByteTokenizer:
    def encode(self, text):
        return SimpleNamespace(ids=list(text.encode()))


class Table:
    """A model with the same logits at every step, which remembers what it was asked."""

    def __init__(self, logits=None, width=None, **favoured):
        self.row = (
            np.zeros(width or len(TOKENS), dtype=np.float32) if logits is None else np.asarray(logits, dtype=np.float32)
        )
        for name, logit in favoured.items():
            self.row[EOS if name == "eos" else ord(name)] = logit
        self.asked = []

    def logits(self, ids):
        self.asked.append(list(ids))
        return self.row


@pytest.fixture(scope="module")
def compiler():
    return GrammarCompiler(Vocabulary(TOKENS, eos_ids=[EOS], special_ids=[EOS]))


def run(compiler, grammar, model=None, **options):
    generation = generate(model or Table(), ByteTokenizer(), compiler.compile(grammar), **options)
    steps = list(generation)
    assert "".join(step.text for step in steps) == generation.text
    assert [step.token_id for step in steps] == generation.token_ids
    assert generation.statistics.tokens == len(steps) == len(generation.statistics.token_seconds)
    return generation


def test_ends_when_the_model_says_so(compiler):
    model = Table(a=2, b=1, eos=3)
    generation = run(compiler, Grammar.from_regex("a[ab]*"), model, sampler=Sampler(0), skip_forced=False)
    assert generation.text == "a"
    assert generation.statistics.finish_reason == "complete"
    assert model.asked == [[], [97]]


def test_ends_at_once_when_only_the_end_is_left(compiler):
    model = Table()
    generation = run(compiler, Grammar.from_choices(["xyz"]), model, prompt="p", skip_forced=False)
    assert generation.text == "xyz"
    assert generation.statistics.finish_reason == "complete"
    # The model is not asked what comes after the last token.
    assert model.asked == [[112], [112, 120], [112, 120, 121]]
    assert run(compiler, Grammar.from_choices([""])).statistics.tokens == 0


def test_prompt_as_ids(compiler):
    model = Table()
    run(compiler, Grammar.from_choices(["x", "y"]), model, prompt=(1, 2))
    assert model.asked == [[1, 2]]


def test_budget_before_and_after_the_text_is_whole(compiler):
    short = run(compiler, Grammar.from_choices(["hello"]), max_tokens=4, budget=False)
    assert (short.text, short.statistics.finish_reason) == ("hell", "length")
    with pytest.raises(ConstrainError, match=r"max_tokens is 4, but the shortest text .* takes 5 tokens"):
        generate(Table(), ByteTokenizer(), compiler.compile(Grammar.from_choices(["hello"])), max_tokens=4)
    enough = run(compiler, Grammar.from_choices(["hello"]), max_tokens=5)
    assert enough.statistics.finish_reason == "complete"
    # "aaa" is a whole string although the grammar could go on.
    greedy = run(compiler, Grammar.from_regex("c+"), Table(c=9), max_tokens=3, sampler=Sampler(0))
    assert (greedy.text, greedy.statistics.finish_reason) == ("ccc", "complete")
    assert list(greedy) == []


def test_characters_appear_when_their_bytes_are_all_there(compiler):
    generation = generate(Table(), ByteTokenizer(), compiler.compile(Grammar.from_choices(["é€"])))
    assert [step.text for step in generation] == ["", "é", "", "", "€"]
    cut = run(compiler, Grammar.from_choices(["é€"]), max_tokens=3, budget=False)
    assert cut.text == "é"


@settings(max_examples=30)
@given(
    st.sampled_from(["(ab|ba)*c", "[a-c]{2,7}", "a*b*", "(aab|ab)+", "(é|ß|[xy])+z"]),
    st.integers(0, 2**64 - 1),
    st.sampled_from([0.0, 0.7, 3.0]),
    st.integers(3, 40),
    st.booleans(),
)
def test_what_is_complete_is_in_the_language(compiler_cache, pattern, seed, temperature, most, budget):
    compiled = compiler_cache(pattern)
    sampler = Sampler(temperature, 0, 1.0, seed)
    generation = generate(Table(eos=3), ByteTokenizer(), compiled, max_tokens=most, sampler=sampler, budget=budget)
    list(generation)
    assert len(generation.token_ids) <= most
    assert generation.statistics.finish_reason == "complete" or not budget
    if generation.statistics.finish_reason == "complete":
        assert re.fullmatch(pattern, generation.text)
    else:
        assert len(generation.token_ids) == most


@pytest.fixture(scope="module")
def compiler_cache(compiler):
    return lambda pattern: compiler.compile(Grammar.from_regex(pattern))


def test_a_seed_repeats(compiler):
    grammar = Grammar.from_regex("[a-z]{30}")
    first, again, other = (run(compiler, grammar, sampler=Sampler(1.0, seed=s)).text for s in (4, 4, 5))
    assert first == again != other


def test_logits_wider_than_the_vocabulary(compiler):
    model = Table(width=len(TOKENS) + 700)
    model.row[len(TOKENS) :] = 99
    assert run(compiler, Grammar.from_choices(["ok"]), model, skip_forced=False).text == "ok"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Table(width=len(TOKENS) - 1), "logits for 259 tokens, but the vocabulary has 260"),
        (Table(logits=np.full(len(TOKENS), math.nan)), "NaN"),
        (Table(logits=np.full(len(TOKENS), -math.inf)), "-inf for every allowed"),
        (Table(logits=np.zeros((1, len(TOKENS)))), "one dimension"),
    ],
)
def test_unusable_logits(compiler, model, message):
    generation = generate(model, ByteTokenizer(), compiler.compile(Grammar.from_choices(["ok", "no"])))
    with pytest.raises(ConstrainError, match=message):
        next(generation)
    assert generation.statistics.finish_reason is None


def test_vocabulary_that_cannot_say_it():
    compiler = GrammarCompiler(Vocabulary([b"a", b"<eos>"], eos_ids=[1], special_ids=[1]))
    compiled = compiler.compile(Grammar.from_choices(["ab"]))
    with pytest.raises(ConstrainError, match="no text of the grammar was found that the tokens"):
        generate(Table(logits=[0, 0]), ByteTokenizer(), compiled)
    generation = generate(Table(logits=[0, 0]), ByteTokenizer(), compiled, budget=False)
    assert next(generation).text == "a"
    with pytest.raises(ConstrainError, match="no token of the vocabulary continues the text after 'a'"):
        next(generation)


def test_vocabulary_without_an_end(compiler):
    compiler = GrammarCompiler(Vocabulary([b"a", b"b"], eos_ids=[]))
    generation = generate(Table(logits=[1, 0]), ByteTokenizer(), compiler.compile(Grammar.from_regex("a{3}")))
    assert [step.text for step in generation] == ["a", "a", "a"]
    assert generation.statistics.finish_reason == "complete"


def test_max_tokens_out_of_range(compiler):
    with pytest.raises(ConstrainError, match="max_tokens must be at least 1"):
        generate(Table(), ByteTokenizer(), compiler.compile(Grammar.from_choices(["x"])), max_tokens=0)


def test_statistics_of_known_times():
    statistics = Statistics(tokens=201, token_seconds=[9.0, *(i / 100 for i in range(200, 0, -1))])
    assert statistics.seconds_to_first_token == 9.0
    assert math.isclose(statistics.mean_seconds_between_tokens, 1.005)
    assert statistics.p99_seconds_between_tokens == 1.98
    assert Statistics(mask_seconds=1.0, total_seconds=4.0).mask_share == 0.25
    for one in (Statistics(), Statistics(tokens=1, token_seconds=[1.0])):
        assert one.mean_seconds_between_tokens is one.p99_seconds_between_tokens is None
    assert Statistics().seconds_to_first_token is None


def test_times_add_up(compiler):
    statistics = run(compiler, Grammar.from_regex("[a-z]{20}")).statistics
    parts = statistics.mask_seconds, statistics.model_seconds, statistics.sample_seconds
    assert min(parts) > 0
    assert sum(parts) <= statistics.total_seconds
    assert sum(statistics.token_seconds) <= statistics.total_seconds


def test_special_tokens_of_a_grammar_are_forced_and_shown():
    tokenizer = MockTokenizer()
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    builder = GrammarBuilder()
    start = builder.nonterminal("start")
    parts = token_set(["<tool>"]), literal("true"), token_set(["<pad>"]), byte_set(b"xy"), token_set(["</s>"])
    builder.add(start, [builder.token(part) if "TokenSet" in repr(part) else builder.lexeme(part) for part in parts])
    compiled = GrammarCompiler(vocabulary).compile(Grammar(builder.finish(start)))

    class Model:
        asked = 0

        def logits(self, ids):
            self.asked += 1
            return np.zeros(vocabulary.size, np.float32)

    model = Model()
    steps = list(generate(model, tokenizer, compiled, max_tokens=20))
    assert "".join(step.text for step in steps)[:-1] == "<tool>true<pad>"
    assert [step.forced for step in steps[:3]] == [True] * 3
    assert model.asked <= 2


def test_a_grammar_that_is_not_compiled_is_said_to_be_none():
    backend = load_backend()
    grammar = Grammar.from_regex("a")
    message = r"takes a CompiledGrammar, not Grammar: GrammarCompiler\(vocabulary\)\.compile\(grammar\)"
    for call in (
        lambda: Matcher(grammar),
        lambda: generate(backend, backend.tokenizer, grammar),
        lambda: generate_batch(backend, backend.tokenizer, grammar, ["a"]),
        lambda: generate_batch(backend, backend.tokenizer, [grammar], ["a"]),
        lambda: beam_search(backend, backend.tokenizer, grammar, beams=2),
    ):
        with pytest.raises(TypeError, match=message):
            call()
