"""A progress bar for what takes longer than a second, on stderr, and only if that is a terminal."""

from __future__ import annotations

import sys
from time import perf_counter
from types import TracebackType
from typing import Any

import click

_PATIENCE = 1.0


class Progress:
    """Counts up to ``length``; a bar appears after a second.

    Parameters
    ----------
    label : str
        Stands in front of the bar.
    length : int
        What :meth:`advance` adds up to.
    """

    def __init__(self, label: str, length: int) -> None:
        self._label = label
        self._length = length
        self._done = 0
        self._start = perf_counter()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def advance(self, steps: int = 1) -> None:
        """Note that some of it is done."""
        self._done += steps
        if self._bar is not None:
            self._bar.update(steps)
        elif perf_counter() - self._start > _PATIENCE and sys.stderr is not None and sys.stderr.isatty():
            self._bar = click.progressbar(length=self._length, label=self._label, file=sys.stderr)
            self._bar.__enter__()
            self._bar.update(self._done)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)
