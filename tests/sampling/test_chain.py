"""The whole chain against a naive twin in plain numpy, and each step against transformers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from naive_sampling import assert_drawn_by, naive_adjusted, naive_distribution, pack

from constrain.errors import ConstrainError
from constrain.sampling import Sample, Sampler, steps

OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}


@st.composite
def cases(draw):
    n = draw(st.sampled_from([1, 5, 31, 32, 33, 64, 100, 300]))
    # Multiples of a small step without many ties, then some ties.
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    logits = generator.normal(0, draw(st.sampled_from([0.5, 2.0, 6.0])), n).astype(np.float32)
    if draw(st.booleans()):
        logits = np.round(logits)
    allowed = generator.random(n) < draw(st.sampled_from([0.03, 0.5, 1.0]))
    allowed[draw(st.integers(0, n - 1))] = True
    history = generator.integers(0, n, draw(st.sampled_from([0, 1, 7, 70]))).tolist()
    bias_ids = draw(st.sets(st.integers(0, n - 1), max_size=3))
    options = {
        "temperature": draw(st.sampled_from([0.0, 0.7, 1.0, 2.0])),
        "top_k": draw(st.sampled_from([0, 1, 3, 40])),
        "top_p": draw(st.sampled_from([0.3, 0.85, 1.0])),
        "min_p": draw(st.sampled_from([0.0, 0.0, 0.07, 1.0])),
        "typical": draw(st.sampled_from([0.2, 0.77, 1.0, 1.0])),
        "repetition_penalty": draw(st.sampled_from([1.0, 1.1, 0.5])),
        "repetition_window": draw(st.sampled_from([0, 3, 64])),
        "frequency_penalty": draw(st.sampled_from([0.0, 0.25, -0.5])),
        "presence_penalty": draw(st.sampled_from([0.0, 0.5])),
        "logit_bias": {i: draw(st.sampled_from([-1.5, 2.0])) for i in bias_ids},
    }
    return logits, allowed, history, options


@given(cases())
def test_chain_equals_the_twin(case):
    logits, allowed, history, options = case
    before = logits.copy()
    sampler = Sampler(**options, seed=1)
    assert np.allclose(sampler.adjusted_logits(logits, history), naive_adjusted(logits, history, options), rtol=1e-6)
    ids, p = sampler.distribution(logits, pack(allowed), history)
    expected = naive_distribution(logits, allowed, history, options)
    got = dict(zip(ids.tolist(), p.tolist(), strict=True))
    if got.keys() != expected.keys():
        # Only where a mass is within rounding of a bound, or typicality ties, may the last token differ.
        differing = got.keys() ^ expected.keys()
        assert len(differing) <= 2
        assert options["typical"] < 1 or options["top_p"] < 1
        return
    assert all(math.isclose(got[i], expected[i], rel_tol=1e-4) for i in got)
    assert sampler.sample(logits, pack(allowed), history) in got
    assert (logits == before).all()


def test_few_cases_end_within_rounding():
    # The escape in the test above must be rare, or it would hide everything.
    generator, missed = np.random.default_rng(4), 0
    for i in range(300):
        logits = generator.normal(0, 2, 80).astype(np.float32)
        options = {**OFF, "top_p": 0.8, "min_p": 0.01, "typical": 0.6, "temperature": 1 + i / 300}
        expected = naive_distribution(logits, [True] * 80, [], options)
        missed += set(Sampler(**options).distribution(logits)[0].tolist()) != expected.keys()
    assert missed <= 3


ROW = np.random.default_rng(0).normal(0, 2, 500).astype(np.float32)


@pytest.fixture(scope="module")
def reference():
    """A function that runs a class of transformers' on the row."""
    torch = pytest.importorskip("torch")
    process = pytest.importorskip("transformers").generation.logits_process

    def run(name, *args, row=ROW, history=()):
        tokens = torch.tensor([list(history)], dtype=torch.long)
        return getattr(process, name)(*args)(tokens, torch.from_numpy(row.copy())[None])[0].numpy()

    return run


@pytest.mark.parametrize("penalty", [1.1, 1.9, 0.7])
def test_repetition_penalty_equals_transformers(reference, penalty):
    history = [3, 3, 77, 499, 0, 77]
    expected = reference("RepetitionPenaltyLogitsProcessor", penalty, history=history)
    assert np.allclose(steps.repetition_penalty(ROW, history, penalty), expected, rtol=1e-6)
    in_window = reference("RepetitionPenaltyLogitsProcessor", penalty, history=history[-2:])
    assert np.allclose(steps.repetition_penalty(ROW, history, penalty, window=2), in_window, rtol=1e-6)


