"""Rows so long that stretches of them are looked at together, against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from naive_sampling import naive_distribution, pack

from constrain.errors import ConstrainError
from constrain.sampling import Sampler
from constrain.sampling.kernels.arithmetic import exp_not_positive, uniform

LENGTHS = (256, 1_000, 40_017)
SHARES = (1.0, 0.6, 0.1, 0.004)


def row_of(n, seed, ties=False):
    generator = np.random.default_rng(seed)
    logits = generator.normal(0, 3, n).astype(np.float32)
    if ties:
        logits = np.round(logits)
    logits[generator.random(n) < 0.1] = -np.inf
    return logits


def allowed_of(n, share, seed):
    allowed = np.random.default_rng(seed).random(n) < share
    allowed[n // 2] = True
    return allowed


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 5, 40, 64, 70, 10**6])
def test_the_best_tokens(k, ties, share):
    for n in LENGTHS:
        logits, allowed = row_of(n, n + k, ties), allowed_of(n, share, n)
        logits[n // 2] = 1.0
        logits[~allowed] = np.random.default_rng(1).choice(np.float32([np.nan, np.inf, 99, -np.inf]), (~allowed).sum())
        usable = np.flatnonzero(allowed & (np.where(allowed, logits, 0) > -np.inf))
        expected = sorted(usable, key=lambda i: (-logits[i], i))[:k]
        ids, _ = Sampler(1.0, k, 1.0).distribution(logits, pack(allowed))
        assert ids.tolist() == expected
        assert Sampler(0).sample(logits, pack(allowed)) == expected[0]


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("k", [0, 5, 70])
def test_statuses(k, share):
    n = 40_017
    logits, allowed = row_of(n, 3), allowed_of(n, share, 4)
    mask = pack(allowed)
    samplers = [Sampler(1.0, k, 1.0), Sampler(0)]
    calls = [call for each in samplers for call in (each.sample, each.sample_with_log_probabilities)]
    for place in np.flatnonzero(allowed)[[0, 100, -1]]:
        for wrong in (np.nan, -np.nan, np.inf):
            broken = logits.copy()
            broken[place] = wrong
            for call in calls:
                with pytest.raises(ConstrainError, match="NaN"):
                    call(broken, mask)
    for call in calls:
        with pytest.raises(ConstrainError, match="no token"):
            call(logits, np.zeros_like(mask))
        with pytest.raises(ConstrainError, match="-inf for every"):
            call(np.full(n, -np.inf, dtype=np.float32), mask)
        wide = np.append(mask, np.int32(1))
        with pytest.raises(ConstrainError, match="no logit"):
            call(logits, wide)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("temperature", [0.7, 3.0])
def test_a_token_of_all_is_that_of_the_cumulated_weights(share, temperature):
    for n in LENGTHS:
        allowed = allowed_of(n, share, n)
        logits = row_of(n, n)
        logits[n // 2] = 1.0
        bias = {int(i): 2.5 for i in np.flatnonzero(allowed)[:3]}
        for biases in ({}, bias):
            sampler = Sampler(temperature, 0, 1.0, seed=9, logit_bias=biases)
            row = sampler.adjusted_logits(logits)
            order = [i for i in np.flatnonzero(allowed) if i not in biases] + [i for i in biases if allowed[i]]
            order = [i for i in order if row[i] > -np.inf]
            best = max(float(row[i]) for i in order)
            sums = np.cumsum([exp_not_positive((float(row[i]) - best) / temperature) for i in order])
            state = np.array([9], dtype=np.uint64)
            for _ in range(20):
                target = uniform(state) * sums[-1]
                place = int(np.searchsorted(sums, target, side="right"))
                near = min(abs(sums - target)) < 1e-9 * sums[-1]
                drawn = sampler.sample(logits, pack(allowed))
                assert drawn == order[place] or (near and drawn in order)


def test_one_candidate_takes_no_random_number():
    logits = np.full(600, -np.inf, dtype=np.float32)
    logits[[300, 599]] = 1.0, 2.0
    first, second = Sampler(1.0, 0, 1.0, seed=4), Sampler(1.0, 0, 1.0, seed=4)
    only = pack([i != 599 for i in range(600)])
    assert [first.sample(logits, only) for _ in range(5)] == [300] * 5
    assert first.sample(logits, pack([i == 599 for i in range(600)])) == 599
    assert [first.sample(logits) for _ in range(20)] == [second.sample(logits) for _ in range(20)]


def test_weights_far_below_the_best_are_never_drawn():
    logits = np.full(5_000, -3000.0, dtype=np.float32)
    logits[4_321] = 0.0
    sampler = Sampler(1.0, 0, 1.0, seed=1)
    assert {sampler.sample(logits) for _ in range(50)} == {4_321}


def test_typical_of_many():
    for seed in range(3):
        logits = np.random.default_rng(seed).normal(0, 2, 1_500).astype(np.float32)
        options = {"temperature": 0.9, "top_k": 0, "top_p": 1.0, "typical": 0.6}
        ids, p = Sampler(**options).distribution(logits)
        expected = naive_distribution(logits, [True] * 1_500, [], options)
        differing = set(ids.tolist()) ^ expected.keys()
        assert len(differing) <= 1
        assert all(
            math.isclose(q, expected[i], rel_tol=1e-3) for i, q in zip(ids.tolist(), p, strict=True) if i in expected
        )


@pytest.mark.parametrize("share", SHARES)
def test_log_probabilities(share):
    for n in LENGTHS:
        for shift in (0.0, 200.0, -1e4):
            logits, allowed = row_of(n, n) + np.float32(shift), allowed_of(n, share, n)
            logits[n // 2] = shift
            x = np.where(allowed, logits.astype(float), -np.inf)
            expected = x - x.max() - math.log(np.exp(x - x.max()).sum())
            for top in (1, 7):
                sample = Sampler(0).sample_with_log_probabilities(logits, pack(allowed), top=top)
                assert sample.token_id == int(np.argmax(x))
                best = sorted(np.flatnonzero(x > -np.inf), key=lambda i: (-x[i], i))[:top]
                assert [i for i, _ in sample.top] == best
                assert np.allclose([value for _, value in sample.top], expected[best], rtol=1e-6, atol=2e-7)


def test_log_probability_of_what_is_nearly_certain():
    for gap in (10.0, 20.0):
        logits = np.zeros(20_000, dtype=np.float32)
        logits[1_234] = gap
        sample = Sampler(0).sample_with_log_probabilities(logits, top=1)
        assert math.isclose(sample.log_probability, -math.log1p(19_999 * math.exp(-gap)), rel_tol=1e-6)


def test_growing_rows():
    # The highest logit so far rises from stretch to stretch, and far.
    logits = (np.arange(30_000) // 256 * 50).astype(np.float32)
    sample = Sampler(0).sample_with_log_probabilities(logits, top=2)
    assert math.isclose(sample.log_probability, -math.log(np.sum(logits == logits[-1])), rel_tol=1e-6)
