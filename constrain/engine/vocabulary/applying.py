"""Masks for logits: what a mask forbids becomes -inf, in numpy arrays and torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.engine.vocabulary.bitmasks import forbid_logits
from constrain.engine.vocabulary.device_masks import apply_to_tensor
from constrain.errors import ConstrainError


def apply_token_bitmask_inplace(logits: Any, mask: Any, *, indices: Any = None) -> None:
    """Set the logits of forbidden tokens to minus infinity.

    Parameters
    ----------
    logits : numpy array or torch tensor, float[vocab] or float[batch, vocab]
        Changed in place.  It may be wider than the mask (models pad their output layer): what lies
        behind the mask's last bit is forbidden.  A tensor may be on any device, and have any strides; on a GPU a Triton
        kernel does it where Triton is installed.
    mask : numpy array or torch tensor, int32[words] or int32[batch, words]
        One row for all, or one row for each row of ``logits``.
    indices : sequence of int, optional
        The rows of ``logits`` to change, each of them once; the others stay as they are.  The mask has rows for all.

    Raises
    ------
    ConstrainError
        If dtypes or shapes do not fit, or an index is out of range.
    """
    _apply_mask(logits, mask, indices)


def _apply_mask(logits: Any, mask: Any, indices: Any) -> None:
    if not isinstance(logits, np.ndarray):
        if not hasattr(logits, "masked_fill_"):
            raise ConstrainError(f"logits must be a numpy array or a torch tensor, not {type(logits).__name__}")
        apply_to_tensor(logits, mask, _checked_rows(indices, logits))
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
    chosen = _checked_rows(indices, logits)
    if chosen is not None:
        for row in chosen.tolist():
            part = logits if logits.ndim == 1 else logits[row]
            _apply_mask(part, rows[row if len(rows) > 1 else 0], None)
        return
    if table.dtype in (np.float32, np.float64) and table.flags.c_contiguous and np.shares_memory(table, logits):
        forbid_logits(table, np.ascontiguousarray(rows), rows.shape[0] == 1)
        return
    allowed = np.zeros((rows.shape[0], logits.shape[-1]), bool)
    bits = np.unpackbits(np.ascontiguousarray(rows).view(np.uint8), axis=1, bitorder="little").astype(bool)
    width = min(bits.shape[1], allowed.shape[1])
    allowed[:, :width] = bits[:, :width]
    logits[...] = np.where(allowed.reshape(logits.shape) if logits.ndim == 1 else allowed, logits, -np.inf)


def _checked_rows(indices: Any, logits: Any) -> Any:
    """The indices as int64[n]; None for all rows."""
    if indices is None:
        return None
    rows = np.asarray(indices.tolist() if hasattr(indices, "tolist") else indices)
    if rows.ndim != 1 or (len(rows) and not np.issubdtype(rows.dtype, np.integer)):
        raise ConstrainError("indices must be integers, one after the other")
    rows = rows.astype(np.int64)
    height = 1 if logits.ndim == 1 else logits.shape[0]
    outside = rows[(rows < 0) | (rows >= height)]
    if len(outside):
        raise ConstrainError(f"row {outside[0]} is out of range, the logits have {height} rows")
    if len(np.unique(rows)) < len(rows):
        raise ConstrainError("indices names a row twice")
    return rows
