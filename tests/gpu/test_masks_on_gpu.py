"""Masks for logits on a GPU, of the sizes that servers have, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from constrain import apply_token_bitmask_inplace

torch = pytest.importorskip("torch", reason="torch is not installed")

WIDTH, PADDED = 128_256, 128_512


def bits_of(mask: np.ndarray[Any, Any]) -> Any:
    """bool[rows, 32 * words] on the GPU."""
    return torch.from_numpy(np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little")).cuda().bool()


def some_masks(rows: int, seed: int, words: int = WIDTH // 32) -> np.ndarray[Any, Any]:
    """Masks of which some allow little, some half, and some nearly all."""
    rng = np.random.default_rng(seed)
    mask = rng.integers(-(2**31), 2**31, (rows, words)).astype(np.int32)
    mask[::3] &= rng.integers(-(2**31), 2**31, mask[::3].shape).astype(np.int32) & 0x10000100
    mask[1::3] |= ~(mask[1::3] & 0x00400001)
    return mask


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("way", ["device", "array", "pinned"])
def test_a_batch(dtype: str, way: str) -> None:
    mask = some_masks(256, 1)
    given = {
        "device": lambda: torch.from_numpy(mask).cuda(),
        "array": lambda: mask.copy(),
        "pinned": lambda: torch.from_numpy(mask.copy()).pin_memory(),
    }[way]()
    logits = torch.randn(256, PADDED, device="cuda").to(getattr(torch, dtype))
    expected = logits.clone()
    expected[:, :WIDTH].masked_fill_(~bits_of(mask), -torch.inf)
    expected[:, WIDTH:] = -torch.inf
    busy = torch.randn(4096, 4096, device="cuda")
    for _ in range(20):
        busy = busy @ busy.clamp(-1, 1)
    apply_token_bitmask_inplace(logits, given)
    if way != "device":
        given[:] = 0  # as the next step of a server does, while the GPU is still busy
    assert torch.equal(logits, expected)


def test_rows_by_number() -> None:
    mask = some_masks(64, 2)
    rows = torch.randperm(64)[:40]
    for given in (rows, rows.tolist(), rows.numpy(), rows.cuda()):
        logits = torch.randn(64, PADDED, device="cuda")
        expected = logits.clone()
        bits = torch.nn.functional.pad(bits_of(mask), (0, PADDED - WIDTH))
        expected[rows] = expected[rows].masked_fill(~bits[rows], -torch.inf)
        apply_token_bitmask_inplace(logits, torch.from_numpy(mask).cuda(), indices=given)
        assert torch.equal(logits, expected)


def test_more_logits_than_numbers_of_32_bits_count() -> None:
    if torch.cuda.mem_get_info()[0] < 20 << 30:
        pytest.skip("needs 20 GB of the GPU's memory")
    rows = 17_000
    logits = torch.ones(rows, WIDTH, device="cuda", dtype=torch.bfloat16)
    assert logits.numel() > 2**31
    mask = some_masks(3, 3)
    apply_token_bitmask_inplace(logits, torch.from_numpy(mask).cuda().repeat(rows // 3 + 1, 1)[:rows])
    for row in (0, 1, rows // 2, rows - 2, rows - 1):
        assert torch.equal(torch.isneginf(logits[row]), ~bits_of(mask)[row % 3])


def test_streams_and_graphs() -> None:
    # As servers run their samplers: captured once, then played with other masks in the same memory.
    masks = torch.from_numpy(some_masks(32, 4)).cuda()
    logits = torch.randn(32, WIDTH, device="cuda")
    apply_token_bitmask_inplace(logits, masks)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        apply_token_bitmask_inplace(logits, masks)
    for seed in range(3):
        new = some_masks(32, 5 + seed)
        masks.copy_(torch.from_numpy(new))
        logits.copy_(torch.randn(32, WIDTH, device="cuda"))
        expected = logits.masked_fill(~bits_of(new), -torch.inf)
        graph.replay()
        assert torch.equal(logits, expected)
    side = torch.cuda.Stream()
    logits = torch.randn(32, WIDTH, device="cuda")
    expected = logits.masked_fill(~bits_of(new), -torch.inf)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        apply_token_bitmask_inplace(logits, new)
    side.synchronize()
    assert torch.equal(logits, expected)


def test_gradients_go_through_what_is_allowed() -> None:
    mask = some_masks(4, 8)
    weights = torch.ones(4, WIDTH, device="cuda", requires_grad=True)
    logits = weights * 2
    apply_token_bitmask_inplace(logits, torch.from_numpy(mask).cuda())
    logits[bits_of(mask)].sum().backward()
    assert torch.equal(weights.grad, 2.0 * bits_of(mask))


def test_masks_from_there_and_logits_here() -> None:
    busy = torch.randn(4096, 4096, device="cuda")
    for seed in range(5):
        mask = some_masks(64, 20 + seed)
        there = torch.from_numpy(mask).cuda()
        for _ in range(20):
            busy = busy @ busy.clamp(-1, 1)
        late = there + (busy[0, 0] != busy[0, 0]).int() * 0
        logits = torch.zeros(64, WIDTH)
        apply_token_bitmask_inplace(logits, late)
        assert torch.equal(torch.isneginf(logits), ~bits_of(mask).cpu())
