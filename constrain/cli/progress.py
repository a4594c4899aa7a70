"""A progress bar for what takes longer than a second, on stderr, and only if that is a terminal."""

from __future__ import annotations

import sys
from time import perf_counter
from types import TracebackType
from typing import Any

import click

_PATIENCE = 1.0


class Progress:
    """Counts up to ``length``; a bar appears after a second, with how much is left and what is at work.

    Parameters
    ----------
    label : str
        Stands in front of the bar.
    length : int
        What :meth:`advance` adds up to.
    unit : str, optional
        What is counted, in the plural: the bar then says how many of them are left.
    """

    def __init__(self, label: str, length: int, unit: str = "") -> None:
        self._label = label
        self._length = length
        self._unit = unit
        self._done = 0
        self._item = ""
        self._start = perf_counter()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def begin(self, item: str) -> None:
        """Name what is worked on from now on; it stands behind the bar until something else is named."""
        self._item = item
        self._show(0)

    def advance(self, steps: int = 1) -> None:
        """Note that some of it is done."""
        self._done += steps
        self._show(steps)

    def _show(self, steps: int) -> None:
        if self._bar is not None:
            self._bar.update(steps, self._words())
            if steps == 0:
                self._bar.render_progress()
        elif perf_counter() - self._start > _PATIENCE and sys.stderr is not None and sys.stderr.isatty():
            self._bar = click.progressbar(
                length=self._length, label=self._label, file=sys.stderr, item_show_func=lambda words: words
            )
            self._bar.__enter__()
            self._bar.update(self._done, self._words())
            self._bar.render_progress()

    def _words(self) -> str:
        """What is left, and what is at work."""
        left = max(self._length - self._done, 0)
        return ": ".join(
            filter(None, (f"{left:,} of {self._length:,} {self._unit} left" if self._unit else "", self._item))
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)
