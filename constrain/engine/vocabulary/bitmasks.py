"""Token bitmasks: int32[batch, ceil(size / 32)]; token ``i`` is bit ``i % 32`` of word ``i // 32``.

The layout is the one that XGrammar and llguidance use, so that code written for theirs can take ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.engine.storage.jit import njit_entry
from constrain.errors import ConstrainError
from constrain.kernels.language import boolean, float32, float64, int32, void

Bitmask = np.ndarray[Any, np.dtype[np.int32]]


def words_for(size: int) -> int:
    """How many int32 words hold ``size`` bits."""
    return (size + 31) // 32


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> Bitmask:
    """A bitmask for ``batch_size`` sequences: int32[batch_size, ceil(vocab_size / 32)], all bits set.

    Raises
    ------
    ConstrainError
        If ``batch_size`` or ``vocab_size`` is less than 1.
    """
    if batch_size < 1 or vocab_size < 1:
        raise ConstrainError(
            f"a bitmask needs a batch and a vocabulary of at least 1, not {batch_size} and {vocab_size}"
        )
    return np.full((batch_size, words_for(vocab_size)), -1, np.int32)


def is_allowed(row: Bitmask, token: int) -> bool:
    """Whether a token is in a row of a mask, int32[words]."""
    return bool(int(row[token >> 5]) >> (token & 31) & 1)


def allow(row: Bitmask, token: int) -> None:
    """Put a token into a row of a mask, int32[words]."""
    row[token >> 5] |= np.uint32(1 << (token & 31)).astype(np.int32)


def forbid(row: Bitmask, token: int) -> None:
    """Take a token out of a row of a mask, int32[words]."""
    row[token >> 5] &= ~np.uint32(1 << (token & 31)).astype(np.int32)


@njit_entry(void(float32[:, ::1], int32[:, ::1], boolean), void(float64[:, ::1], int32[:, ::1], boolean))
def _apply(logits, mask, shared):  # type: ignore[no-untyped-def]
    """Set ``logits[row, i]`` to -inf where bit ``i`` of the row's mask is 0, and behind the mask's last bit."""
    bits = 32 * mask.shape[1]
    for row in range(logits.shape[0]):
        words = mask[0 if shared else row]
        for i in range(logits.shape[1]):
            if i >= bits or not (words[i >> 5] >> (i & 31)) & 1:
                logits[row, i] = -np.inf


def apply_token_bitmask_inplace(logits: Any, mask: Any) -> None:
    """Set the logits of forbidden tokens to minus infinity.

    Parameters
    ----------
    logits : numpy array or torch tensor, float[vocab] or float[batch, vocab]
        Changed in place.  It may be wider than the mask (models pad their output layer): what lies
        behind the mask's last bit is forbidden.
    mask : numpy array or torch tensor, int32[words] or int32[batch, words]
        One row for all, or one row for each row of ``logits``.

    Raises
    ------
    ConstrainError
        If dtypes or shapes do not fit.
    """
    _apply_mask(logits, mask)


def _apply_mask(logits: Any, mask: Any) -> None:
    if not isinstance(logits, np.ndarray):
        if not hasattr(logits, "masked_fill_"):
            raise ConstrainError(f"logits must be a numpy array or a torch tensor, not {type(logits).__name__}")
        _apply_torch(logits, mask)
        return
    if isinstance(mask, np.ndarray):
        words = mask
    elif hasattr(mask, "detach"):
        words = mask.detach().cpu().numpy()
    else:
        raise ConstrainError(f"the mask must be a numpy array or a torch tensor, not {type(mask).__name__}")
    if words.dtype != np.int32:
        raise ConstrainError(f"the mask must have dtype int32, not {words.dtype}")
    rows = words.reshape(1, -1) if words.ndim == 1 else words
    if not np.issubdtype(logits.dtype, np.floating):
        raise ConstrainError(f"logits must be floating point, not {logits.dtype}")
    if not logits.flags.writeable:
        raise ConstrainError("the logits must be writable")
    table = logits.reshape(1, -1) if logits.ndim == 1 else logits
    if table.ndim != 2 or rows.ndim != 2 or rows.shape[0] not in (1, table.shape[0]):
        raise ConstrainError(f"logits {list(logits.shape)} and mask {list(words.shape)} do not fit together")
    if table.dtype in (np.float32, np.float64) and table.flags.c_contiguous and np.shares_memory(table, logits):
        _apply(table, np.ascontiguousarray(rows), rows.shape[0] == 1)
        return
    allowed = np.zeros((rows.shape[0], logits.shape[-1]), bool)
    bits = np.unpackbits(np.ascontiguousarray(rows).view(np.uint8), axis=1, bitorder="little").astype(bool)
    width = min(bits.shape[1], allowed.shape[1])
    allowed[:, :width] = bits[:, :width]
    logits[...] = np.where(allowed.reshape(logits.shape) if logits.ndim == 1 else allowed, logits, -np.inf)


def _apply_torch(logits: Any, mask: Any) -> None:
    import torch

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
    rows = rows.to(logits.device)
    shifts = torch.arange(32, dtype=torch.int32, device=logits.device)
    forbidden = ((rows.unsqueeze(-1) >> shifts) & 1 == 0).reshape(rows.shape[0], -1)
    width = logits.shape[-1]
    if forbidden.shape[1] < width:
        forbidden = torch.nn.functional.pad(forbidden, (0, width - forbidden.shape[1]), value=True)
    forbidden = forbidden[:, :width]
    # A parameter may only be changed where no gradient is recorded; elsewhere the change is part of the graph.
    with torch.set_grad_enabled(torch.is_grad_enabled() and not (logits.requires_grad and logits.is_leaf)):
        logits.masked_fill_(forbidden[0] if logits.ndim == 1 else forbidden, float("-inf"))
