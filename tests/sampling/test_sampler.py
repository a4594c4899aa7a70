"""The sampler against a naive twin in plain numpy, and what it draws against what it should."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_sampling import assert_drawn_by, naive_distribution, pack

from constrain.errors import ConstrainError
from constrain.sampling import Sampler
from constrain.sampling.kernels import arithmetic as kernels


@st.composite
def cases(draw):
    n = draw(st.integers(1, 200))
    # Few distinct values, so that ties are common.
    value = st.one_of(st.integers(-8, 8).map(lambda v: v / 2), st.just(-math.inf))
    logits = np.array(draw(st.lists(value, min_size=n, max_size=n)), dtype=np.float32)
    density = draw(st.sampled_from([0.02, 0.5, 0.98, 1.0]))
    picks = draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=n, max_size=n))
    allowed = [p < density for p in picks]
    best = draw(st.integers(0, n - 1))
    allowed[best], logits[best] = True, 1.0
    return logits, allowed


@given(
    cases(),
    st.sampled_from([0.0, 0.3, 1.0, 5.0]),
    st.sampled_from([0, 1, 3, 40, 1000]),
    st.sampled_from([0.05, 0.5, 0.9, 1.0]),
)
def test_same_candidates_as_the_naive_twin(case, temperature, top_k, top_p):
    logits, allowed = case
    ids, p = Sampler(temperature, top_k, top_p).distribution(logits, pack(allowed))
    # A mass within rounding of top_p may fall on either side of it; keep such draws out of the comparison.
    near, below = (
        naive_distribution(logits, allowed, (), {"temperature": temperature, "top_k": top_k, "top_p": mass})
        for mass in (min(1.0, top_p + 1e-9), top_p - 1e-9 if top_p < 1 else 1.0)
    )
    expected = near if set(ids.tolist()) == set(near) else below
    # Where nothing was cut, they stand in the order of ids.
    assert ids.tolist() == (list(expected) if top_k or top_p < 1 or temperature == 0 else sorted(expected))
    assert np.allclose(p, [expected[token] for token in ids.tolist()], rtol=1e-12, atol=0)


@pytest.mark.parametrize("top_k", [0, 7])
@pytest.mark.parametrize("top_p", [0.8, 1.0])
def test_frequencies_fit_the_probabilities(top_k, top_p):
    generator = np.random.default_rng(5)
    logits = generator.normal(size=60).astype(np.float32)
    allowed = generator.random(60) < 0.5
    sampler = Sampler(1.3, top_k, top_p, seed=11)
    ids, p = sampler.distribution(logits, pack(allowed))
    # The seed is fixed, so no flakiness.
    assert_drawn_by(ids, p, [sampler.sample(logits, pack(allowed)) for _ in range(20_000)])


def test_splitmix64_stream_is_the_published_one():
    # First outputs for seed 1234567, from the generator's reference implementation.
    reference = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    state = np.array([1234567], dtype=np.uint64)
    assert [kernels.uniform(state) for _ in reference] == [(z >> 11) * 2.0**-53 for z in reference]


@given(st.floats(-800, 0))
def test_exp_is_exp(x):
    expected = 0.0 if x < -708 else math.exp(x)
    assert math.isclose(kernels.exp_not_positive(x), expected, rel_tol=4e-16, abs_tol=0)


def test_large_vocabulary_agrees_with_the_twin():
    generator = np.random.default_rng(3)
    logits = generator.normal(size=128_256).astype(np.float32)
    for density in (1.0, 0.97, 0.001):
        allowed = generator.random(len(logits)) < density
        for top_k in (0, 40):
            ids, p = Sampler(0.8, top_k, 0.9).distribution(logits, pack(allowed))
            twin = naive_distribution(logits, allowed, (), {"temperature": 0.8, "top_k": top_k, "top_p": 1.0})
            assert ids.tolist() == list(twin)[: len(ids)]
            twin_p = np.array(list(twin.values()))
            mass = np.cumsum(twin_p)
            assert len(ids) == 1 + int(np.searchsorted(mass, 0.9))
            assert np.allclose(p, twin_p[: len(ids)] / twin_p[: len(ids)].sum(), rtol=1e-9)


def test_a_seed_repeats_and_seeds_differ():
    logits = np.zeros(50, dtype=np.float32)

    def run(seed):
        sampler = Sampler(1.0, 0, 1.0, seed=seed)
        return [sampler.sample(logits) for _ in range(20)]

    # Written down so that a change of the stream, or of the order of candidates, does not go unnoticed.
    assert run(1) == [28, 37, 48, 22, 22, 38, 43, 26, 14, 39, 20, 30, 22, 26, 21, 8, 32, 40, 34, 44]
    assert run(2) != run(1)
    assert Sampler().seed != Sampler().seed


def test_other_dtypes_and_read_only_input():
    for logits in ([0.0, 5.0, 1.0], np.array([0, 5, 1], dtype=np.float16), np.array([0, 5, 1.0])[::1]):
        assert Sampler(0).sample(logits) == 1
    frozen = np.array([0, 5, 1], dtype=np.float32)
    frozen.flags.writeable = False
    mask = pack([True, False, True])
    mask.flags.writeable = False
    assert Sampler(0).sample(frozen, mask) == 2


def test_logits_wider_than_the_mask_are_out_of_reach():
    logits = np.zeros(100, dtype=np.float32)
    logits[99] = 50
    assert Sampler(0).sample(logits, pack([True] * 40)) == 0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("top_k", [0, 2])
def test_rows_that_allow_no_draw_say_why(temperature, top_k):
    sampler = Sampler(temperature, top_k)
    zeros = np.zeros(40, dtype=np.float32)
    only_three = pack([i == 3 for i in range(40)])
    with pytest.raises(ConstrainError, match="allows no token"):
        sampler.sample(zeros, pack([False] * 40))
    for bad in (math.nan, math.inf):
        for position in (0, 39):
            logits = zeros.copy()
            logits[position] = bad
            with pytest.raises(ConstrainError, match="NaN"):
                sampler.sample(logits)
            assert sampler.sample(logits, only_three) == 3
    with pytest.raises(ConstrainError, match="-inf for every"):
        sampler.sample(np.full(40, -math.inf, dtype=np.float32))
    with pytest.raises(ConstrainError, match="no logit"):
        sampler.sample(zeros[:20], pack([i == 30 for i in range(40)]))
    with pytest.raises(ConstrainError, match="shape"):
        sampler.sample(np.zeros((2, 3), dtype=np.float32))
    with pytest.raises(ConstrainError, match="shape"):
        sampler.sample(np.zeros(0, dtype=np.float32))
    with pytest.raises(ConstrainError, match="int32"):
        sampler.sample(zeros, np.zeros(2, dtype=np.int64))


@pytest.mark.parametrize(
    "options",
    [{"temperature": -1}, {"temperature": math.nan}, {"temperature": math.inf}, {"top_k": -1}]
    + [{"top_p": p} for p in (0, 1.1, math.nan)]
    + [{"seed": s} for s in (-1, 2**64)],
)
def test_options_out_of_range(options):
    with pytest.raises(ConstrainError, match=next(iter(options))):
        Sampler(**options)