@pytest.mark.parametrize(
    ("step", "warper", "values"),
    [
        ("temperature", "TemperatureLogitsWarper", [0.3, 1.7]),
        ("top_k", "TopKLogitsWarper", [1, 40, 499]),
        ("top_p", "TopPLogitsWarper", [0.05, 0.5, 0.9, 0.999]),
        ("min_p", "MinPLogitsWarper", [0.001, 0.05, 0.6, 1.0]),
        ("typical", "TypicalLogitsWarper", [0.1, 0.5, 0.95]),
    ],
)
def test_steps_equal_transformers(reference, step, warper, values):
    for seed in range(8):
        row = np.random.default_rng(seed).normal(0, 1 + seed, 500).astype(np.float32)
        for value in values:
            ours, theirs = getattr(steps, step)(row, value), reference(warper, value, row=row)
            assert np.array_equal(np.isfinite(ours), np.isfinite(theirs)), (seed, value)
            assert np.allclose(ours[np.isfinite(ours)], theirs[np.isfinite(theirs)], rtol=1e-6)


def test_bias_equals_transformers(reference):
    bias = {5: 2.5, 6: -30.0}
    expected = reference("SequenceBiasLogitsProcessor", {(i,): value for i, value in bias.items()}, history=[1])
    assert np.allclose(steps.logit_bias(ROW, bias), expected, rtol=1e-6)


def test_whole_chain_equals_transformers(reference):
    torch = pytest.importorskip("torch")
    history = [1, 2, 3, 3, 250]
    for seed in range(10):
        row = np.random.default_rng(seed).normal(0, 3, 500).astype(np.float32)
        scores = reference("RepetitionPenaltyLogitsProcessor", 1.3, row=row, history=history)
        for name, value in (
            ("TemperatureLogitsWarper", 0.8),
            ("TopKLogitsWarper", 40),
            ("TopPLogitsWarper", 0.9),
            ("MinPLogitsWarper", 0.02),
            ("TypicalLogitsWarper", 0.8),
        ):
            scores = reference(name, value, row=scores)
        expected = torch.from_numpy(scores).softmax(-1).numpy()
        sampler = Sampler(0.8, 40, 0.9, min_p=0.02, typical=0.8, repetition_penalty=1.3)
        ids, p = sampler.distribution(row, history=history)
        assert sorted(ids.tolist()) == np.flatnonzero(expected).tolist()
        assert np.allclose(p, expected[ids], rtol=1e-4)


def test_frequency_and_presence():
    row = steps.frequency_presence_penalty(np.zeros(6, np.float32), [1, 1, 1, 4], frequency=0.5, presence=0.25)
    assert row.tolist() == [0, -1.75, 0, 0, -0.75, 0]
    row = steps.frequency_presence_penalty(np.zeros(6, np.float32), [1, 1, 1, 4], frequency=0.5, window=2)
    assert row.tolist() == [0, -0.5, 0, 0, -0.5, 0]


def test_softmax_and_multinomial():
    p = steps.softmax(ROW)
    assert math.isclose(p.sum(), 1, rel_tol=1e-12)
    assert np.allclose(p, np.exp(ROW - ROW.max()) / np.exp(ROW.astype(float) - ROW.max()).sum(), rtol=1e-5)
    assert steps.softmax(np.array([1000.0, -1000.0, -math.inf])).tolist() == [1, 0, 0]
    weights = np.array([1.0, 0.0, 3.0])
    counts = np.bincount(steps.multinomial(weights, seed=7, draws=4000), minlength=3)
    assert counts[1] == 0
    assert abs(counts[2] - 3000) < 5 * math.sqrt(4000 * 0.75 * 0.25)
    assert steps.multinomial(weights, 7, 5).tolist() == steps.multinomial(weights, 7, 5).tolist()
    with pytest.raises(ConstrainError, match="probabilities"):
        steps.multinomial([0.5, -0.1], 0)


