"""Chains of steps: each step against transformers or a twin written from its description, orders, and whole chains."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.errors import ConstrainError
from constrain.sampling import Sampler, steps
from constrain.sampling.chain.bad_texts import BadTexts
from constrain.sampling.chain.bad_words import BadWords
from constrain.sampling.chain.chain import ORDER, SamplerChain, steps_in_order
from constrain.sampling.chain.dry import DRY
from constrain.sampling.chain.logit_bias import LogitBias
from constrain.sampling.chain.min_p import MinP
from constrain.sampling.chain.min_tokens import MinTokens
from constrain.sampling.chain.mirostat import Mirostat
from constrain.sampling.chain.penalties import Penalties
from constrain.sampling.chain.step import Randomness
from constrain.sampling.chain.temperature import Temperature
from constrain.sampling.chain.top_k import TopK
from constrain.sampling.chain.top_n_sigma import TopNSigma
from constrain.sampling.chain.top_p import TopP
from constrain.sampling.chain.typical import Typical
from constrain.sampling.chain.xtc import XTC

WIDTH = 40
rows = st.lists(st.integers(-400, 400).map(lambda x: x / 50), min_size=WIDTH, max_size=WIDTH).map(np.float32)
histories = st.lists(st.integers(0, WIDTH - 1), max_size=12)


def left(step, logits, history=(), seed=0):
    return SamplerChain([step], seed).adjusted_logits(logits, history)


def softmax(x):
    weights = np.exp(np.float64(x) - np.max(x))
    return weights / weights.sum()


def kept(row):
    return set(np.flatnonzero(row > -np.inf).tolist())


@pytest.fixture(scope="module")
def library():
    pytest.importorskip("torch")
    return pytest.importorskip("transformers")


def of_library(processor, logits, history=()):
    torch = pytest.importorskip("torch")
    return processor(torch.tensor([list(history)], dtype=torch.long), torch.tensor(logits)[None].double())[0].numpy()


@given(rows, histories)
def test_steps_that_transformers_has(library, logits, history):
    distinct = logits + np.linspace(0, 0.001, WIDTH, dtype=np.float32)  # among equals transformers keeps others
    pairs = [
        (TopK(5), library.TopKLogitsWarper(5)),
        (TopP(0.7), library.TopPLogitsWarper(0.7)),
        (MinP(0.1), library.MinPLogitsWarper(0.1)),
        (Typical(0.6), library.TypicalLogitsWarper(0.6)),
        (Temperature(0.7), library.TemperatureLogitsWarper(0.7)),
    ]
    for step, processor in pairs:
        assert np.allclose(left(step, distinct), of_library(processor, distinct), atol=1e-5), type(step).__name__
    if history:
        processor = library.RepetitionPenaltyLogitsProcessor(1.3)
        assert np.allclose(left(Penalties(1.3, window=0), logits, history), of_library(processor, logits, history))
        words = [[3], [1, 2], history[-2:], [*history[-3:], 5], [7, 8, 9]]
        processor = library.NoBadWordsLogitsProcessor([list(word) for word in words], eos_token_id=None)
        assert np.allclose(left(BadWords(words), logits, history), of_library(processor, logits, history))


@given(
    rows, st.lists(st.sampled_from([b"ab", b"aa", b"aba", b"b"]), min_size=1, max_size=3), st.lists(st.integers(0, 9))
)
def test_bad_texts(logits, texts, history):
    tokens = [b"a", b"b", b"c", b"ab", b"ba", b"aba", b"cab", None, b"", b"aab"] + [b"c"] * (WIDTH - 10)
    text = b"".join(tokens[i] or b"" for i in history)
    # What would make one of the texts that is not there yet.
    refused = {
        i
        for i in range(WIDTH)
        for bad in texts
        if tokens[i] and bad in (text + tokens[i])[max(0, len(text) - len(bad) + 1) :]
    }
    assert kept(left(BadTexts(texts, tokens), logits, history)) == set(range(WIDTH)) - refused


def test_min_tokens_equals_transformers(library):
    logits = np.zeros(WIDTH, dtype=np.float32)
    processor = library.MinNewTokensLengthLogitsProcessor(2, 3, eos_token_id=[4, 6], device="cpu")
    chain = SamplerChain([MinTokens(3, [4, 6])], 0)
    history = [1, 2]
    for _ in range(5):
        ids, _ = chain.distribution(logits, history=history)
        assert set(ids.tolist()) == kept(of_library(processor, logits, history))
        history.append(chain.sample(logits, history=history))
    assert {4, 6} <= set(chain.distribution(logits, history=history)[0].tolist())
    always = SamplerChain([MinTokens(None, [4, 6])], 0)
    assert not {4, 6} & set(always.distribution(logits, history=[1] * 99)[0].tolist())
    # A grammar that is complete ends the text.
    assert always.sample(logits, np.array([0b1010000, 0], dtype=np.int32)) in (4, 6)
    # A shorter history is another text.
    assert not {4, 6} & set(SamplerChain([MinTokens(1, [4, 6])], 0).distribution(logits, history=[])[0].tolist())


def naive_dry(logits, history, multiplier, base, allowed, breakers):
    """As text-generation-webui has it: the matches of the last token, each followed backwards."""
    row = np.array(logits, dtype=np.float64)
    longest = {}
    if not history or history[-1] in breakers:
        return row
    for place in range(len(history) - 1):
        if history[place] != history[-1] or history[place + 1] in breakers:
            continue
        length = 1
        while place - length >= 0:
            token = history[-1 - length]
            if history[place - length] != token or token in breakers:
                break
            length += 1
        longest[history[place + 1]] = max(length, longest.get(history[place + 1], 0))
    for token, length in longest.items():
        if length >= allowed:
            row[token] -= multiplier * base ** (length - allowed)
    return row


@settings(max_examples=300)
@given(
    rows,
    st.lists(st.integers(0, 3), max_size=30),
    st.integers(1, 4),
    st.sets(st.integers(0, 3), max_size=2),
    st.integers(0, 12),
)
def test_dry(logits, history, allowed, breakers, window):
    step = DRY(0.8, 1.75, allowed, window, breakers)
    expected = naive_dry(logits, history[-window:] if window else history, 0.8, 1.75, allowed, breakers)
    assert np.allclose(left(step, logits, history), expected, atol=1e-4)


def test_dry_of_a_long_repetition_is_finite_and_linear():
    logits = np.zeros(WIDTH, dtype=np.float32)
    row = left(DRY(1.0, 2.0), logits, [1] * 20_000)
    assert row[1] < -1e29
    assert np.isfinite(row).all()


@given(rows, st.floats(0.1, 4))
def test_top_n_sigma(logits, n):
    x = np.float64(logits)
    mean = sum(x) / WIDTH
    sigma = math.sqrt(sum((value - mean) ** 2 for value in x) / WIDTH)
    sure = {i for i in range(WIDTH) if x[i] >= x.max() - n * sigma + 1e-9}
    possible = {i for i in range(WIDTH) if x[i] >= x.max() - n * sigma - 1e-9}
    found = kept(left(TopNSigma(n), logits))
    assert sure <= found <= possible
    assert found == kept(SamplerChain([Temperature(3.0), TopNSigma(n)], 0).adjusted_logits(logits)) or sure != possible
    assert kept(left(TopNSigma(0), logits)) == set(range(WIDTH))


@given(rows, st.floats(0.01, 0.5))
def test_xtc(logits, threshold):
    p = softmax(logits)
    order = sorted(range(WIDTH), key=lambda i: (-logits[i], i))
    above = [i for i in order if p[i] >= threshold]
    expected = set(order[len(above) - 1 :]) if len(above) > 1 else set(order)
    near = any(abs(p[i] - threshold) < 1e-9 for i in order)
    assert kept(left(XTC(1.0, threshold), logits)) == expected or near
    assert kept(left(XTC(0.0, threshold), logits)) == set(order)


def test_xtc_happens_as_often_as_it_says():
    logits = np.array([2.0, 1.9, -9.0], dtype=np.float32)
    chain = SamplerChain([XTC(0.3, 0.2)], 5)
    # Token 0 is left out in three of ten draws; else it has p = 0.525.
    drawn = [chain.sample(logits) for _ in range(20_000)]
    share = drawn.count(0) / len(drawn)
    assert abs(share - 0.7 * softmax(logits)[0]) < 0.012


@given(rows, st.floats(0.1, 2), st.floats(0.05, 3), st.floats(0.3, 3))
def test_dynamic_temperature(logits, temperature, spread, exponent):
    p = softmax(logits)
    entropy = -sum(x * math.log(x) for x in p if x > 0) / math.log(WIDTH)
    low, high = max(0.0, temperature - spread), temperature + spread
    expected = low + (high - low) * entropy**exponent
    found = left(Temperature(temperature, spread, exponent), logits)
    if expected > 0.01:
        assert np.allclose(found, np.float64(logits) / expected, rtol=1e-5, atol=1e-5)
    assert np.allclose(left(Temperature(temperature), logits), logits / temperature, rtol=1e-5, atol=1e-5)


def test_temperature_zero():
    assert kept(left(Temperature(0), [1, 3, 3, 2])) == {1}
    assert kept(left(Temperature(0.5, 0.5), [9, -900, -900])) == {0}  # no entropy, no temperature


@pytest.mark.parametrize(("tau", "eta"), [(5.0, 1e6), (0.0, 1e308), (1e308, 1e308), (5.0, 1e308)])
def test_mirostat_with_huge_numbers(tau, eta):
    chain = SamplerChain([Mirostat(tau, eta)], 3)
    logits = np.random.default_rng(1).normal(size=50)
    for _ in range(50):
        assert 0 <= chain.sample(logits) < 50


def test_mirostat():
    rng = np.random.default_rng(3)
    tau, eta = 3.0, 0.2
    chain = SamplerChain([Mirostat(tau, eta)], 11)
    mu, surprises = 2 * tau, []
    for _ in range(600):
        logits = rng.normal(0, 2.5, 200).astype(np.float32)
        p = softmax(logits)
        order = sorted(range(200), key=lambda i: (-p[i], i))
        count = max(1, next((i for i, token in enumerate(order) if -math.log2(p[token]) > mu), 200))
        ids, probabilities = chain.distribution(logits)
        assert set(ids.tolist()) == set(order[:count])
        token = chain.sample(logits)
        surprise = -math.log2(probabilities[ids.tolist().index(token)])
        mu -= eta * (surprise - tau)
        assert math.isclose(chain.steps[0].mu, mu, abs_tol=1e-9)
        surprises.append(surprise)
    assert abs(np.mean(surprises[100:]) - tau) < 0.1  # which is what it is for


def test_logit_bias():
    assert left(LogitBias({1: 2.5, 2: -math.inf}), [0.0, 1.0, 2.0]).tolist() == [0.0, 3.5, -math.inf]
    assert SamplerChain([LogitBias({0: -math.inf})], 0).sample([1.0, 2.0], np.array([1], dtype=np.int32)) == 0


@given(rows, histories)
def test_the_chain_in_the_order_of_the_sampler_has_its_distribution(logits, history):
    options = {"repetition_penalty": 1.2, "frequency_penalty": 0.1, "presence_penalty": 0.3, "min_p": 0.01}
    sampler = Sampler(0.7, 12, 0.9, 1, typical=0.95, logit_bias={3: 1.5, 4: -math.inf}, **options)
    chained = [Penalties(1.2, 0.1, 0.3), LogitBias({3: 1.5, 4: -math.inf}), Temperature(0.7), TopK(12)]
    chain = SamplerChain([*chained, TopP(0.9), MinP(0.01), Typical(0.95)], 1)
    mask = np.array([-2, 0b11111111], dtype=np.int32)
    ids, p = sampler.distribution(logits, mask, history)
    own_ids, own_p = chain.distribution(logits, mask, history)
    expected = dict(zip(ids.tolist(), p.tolist(), strict=True))
    found = dict(zip(own_ids.tolist(), own_p.tolist(), strict=True))
    # In another precision a token at the border of a cut may fall on the other side.
    if expected.keys() == found.keys():
        assert all(math.isclose(expected[i], found[i], rel_tol=1e-4) for i in found)
    else:
        assert len(expected.keys() ^ found.keys()) <= 3


def test_draws_follow_the_distribution_and_the_seed():
    logits = np.array([1.0, 0.5, -1.0, 2.0], dtype=np.float32)
    chain = SamplerChain([TopK(3)], 7)
    ids, p = chain.distribution(logits)
    draws = [chain.sample(logits) for _ in range(20_000)]
    expected = [len(draws) * x for x in p]
    assert sum((draws.count(i) - e) ** 2 / e for i, e in zip(ids.tolist(), expected, strict=True)) < 14  # p = 0.001
    again = SamplerChain([TopK(3)], 7)
    assert [again.sample(logits) for _ in range(50)] == draws[:50]
    rows_ = [chain.for_row(row) for row in (0, 1)]
    assert [rows_[0].sample(logits) for _ in range(50)] == draws[:50]
    assert [rows_[1].sample(logits) for _ in range(50)] != draws[:50]
    sample = again.sample_with_log_probabilities(logits, top=2)
    assert math.isclose(sample.log_probability, math.log(softmax(logits)[sample.token_id]), rel_tol=1e-9)
    assert [token for token, _ in sample.top] == [3, 0]
    # Known numbers of SplitMix64.
    assert [Randomness(1234567).uniform() for _ in range(2)] == [6457827717110365317 / 2**64 // 2**-53 * 2**-53] * 2


def test_the_order_is_said_by_name():
    named = {"top_k": TopK(1), "temperature": Temperature(2.0), "penalties": Penalties(50.0, window=0)}
    logits = np.array([3.0, 2.0, 1.0], dtype=np.float32)

    def first(order):
        return SamplerChain(steps_in_order(order, named), 0).sample(logits, history=[0])

    assert first(["penalties", "top_k"]) == 1
    assert first(["top_k", "penalties"]) == 0
    assert steps_in_order(["top_p", "temperature"], named) == [named["temperature"]]
    assert len(ORDER) == 13
    with pytest.raises(ConstrainError, match="no step is called 'topk'; there are: logit_bias, "):
        steps_in_order(["topk"], named)
    with pytest.raises(ConstrainError, match="'top_k' is there twice"):
        steps_in_order(["top_k", "top_k"], named)


def test_what_is_refused():
    wrong = [
        (lambda: XTC(1.5), "xtc_probability must be from 0 to 1"),
        (lambda: XTC("a"), "xtc_probability must be a number"),
        (lambda: DRY(1.0, 0.5), "dry_base must be a number from 1 up"),
        (lambda: DRY(1.0, allowed_length=0), "dry_allowed_length must be 1 or more"),
        (lambda: DRY(math.nan), "dry_multiplier"),
        (lambda: DRY(1.0, window=-1), "dry_window"),
        (lambda: TopNSigma(-1), "top_n_sigma"),
        (lambda: Mirostat(-1), "mirostat_tau"),
        (lambda: Temperature(-1), "temperature"),
        (lambda: Temperature(1, math.inf), "dynatemp_range"),
        (lambda: MinTokens(-1, []), "min_tokens"),
        (lambda: BadWords([[]]), "a word without tokens"),
        (lambda: BadTexts([b""], []), "a text without bytes"),
        (lambda: LogitBias({1: math.inf}), "the bias of token 1"),
        (lambda: SamplerChain([Mirostat(), TopK(1)]), "mirostat must be the last step"),
        (lambda: SamplerChain(["top_k"]), "must be a Step, not str"),
        (lambda: SamplerChain([]).sample_batch(np.zeros((2, 3))), "samples one row"),
        (lambda: SamplerChain([]).sample([math.nan]), "NaN"),
        (lambda: SamplerChain([]).sample([0.0], np.array([0], dtype=np.int32)), "allows no token"),
        (lambda: SamplerChain([]).sample([0.0], np.array([3], dtype=np.int32)), "has no logit"),
        (lambda: SamplerChain([]).sample([-math.inf]), "-inf for every"),
        (lambda: SamplerChain([]).for_row(-1), "row must be 0 or more"),
    ]
    for call, message in wrong:
        with pytest.raises(ConstrainError, match=message):
            call()


@pytest.mark.parametrize("history", [[1.5], [[1, 2]], ["a"], None, [2**40], {1: 2}], ids=str)
def test_a_history_that_is_none_is_refused(history):
    for sampler in (SamplerChain([Penalties(2.0)], 1), Sampler(1.0, seed=1, repetition_penalty=2.0)):
        with pytest.raises(ConstrainError, match="a history must be a sequence of token ids"):
            sampler.sample(np.zeros(4), None, history)


def test_looking_at_logits_does_not_say_what_the_prompt_is():
    row = np.array([0.0, 5.0, 1.0])
    chain, twin = (SamplerChain([MinTokens(2, [1]), Temperature(0)], 1) for _ in range(2))
    chain.adjusted_logits(row, [])
    chain.distribution(row, None, [])
    # Both have a prompt of three tokens and have generated none.
    assert chain.sample(row, None, [2, 2, 2]) == twin.sample(row, None, [2, 2, 2]) == 2


@pytest.mark.parametrize("temperature", [5e-324, 1e-320, 1e-300, 1e-40])
@pytest.mark.parametrize("row", [[1, 3, 3, -2], [-1, -3, -2, -5], [0, 0, 0, 0], [1e30, 3e30, -1e30, 0]])
@pytest.mark.filterwarnings("error")
def test_a_tiny_temperature_leaves_the_most_likely_tokens(temperature, row):
    logits = np.array(row, dtype=np.float32)
    best = np.flatnonzero(logits == logits.max())
    chain = SamplerChain([Temperature(temperature)], 1)
    ids, probabilities = chain.distribution(logits)
    assert np.allclose(probabilities[np.isin(ids, best)], 1 / len(best))
    assert chain.sample(logits) in best
    alone = steps.temperature(logits, temperature)
    assert np.allclose(steps.softmax(alone)[best], 1 / len(best))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SamplerChain(TopK(1)), "a chain takes a list of steps, not TopK"),
        (lambda: BadWords([1]), "bad_words: a word must be a sequence of token ids, not 1"),
        (lambda: BadWords(1), "bad_words: a word must be a sequence of token ids, not 1"),
        (lambda: LogitBias([1]), "logit_bias must be a mapping of token ids to numbers, not list"),
        (lambda: LogitBias({-1: 1.0}), "logit_bias: -1 is not a token id"),
    ],
)
def test_steps_of_other_things(make, said):
    with pytest.raises(ConstrainError, match=said):
        make()


@pytest.mark.parametrize("token", [-1, 3])
def test_a_history_with_a_token_that_the_model_does_not_have(token):
    for sampler in (SamplerChain([Penalties(2.0)], seed=0), Sampler(0, seed=0, repetition_penalty=2.0)):
        with pytest.raises(ConstrainError, match="has a token for which the model has no logit"):
            sampler.sample([0.0, 1.0, 2.0], None, [1, token])


def test_a_bias_for_a_token_that_the_model_does_not_have():
    chain = SamplerChain([TopK(1), LogitBias({3: 1.0, 2: 1.0})], seed=0)
    assert chain.sample([0.0, 1.0, 2.0, 0.0]) == 2
    with pytest.raises(ConstrainError, match="logit_bias: the model has no logit for token 3"):
        chain.sample([0.0, 1.0, 2.0])
