"""The Triton kernel of engine/vocabulary/device_masks.py; importing it needs Triton, so it is not in the engine."""

# mypy: allow-untyped-defs, allow-incomplete-defs

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def apply_mask(
    logits,
    mask,
    indices,
    width,
    words,
    logits_stride,
    column_stride,
    mask_stride,
    HAS_INDICES: tl.constexpr,
    BLOCK_WORDS: tl.constexpr,
):
    """Set the logits of one row to -inf where bits of its mask are 0, and behind the mask's last bit.

    A program does 32 * BLOCK_WORDS logits.  It writes whole words of logits, sixteen bytes at a time: logits that are
    allowed beside forbidden ones are read and written again, which takes half as long as writing one by one.
    """
    row = tl.program_id(0).to(tl.int64)
    if HAS_INDICES:
        row = tl.load(indices + row)
    places = tl.program_id(1) * BLOCK_WORDS + tl.arange(0, BLOCK_WORDS)
    packed = tl.load(mask + row * mask_stride + places, mask=places < words, other=0)
    bits = tl.arange(0, 32)
    columns = places[:, None] * 32 + bits[None, :]
    is_there = columns < width
    at = logits + row * logits_stride + columns.to(tl.int64) * column_stride
    is_mixed = ((packed != 0) & (packed != -1))[:, None] & is_there
    old = tl.load(at, mask=is_mixed, other=0.0)
    is_forbidden = ((packed[:, None] >> bits[None, :]) & 1) == 0
    tl.store(at, tl.where(is_forbidden, float("-inf"), old), mask=(packed != -1)[:, None] & is_there)
