"""The masks that callers bring: which of them kernels can write to, and how rows get into the others.

Kernels write rows of exactly the vocabulary's width in one piece of memory.  Engines have other masks too: as wide as
the model's padded output, parts of larger arrays, tensors on a device.  A row for these is made apart and copied.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from constrain.engine.vocabulary.bitmasks import Bitmask
from constrain.errors import ConstrainError


class MaskRows(NamedTuple):
    """A mask that has been looked at.

    Attributes
    ----------
    array : int32[batch, width]
        A numpy array that shares its memory; for a torch tensor that is not in this machine's memory, the tensor.
    is_direct : bool
        Whether kernels can write to it.  If not, :meth:`put` has to.
    """

    array: Any
    is_direct: bool

    def get(self, indices: list[int], words: int) -> Bitmask:
        """A copy of the beginnings of some rows: int32[n, words]."""
        found = self.array[indices, :words]
        return np.ascontiguousarray(found if isinstance(found, np.ndarray) else found.cpu().numpy())

    def put(self, index: int | list[int], row: Bitmask) -> None:
        """Write a row, int32[words], or several, int32[n, words]; what the mask has behind them is cleared."""
        array, words = self.array, row.shape[-1]
        array[index, :words] = row if isinstance(array, np.ndarray) else array.new_tensor(row)
        array[index, words:] = 0


def check_bitmask(mask: Any, index: int, words: int) -> MaskRows:
    """Look at a mask in which row ``index`` is to be written, ``words`` wide at least.

    Raises
    ------
    ConstrainError
        If it is no int32 array of two dimensions, too narrow, or read-only, its rows share memory, or there is no such
        row.
    """
    if isinstance(mask, np.ndarray):
        if mask.dtype != np.int32:
            raise ConstrainError(f"the mask must have dtype int32, not {mask.dtype}")
        if not mask.flags.writeable:
            raise ConstrainError("the mask must be writable")
        array: Any = mask
    else:
        array = _of_tensor(mask)
    if array.ndim != 2 or array.shape[1] < words:
        raise ConstrainError(
            f"the mask must have shape [batch, {words}] for this vocabulary (or be wider), not {list(array.shape)}: "
            "use constrain.allocate_token_bitmask"
        )
    if not 0 <= index < array.shape[0]:
        raise ConstrainError(f"mask row {index} is out of range, the mask has {array.shape[0]} rows")
    is_direct = isinstance(array, np.ndarray) and array.shape[1] == words and array.flags.carray
    if not is_direct and _share_memory(array):
        raise ConstrainError("the rows of the mask share memory: each needs its own")
    return MaskRows(array, is_direct)


def _share_memory(array: Any) -> bool:
    """Whether a word of one row is one of another, too; the array is a numpy array or a tensor."""
    steps, word = (array.strides, array.itemsize) if isinstance(array, np.ndarray) else (array.stride(), 1)
    (inner, count), (outer, others) = sorted((abs(step), size) for step, size in zip(steps, array.shape, strict=True))
    return bool((count > 1 and inner < word) or (others > 1 and outer < inner * (count - 1) + word))


def _of_tensor(mask: Any) -> Any:
    """A torch tensor as a numpy array on its memory, or itself where that is a device's."""
    if not (hasattr(mask, "numpy") and hasattr(mask, "new_tensor")):
        raise ConstrainError(f"the mask must be a numpy int32 array or a torch tensor, not {type(mask).__name__}")
    if str(mask.dtype) != "torch.int32":
        raise ConstrainError(f"the mask must have dtype int32, not {str(mask.dtype).removeprefix('torch.')}")
    if mask.is_meta:
        raise ConstrainError("the mask is a tensor on the device 'meta', which has no data")
    return mask.numpy() if mask.is_cpu else mask
