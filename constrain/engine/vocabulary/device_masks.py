"""Masks for logits in torch tensors: a Triton kernel on a GPU where Triton is, torch operations on any other device."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from constrain.errors import ConstrainError

_BLOCK_WORDS = 128
"""Words of a mask that one program of the kernel reads: 4,096 logits."""


def apply_to_tensor(logits: Any, mask: Any, indices: Any = None) -> None:
    """Set the logits of forbidden tokens to minus infinity; as :func:`constrain.apply_token_bitmask_inplace`."""
    torch = import_module("torch")
    words = torch.from_numpy(np.ascontiguousarray(mask)) if isinstance(mask, np.ndarray) else mask
    if not isinstance(words, torch.Tensor):
        raise ConstrainError(f"the mask must be a numpy array or a torch tensor, not {type(mask).__name__}")
    if words.dtype != torch.int32:
        raise ConstrainError(f"the mask must have dtype int32, not {words.dtype}")
    if not logits.is_floating_point():
        raise ConstrainError(f"logits must be floating point, not {logits.dtype}")
    rows = words.reshape(1, -1) if words.ndim == 1 else words
    n_rows = 1 if logits.ndim == 1 else logits.shape[0]
    if logits.ndim not in (1, 2) or rows.ndim != 2 or rows.shape[0] not in (1, n_rows):
        raise ConstrainError(f"logits {list(logits.shape)} and mask {list(words.shape)} do not fit together")
    if not logits.numel() or (indices is not None and not len(indices)):
        return
    device = logits.device
    if rows.device != device:
        rows = _moved(rows, device)
    if indices is not None:
        indices = torch.as_tensor(indices, dtype=torch.int64)
        if indices.device != device:
            indices = _moved(indices, device)
    table = logits.unsqueeze(0) if logits.ndim == 1 else logits
    # A parameter may only be changed where no gradient is recorded; elsewhere the change is part of the graph.
    is_recorded = logits.requires_grad and torch.is_grad_enabled()
    if device.type == "cuda" and not is_recorded and _has_triton():
        apply_with_triton(table, rows, indices)
        return
    with torch.set_grad_enabled(is_recorded and not logits.is_leaf):
        _apply_with_operations(torch, table, rows, indices)


def _moved(tensor: Any, device: Any) -> Any:
    """The same on another device.

    The copy is not waited for only where the caller may change what is copied: from memory that is not pinned, which is
    taken over before the call returns.
    """
    is_taken_over = device.type == "cuda" and tensor.device.type == "cpu" and not tensor.is_pinned()
    return tensor.to(device, non_blocking=is_taken_over)


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def _apply_with_operations(torch: Any, logits: Any, rows: Any, indices: Any) -> None:
    if indices is not None and len(rows) > 1:
        rows = rows[indices]
    shifts = torch.arange(32, dtype=torch.int32, device=logits.device)
    forbidden = ((rows.unsqueeze(-1) >> shifts) & 1 == 0).reshape(rows.shape[0], -1)
    width = logits.shape[-1]
    if forbidden.shape[1] < width:
        forbidden = torch.nn.functional.pad(forbidden, (0, width - forbidden.shape[1]), value=True)
    forbidden = forbidden[:, :width]
    if indices is None:
        logits.masked_fill_(forbidden, float("-inf"))
    else:
        logits[indices] = logits[indices].masked_fill(forbidden, float("-inf"))


@cache
def _kernel() -> Any:
    """The Triton kernel, which is compiled when it is first called, for each dtype."""
    # Triton reads the source of a kernel, and names in it are those of the module.
    return import_module("constrain.integrations.triton_masks").apply_mask


def _current_device(device: Any) -> Any:
    cuda = import_module("torch").cuda
    return nullcontext() if device.type != "cuda" or device.index == cuda.current_device() else cuda.device(device)


def apply_with_triton(logits: Any, rows: Any, indices: Any = None) -> None:
    """The same with the kernel: float[n, vocab] of any strides, int32[1 or n, words], int64[m] or None."""
    width = logits.shape[1]
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    blocks = -(-width // (32 * _BLOCK_WORDS))
    count = logits.shape[0] if indices is None else len(indices)
    # Triton starts a kernel on the current device, which need not be that of the logits.
    with _current_device(logits.device):
        _kernel()[(count, blocks)](
            logits,
            rows,
            # What is not read, since no argument may be missing.
            rows if indices is None else indices,
            width,
            rows.shape[1],
            logits.stride(0),
            logits.stride(1),
            rows.stride(0) if rows.shape[0] > 1 else 0,
            HAS_INDICES=indices is not None,
            BLOCK_WORDS=_BLOCK_WORDS,
        )
