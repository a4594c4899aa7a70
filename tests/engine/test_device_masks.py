"""Masks for logits in tensors, token by token: torch operations, and the Triton kernel in Triton's interpreter.

Where there is a GPU the kernel runs there, and not in the interpreter, which is a setting for the whole process.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from constrain.engine.vocabulary.applying import apply_token_bitmask_inplace
from constrain.engine.vocabulary.device_masks import apply_with_triton
from constrain.errors import ConstrainError

torch = pytest.importorskip("torch", reason="torch is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    # Triton looks at it when a kernel is defined, which is when it is first used.
    os.environ.setdefault("TRITON_INTERPRET", "1")

SHAPES = [(1, 32, 1), (3, 40, 2), (2, 4096, 128), (4, 5000, 150), (2, 4200, 130), (3, 300, 200)]
DTYPES = ["float32", "float16", "bfloat16", "float64"]


def some_logits(rng: np.random.Generator, rows: int, width: int, dtype: str, strides: str) -> Any:
    """Logits in memory of different orders; 0 is among them."""
    numbers = torch.tensor(rng.integers(-9, 9, (rows, width)), dtype=getattr(torch, dtype))
    if strides == "columns":
        return numbers.t().contiguous().t()
    if strides == "part":
        wide = torch.full((2 * rows, width + 7), 5, dtype=numbers.dtype)
        wide[::2, 3 : 3 + width] = numbers
        return wide[::2, 3 : 3 + width]
    return numbers


def on_device(logits: Any) -> Any:
    """The same logits on the GPU, in memory of the same order."""
    if DEVICE == "cpu":
        return logits
    there = torch.empty_strided(logits.shape, logits.stride(), dtype=logits.dtype, device=DEVICE)
    return there.copy_(logits)


def masked(logits: Any, mask: np.ndarray[Any, Any], indices: Any = None) -> Any:
    """The same, token by token."""
    expected = logits.clone()
    for row in range(len(logits)) if indices is None else indices:
        words = mask[row if len(mask) > 1 else 0]
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        for token in range(logits.shape[1]):
            if token >= len(bits) or not bits[token]:
                expected[row, token] = -torch.inf
    return expected


def cases() -> Any:
    rng = np.random.default_rng(1)
    for number, (rows, width, words) in enumerate(SHAPES):
        for dtype in DTYPES:
            strides = ("plain", "columns", "part")[(number + len(dtype)) % 3]
            height = 1 if number % 3 == 2 else rows
            mask = rng.integers(-(2**31), 2**31, (height, words)).astype(np.int32)
            mask[0, 0] = -1 << 31
            indices = None if number % 2 else rng.permutation(rows)[: rng.integers(0, rows + 1)].tolist()
            yield some_logits(rng, rows, width, dtype, strides), mask, indices


@pytest.mark.parametrize("way", ["operations", "triton"])
def test_logits_are_what_the_mask_says(way: str) -> None:
    if way == "triton":
        pytest.importorskip("triton", reason="Triton is not installed")
    for logits, mask, indices in cases():
        expected = masked(logits, mask, indices)
        rows = torch.from_numpy(mask)
        if way == "triton":
            logits = on_device(logits)
            numbers = None if indices is None else torch.tensor(indices, dtype=torch.int64, device=DEVICE)
            apply_with_triton(logits, rows.to(DEVICE), numbers)
        else:
            apply_token_bitmask_inplace(logits, rows, indices=indices)
        assert torch.equal(logits.cpu(), expected)


def test_the_kernel_leaves_what_is_around_alone() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    wide = torch.zeros(4, 50, device=DEVICE)
    # A mask with strides of its own, too.
    mask = torch.zeros(4, 6, dtype=torch.int32, device=DEVICE)[::2, ::3]
    apply_with_triton(wide[1:3, 5:45], mask)
    assert torch.isneginf(wide[1:3, 5:45]).all()
    assert (wide == 0).sum() == 4 * 50 - 2 * 40


@pytest.mark.parametrize("height", [1, 3])
def test_no_row_and_no_column(height: int) -> None:
    mask = torch.zeros(height, 1, dtype=torch.int32)
    logits = torch.zeros(3, 32, device=DEVICE)
    for rows in (mask, mask.numpy(), mask.to(DEVICE)):
        apply_token_bitmask_inplace(logits, rows, indices=[])
        apply_token_bitmask_inplace(logits[:, :0], rows)
    apply_token_bitmask_inplace(logits[:0], mask[:1])
    assert (logits == 0).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_rows_of_arrays(dtype: str) -> None:
    rng = np.random.default_rng(2)
    for height in (1, 3):
        mask = rng.integers(-(2**31), 2**31, (height, 3)).astype(np.int32)
        logits = rng.integers(-9, 9, (3, 100)).astype(dtype)
        expected = masked(torch.from_numpy(logits), mask, [2, 0]).numpy()
        apply_token_bitmask_inplace(logits, mask, indices=np.array([2, 0]))
        np.testing.assert_array_equal(logits, expected)
    row = np.zeros(100, dtype)
    apply_token_bitmask_inplace(row, mask[:1], indices=[])
    assert (row == 0).all()
    apply_token_bitmask_inplace(row, np.zeros((1, 3), np.int32), indices=[0])
    assert np.isneginf(row).all()


@pytest.mark.parametrize(
    ("indices", "reason"),
    [
        ([2], "row 2 is out of range, the logits have 2 rows"),
        ([-1], "row -1 is out of range"),
        ([0, 0], "names a row twice"),
        ([0.5], "must be integers"),
        ([[0]], "must be integers"),
    ],
)
def test_rows_that_are_refused(indices: Any, reason: str) -> None:
    mask = np.zeros((2, 1), np.int32)
    for logits in (np.zeros((2, 32), np.float32), torch.zeros(2, 32)):
        with pytest.raises(ConstrainError, match=reason):
            apply_token_bitmask_inplace(logits, mask, indices=indices)
        assert (logits == 0).all()
