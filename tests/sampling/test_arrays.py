"""Logits and masks of other libraries and dtypes, and what is no array of numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import constrain
from constrain.errors import ConstrainError
from constrain.sampling import Sampler, steps

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

ROW = np.array([1.0, 3.5, -2.0, 0.25, 3.0], dtype=np.float32)
MASK = np.array([0b11101], dtype=np.int32)


def tensors():
    yield torch.from_numpy(ROW.copy())
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        yield torch.from_numpy(ROW.copy()).to(dtype)
    yield torch.from_numpy(ROW.copy()).requires_grad_()
    yield torch.from_numpy(ROW.copy()).bfloat16().requires_grad_()
    yield torch.from_numpy(ROW.copy()).requires_grad_() * 1
    with torch.inference_mode():
        yield torch.from_numpy(ROW.copy()).bfloat16()
    yield torch.stack([torch.from_numpy(ROW)] * 2, dim=1)[:, 0]


@pytest.mark.parametrize("logits", list(tensors()), ids=lambda row: f"{row.dtype} {row.requires_grad}")
def test_tensors(logits):
    before = logits.detach().clone()
    sampler, twin = Sampler(0.7, 3, 0.9, 5, repetition_penalty=1.3), Sampler(0.7, 3, 0.9, 5, repetition_penalty=1.3)
    for mask in (None, MASK, torch.from_numpy(MASK)):
        same = None if mask is None else MASK
        assert sampler.sample(logits, mask, [1]) == twin.sample(ROW, same, [1])
        rows, twin_rows = logits.expand(3, -1), np.stack([ROW] * 3)
        assert sampler.sample_batch(rows, mask).tolist() == twin.sample_batch(twin_rows, same).tolist()
        got, expected = (each.distribution(row, same) for each, row in ((sampler, logits), (twin, ROW)))
        assert np.array_equal(got[0], expected[0])
        assert np.array_equal(got[1], expected[1])
        assert sampler.sample_with_log_probabilities(logits, mask, top=2).top == (
            twin.sample_with_log_probabilities(ROW, same, top=2).top
        )
    assert np.array_equal(sampler.adjusted_logits(logits, [1]), twin.adjusted_logits(ROW, [1]))
    for step, argument in (("temperature", 0.5), ("temperature", 0), ("top_k", 2), ("top_p", 0.9), ("min_p", 0.1)):
        assert np.array_equal(getattr(steps, step)(logits, argument), getattr(steps, step)(ROW, argument))
    assert np.array_equal(steps.softmax(logits), steps.softmax(ROW))
    assert np.array_equal(steps.multinomial(logits.exp(), 3, 5), steps.multinomial(logits.exp().detach(), 3, 5))
    assert torch.equal(logits.detach(), before), "nothing is changed"


@pytest.mark.parametrize(
    "logits",
    [None, "ab", [1.0, "a"], [[1.0], [2.0, 3.0]], 1j * ROW, torch.tensor([1j]), object(), {1: 2.0}, [], 5, [None],
     np.array(["1"]), np.array(["2020-01-01"], dtype="M8[D]"), torch.ones(2, 2).to_sparse()],
    ids=lambda value: re.sub(r" at 0x\w+", "", repr(value))[:30].replace("\n", " "),
)  # fmt: skip
def test_what_is_no_row_of_numbers(logits):
    sampler = Sampler()
    calls = [sampler.sample, sampler.sample_batch, sampler.distribution, sampler.sample_with_log_probabilities]
    calls += [sampler.adjusted_logits, steps.softmax, lambda row: steps.top_k(row, 2)]
    for call in calls:
        with pytest.raises(ConstrainError) as caught:
            call(logits)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        *({name: value} for name in ("temperature", "top_p", "min_p", "typical", "repetition_penalty")
          for value in ("a", None, [1.0], 1j)),
        *({name: value} for name in ("top_k", "repetition_window", "seed") for value in ("a", 1.5, 2.0, [1])),
        {"frequency_penalty": "x"}, {"presence_penalty": None}, {"logit_bias": [1]}, {"logit_bias": {1.5: 1}},
        {"logit_bias": {1: "a"}}, {"logit_bias": {1: None}}, {"logit_bias": 5},
    ],
    ids=repr,
)  # fmt: skip
def test_options_of_a_wrong_type(options):
    with pytest.raises(ConstrainError, match=next(iter(options))):
        Sampler(**options)


def test_arguments_of_a_wrong_type():
    sampler = Sampler(repetition_penalty=1.1)
    for history in (5, "ab", [1.5], [None], {1: 2}):
        with pytest.raises(ConstrainError, match="history"):
            sampler.sample(ROW, None, history)
    for call in (
        lambda: sampler.sample_batch(np.stack([ROW]), None, 5),
        lambda: sampler.sample_with_log_probabilities(ROW, top=1.5),
        lambda: sampler.for_row("a"),
        lambda: sampler.for_row(-1),
        lambda: sampler.sample(ROW, [1]),
        lambda: sampler.sample(ROW, MASK.astype(np.float32)),
        lambda: sampler.sample(ROW, torch.tensor([1.0])),
    ):
        with pytest.raises(ConstrainError):
            call()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("mask", [MASK, torch.from_numpy(MASK)], ids=["numpy", "torch"])
def test_masks_on_tensors_that_require_gradients(dtype, mask):
    logits = torch.from_numpy(ROW.copy()).to(dtype).requires_grad_()
    constrain.apply_token_bitmask_inplace(logits, mask)
    assert torch.isneginf(logits).tolist() == [False, True, False, False, False]
    assert logits.requires_grad
    assert logits.is_leaf
    # What was computed keeps its graph: no gradient goes through a forbidden logit.
    weights = torch.from_numpy(ROW.copy()).to(dtype).requires_grad_()
    computed = weights * 2
    constrain.apply_token_bitmask_inplace(computed, mask)
    computed[[0, 2]].sum().backward()
    assert weights.grad.tolist() == [2, 0, 2, 0, 0]


def test_masks_of_a_wrong_kind():
    frozen = ROW.copy()
    frozen.flags.writeable = False
    for logits, mask in ((ROW.copy(), [1]), (ROW.copy(), None), (torch.ones(5), [1]), (frozen, MASK), ("a", MASK)):
        with pytest.raises(ConstrainError):
            constrain.apply_token_bitmask_inplace(logits, mask)


@pytest.mark.filterwarnings("error")
def test_doubles_beyond_the_range_of_single_precision():
    # What some models and processors write for "never".
    row = np.array([1.0, np.finfo(np.float64).min, 2.0])
    assert Sampler(temperature=0).sample(row) == 2
    ids, probabilities = Sampler(1.0, seed=1).distribution(row)
    assert dict(zip(ids.tolist(), probabilities.tolist(), strict=True)).get(1, 0.0) == 0


@pytest.mark.parametrize("draws", [1.5, "2", -1, None])
def test_a_wrong_number_of_draws(draws):
    with pytest.raises(ConstrainError, match="draws must be"):
        steps.multinomial([1, 2], 1, draws)


@pytest.mark.parametrize("temperature", ["1", [1.0], 1j])
def test_a_wrong_temperature_for_a_while(temperature):
    sampler = Sampler(0.5, seed=1)
    with pytest.raises(ConstrainError, match="temperature must be a number"), sampler.at_temperature(temperature):
        pass
    assert sampler.temperature == 0.5
