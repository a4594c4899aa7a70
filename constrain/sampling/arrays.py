"""Logits and masks of any library as numpy arrays; torch's tensors without importing torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.errors import ConstrainError


def as_floats(logits: Any) -> NDArray[np.float32]:
    """``logits`` as float32[...]; a copy only where they are something else.

    A tensor may require gradients, lie on another device, and have a dtype that numpy lacks (``bfloat16``).

    Raises :class:`ConstrainError` for what is no array of real numbers.
    """
    array: NDArray[np.float32] = _numbers(logits, np.dtype(np.float32), "logits")
    return array


def as_doubles(probabilities: Any) -> NDArray[np.float64]:
    """The same of probabilities, as float64[...]."""
    array: NDArray[np.float64] = _numbers(probabilities, np.dtype(np.float64), "probabilities")
    return array


def _numbers(values: Any, dtype: np.dtype[Any], what: str) -> NDArray[Any]:
    try:
        if _is_tensor(values):
            if values.is_complex():
                raise TypeError(f"its dtype is {values.dtype}")
            # Converted while it is a tensor: numpy has no bfloat16.
            values = values.detach()
            values = (values.float() if dtype == np.float32 else values.double()).cpu().numpy()
        array = np.asarray(values)
        if array.dtype.kind in "cMmOUS":
            raise TypeError(f"its dtype is {array.dtype}")
        # Beyond the range of single precision is infinite: -1.8e308, a usual way to say "never", is -inf.
        with np.errstate(over="ignore"):
            return np.asarray(array, dtype=dtype)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConstrainError(f"{what} cannot be read as an array of {dtype}: {reason}") from None


def as_mask(mask: Any) -> Any:
    """A mask as numpy has it; only a tensor is changed, and keeps its dtype."""
    return mask.detach().cpu().numpy() if _is_tensor(mask) else mask


def _is_tensor(value: Any) -> bool:
    return not isinstance(value, np.ndarray) and hasattr(value, "detach") and hasattr(value, "is_complex")
