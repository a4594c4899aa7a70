"""Sampling from logits that are on a GPU: the same as from the same numbers here."""

from __future__ import annotations

import numpy as np
import pytest

from constrain.sampling import Sampler

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"top_k": 40, "top_p": 0.9}, {"min_p": 0.01, "seed": 5}])
def test_the_same_tokens(dtype: str, options: dict[str, float]) -> None:
    logits = torch.randn(6, 5000, device="cuda").to(getattr(torch, dtype))
    mask = np.random.default_rng(1).integers(-(2**31), 2**31, (6, 156)).astype(np.int32)
    here, there = Sampler(**{"seed": 3, **options}), Sampler(**{"seed": 3, **options})
    for row in range(6):
        expected = here.sample(logits[row].float().cpu().numpy(), mask[row])
        assert there.sample(logits[row], torch.from_numpy(mask[row]).cuda()) == expected