def test_frequencies_fit_the_probabilities():
    generator = np.random.default_rng(3)
    logits = generator.normal(size=80).astype(np.float32)
    allowed, history = generator.random(80) < 0.6, [1, 2, 3, 3, 3]
    sampler = Sampler(
        1.4, 30, 0.95, seed=2, min_p=0.05, typical=0.9, repetition_penalty=1.2, frequency_penalty=0.2, logit_bias={5: 1}
    )
    ids, p = sampler.distribution(logits, pack(allowed), history)
    draws = 20_000
    rows = np.repeat(logits[None], 100, axis=0)
    drawn = [sampler.sample_batch(rows, pack(allowed), [history] * 100) for _ in range(draws // 200)]
    drawn += [[sampler.sample(logits, pack(allowed), history) for _ in range(draws // 2)]]
    assert len(ids) > 5
    assert_drawn_by(ids, p, np.concatenate(drawn))


def test_rows_of_a_batch_do_not_depend_on_each_other():
    generator = np.random.default_rng(1)
    logits = generator.normal(size=(6, 200)).astype(np.float32)
    masks = np.stack([pack(generator.random(200) < 0.5) for _ in range(6)])
    histories = [generator.integers(0, 200, 9).tolist() for _ in range(6)]

    def run(size, steps_=5):
        sampler = Sampler(1.2, 0, 1.0, seed=9, repetition_penalty=1.5)
        return [sampler.sample_batch(logits[:size], masks[:size], histories[:size]).tolist() for _ in range(steps_)]

    whole = run(6)
    assert [row[:3] for row in whole] == run(3)
    alone = Sampler(1.2, 0, 1.0, seed=9, repetition_penalty=1.5)
    assert [row[0] for row in whole] == [alone.sample(logits[0], masks[0], histories[0]) for _ in range(5)]
    for row in whole:
        for token, mask in zip(row, masks, strict=True):
            assert mask[token // 32] >> token % 32 & 1
    same = np.repeat(logits[:1], 50, axis=0)
    assert len(set(Sampler(2.0, 0, 1.0, seed=1).sample_batch(same).tolist())) > 10, "each row has its own stream"


def test_log_probabilities():
    allowed = np.random.default_rng(2).random(500) < 0.3
    x = np.where(allowed, ROW.astype(float), -np.inf)
    expected = x - x.max() - math.log(np.exp(x - x.max()).sum())
    sampler = Sampler(0.5, 5, 0.9, seed=3, repetition_penalty=1.5)
    sample = sampler.sample_with_log_probabilities(ROW, pack(allowed), [1, 2], top=4)
    assert sample.token_id == Sampler(0.5, 5, 0.9, seed=3, repetition_penalty=1.5).sample(ROW, pack(allowed), [1, 2])
    assert math.isclose(sample.log_probability, expected[sample.token_id], rel_tol=1e-6)
    best = np.argsort(-x)[:4].tolist()
    assert [i for i, _ in sample.top] == best
    assert np.allclose([value for _, value in sample.top], expected[best], rtol=1e-6)
    few = Sampler(0).sample_with_log_probabilities(ROW, pack([i in (3, 9) for i in range(500)]), top=10)
    assert sorted(i for i, _ in few.top) == [3, 9]
    assert math.isclose(sum(math.exp(value) for _, value in few.top), 1, rel_tol=1e-6)
    assert isinstance(few, Sample)
    assert Sampler(0).sample_with_log_probabilities(ROW).top == ()
    with pytest.raises(ConstrainError, match="top must be"):
        sampler.sample_with_log_probabilities(ROW, top=-1)


def test_bias_rules_out_and_bias_forces():
    row = np.zeros(40, np.float32)
    assert Sampler(0, logit_bias={0: -math.inf}).sample(row) == 1
    assert Sampler(0, logit_bias={31: 1, 33: 0.5}).sample(row) == 31
    mask = pack([i in (0, 31, 32) for i in range(40)])
    assert Sampler(0, logit_bias={0: -math.inf, 31: -math.inf, 33: 9}).sample(row, mask) == 32
    with pytest.raises(ConstrainError, match="-inf for every"):
        Sampler(0, logit_bias={0: -math.inf}).sample(row, pack([i == 0 for i in range(40)]))
    sampler = Sampler(0, repetition_penalty=2.0)
    assert sampler.sample(row + 1, history=[0, 1, 2]) == 3
    assert sampler.sample(row + 1, history=np.array([0, 1])) == 2
    assert sampler.sample(row + 1) == 0, "nothing of an earlier history is left"


def test_the_history_may_be_longer_than_the_window_at_no_cost():
    history = [7] * 100_000 + [1, 2]
    assert Sampler(0, repetition_penalty=2.0, repetition_window=2).sample(np.ones(9, np.float32), history=history) == 0


@example({"min_p": -0.1})
@example({"min_p": 1.1})
@example({"typical": 0})
@example({"typical": math.nan})
@example({"repetition_penalty": 0})
@example({"repetition_penalty": math.inf})
@example({"repetition_window": -1})
@example({"frequency_penalty": math.nan})
@example({"presence_penalty": math.inf})
@example({"logit_bias": {-1: 0}})
@example({"logit_bias": {1: math.inf}})
@example({"logit_bias": {1: math.nan}})
@example({"logit_bias": {1: 1e39}})
@example({"logit_bias": {"a": 1}})
@given(st.just({"min_p": 2}))
def test_options_out_of_range(options):
    with pytest.raises(ConstrainError, match=next(iter(options))):
        Sampler(**options)


def test_arguments_that_do_not_fit():
    row, penalised = np.zeros(40, np.float32), Sampler(repetition_penalty=1.1)
    for history in ([40], [-1], [2**40], ["a"], [1.5], [[1]]):
        with pytest.raises(ConstrainError, match="history"):
            penalised.sample(row, history=history)
        with pytest.raises(ConstrainError, match="history"):
            penalised.adjusted_logits(row, history)
    with pytest.raises(ConstrainError, match="bias"):
        Sampler(logit_bias={40: 1.0}).sample(row)
    assert 0 <= penalised.sample(row, history=[39]) < 40, "and an error leaves nothing behind"
    table = np.zeros((3, 40), np.float32)
    for arguments, message in (
        ((row,), "two dimensions"),
        ((table, np.zeros((2, 2), np.int32)), "2 masks for 3 rows"),
        ((table, np.zeros((3, 2), np.int64)), "int32"),
        ((table, None, [[]]), "1 histories for 3 rows"),
    ):
        with pytest.raises(ConstrainError, match=message):
            penalised.sample_batch(*arguments)
    masks = np.stack([pack([True] * 40), pack([False] * 40), pack([True] * 40)])
    with pytest.raises(ConstrainError, match="row 1: the mask allows no token"):
        penalised.sample_batch(table, masks)
    with pytest.raises(ConstrainError, match="one row of a bitmask"):
        penalised.sample(row, np.zeros((2, 2), np.int32))


def test_large_rows_of_every_density_agree_with_a_sort():
    generator = np.random.default_rng(8)
    logits = generator.normal(0, 3, 128_256).astype(np.float32)
    for density in (1.0, 0.9, 0.3, 0.05, 0.01, 0.0005):
        allowed = generator.random(len(logits)) < density
        allowed[:256] &= density != 0.3  # a stretch without any
        for k in (1, 40, 1000):
            ids, _ = Sampler(1.0, k, 1.0).distribution(logits, pack(allowed))
            x = np.where(allowed, logits, -np.inf)
            assert ids.tolist() == np.argsort(-x, kind="stable")[: min(k, allowed.sum())].tolist()


@given(
    st.integers(0, 10**6),
    st.integers(513, 3000),
    st.sampled_from([0.0, 0.1, 1.0, 3.0, 30.0, 3000.0]),
    st.sampled_from([0.01, 0.5, 0.9, 0.9999]),
    st.sampled_from([0.5, 1.0, 8.0]),
)
def test_top_p_of_long_rows_agrees_with_a_sort(seed, n, scale, top_p, temperature):
    logits = np.random.default_rng(seed).normal(0, scale, n).astype(np.float32)
    ids, p = Sampler(temperature, 0, top_p).distribution(logits)
    order = np.argsort(-logits, kind="stable")
    x = logits[order].astype(float)
    weights = np.exp((x - x[0]) / temperature)
    mass = np.cumsum(weights / weights.sum())
    assert ids.tolist() == order[: len(ids)].tolist()
    # On either side of the bound, but for rounding.
    assert mass[len(ids) - 1] >= top_p - 1e-9
    assert len(ids) == 1 or mass[len(ids) - 2] < top_p + 1e-9
    assert np.allclose(p, weights[: len(ids)] / weights[: len(ids)].sum(), rtol=1e-9)
