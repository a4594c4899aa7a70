"""Something happens at one place of a call, such as an interrupt: the places are counted by a trace function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def reaches(
    call: Callable[[], Any],
    place: int,
    happens: Callable[[], None],
    *,
    files: Callable[[str], bool],
    counts: Callable[[FrameType, str], bool] = lambda _frame, _event: True,
) -> bool:
    """Call; whether it comes to so many places in some files, at the last of which ``happens()`` is called.

    Places are the lines, and the beginnings and ends of functions, for which ``counts(frame, event)`` is true.
    """
    left = place

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        if not files(frame.f_code.co_filename):
            return None
        if counts(frame, event):
            left -= 1
            if left == 0:
                happens()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return left <= 0


def interrupt() -> None:
    raise KeyboardInterrupt
