"""The sampling benchmark measures the same thing on both sides."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from bench import sampling
from constrain.sampling import Sampler

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("full_sort", [False, True])
@pytest.mark.parametrize("top_k", [0, 40])
def test_torch_draws_from_the_same_tokens(full_sort, top_k):
    generator = np.random.default_rng(0)
    torch.manual_seed(0)
    logits = generator.normal(0, 1, sampling.VOCABULARY).astype(np.float32)
    mask = sampling.bitmask(0.001, generator)
    ids = set(Sampler(sampling.TEMPERATURE, top_k, sampling.TOP_P).distribution(logits, mask)[0].tolist())
    draw = sampling.torch_chain(top_k, sampling.TOP_P, full_sort)
    drawn = {draw(logits, mask) for _ in range(40)}
    assert drawn <= ids
    assert len(drawn) > 3


def test_the_command_prints_figures(monkeypatch):
    monkeypatch.setattr(sampling, "ALLOWED", (0.01,))
    run = CliRunner().invoke(sampling.main, ["--seconds", "0", "--json"])
    assert run.exit_code == 0, run.output
    figures = json.loads(run.output)
    chains, others = figures[:2], figures[2:]
    assert [figure["allowed"] for figure in chains] == [0.01, 0.01]
    assert all(figure["constrain_us"] < figure["torch_full_rows_us"] for figure in chains)
    assert len(others) == 5
    assert all(figure["constrain_us"] < figure["torch_us"] < 1e6 for figure in others)
    assert "allowed" in CliRunner().invoke(sampling.main, ["--seconds", "0"]).output
