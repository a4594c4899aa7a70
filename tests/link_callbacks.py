"""A Python function in the place of a kernel that others call through a pointer (engine/storage/links.py)."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from constrain.engine.storage import links

# numba's convention: the result, an exception; the header as owner, parent, items, item size, address, shape and
# stride; then the two numbers that every link takes.
_WORD, _ADDRESS = ctypes.c_int64, ctypes.c_void_p
_Kernel = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    *(ctypes.POINTER(_WORD), _ADDRESS),
    *(_ADDRESS, _ADDRESS, _WORD, _WORD, _ADDRESS, _WORD, _WORD),
    *(_WORD, _WORD),
)
# Grammars keep the addresses as long as they live.
_kept: list[Any] = []


@contextlib.contextmanager
def replaced(link: int, function: Callable[[Callable[[], int], int, int], int]) -> Iterator[None]:
    """Tables that are made meanwhile have ``function(kernel, a, b)`` in the place of a link's kernel.

    ``kernel()`` is what the kernel returns for the same arguments.
    """
    addresses: Any = links.addresses
    address = int(addresses[link])
    original = _Kernel(address)

    def called(result: Any, error: Any, *words: Any) -> int:
        def kernel() -> int:
            assert original(result, error, *words) == 0
            return int(result[0])

        result[0] = function(kernel, words[-2], words[-1])
        return 0

    callback = _Kernel(called)
    _kept.append(callback)
    addresses[link] = ctypes.cast(callback, ctypes.c_void_p).value
    try:
        yield
    finally:
        # This alone, since other kernels may have registered meanwhile.
        addresses[link] = address
