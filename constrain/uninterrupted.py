"""Calls that no signal handler may interrupt.

numba reads its tables of types with generators that an exception ends for good: interrupted while it compiles a kernel
or reads one from its cache, it cannot compile another in that process.  So Ctrl-C during a first start would be the end
of a notebook.  Masking signals is no help, since a signal that another thread receives still runs its handler in the
main thread.  So the handlers are held back, and have their signals afterwards.

The same goes for the import of numpy: no process can load its extension modules twice.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

Result = TypeVar("Result")

_is_held = False


def uninterrupted(call: Callable[..., Result], *args: Any) -> Result:
    """What ``call(*args)`` returns, or raises; signals that arrive meanwhile are handled when it is over."""
    global _is_held
    # Handlers run in the main thread only.
    if _is_held or threading.current_thread() is not threading.main_thread():
        return call(*args)
    handlers = {number: handler for number in signal.valid_signals() if callable(handler := signal.getsignal(number))}
    arrived: list[int] = []
    interruption: BaseException | None = None
    _is_held = True
    try:
        for number in handlers:
            signal.signal(number, lambda number, _frame: arrived.append(number))
        return call(*args)
    finally:
        for number, handler in handlers.items():
            try:
                signal.signal(number, handler)
            except BaseException as error:  # of a handler that has just been put back
                interruption = error
        _is_held = False
        for late in dict.fromkeys(arrived):
            signal.raise_signal(late)
        if interruption is not None:
            raise interruption


def load_numpy() -> None:
    """Import numpy whole; call it before anything that would import it where an interrupt is to be expected."""
    if "numpy" not in sys.modules:
        uninterrupted(import_module, "numpy")
