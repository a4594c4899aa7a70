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

    A program does 32 * BLOCK_WORDS logits.  It writes those that are forbidden, and reads none.
    """
    row = tl.program_id(0).to(tl.int64)
    if HAS_INDICES:
        row = tl.load(indices + row)
    places = tl.program_id(1) * BLOCK_WORDS + tl.arange(0, BLOCK_WORDS)
    packed = tl.load(mask + row * mask_stride + places, mask=places < words, other=0)
    bits = tl.arange(0, 32)
    is_forbidden = ((packed[:, None] >> bits[None, :]) & 1) == 0
    columns = places[:, None] * 32 + bits[None, :]
    tl.store(
        logits + row * logits_stride + columns.to(tl.int64) * column_stride,
        float("-inf"),
        mask=is_forbidden & (columns < width),
    )
