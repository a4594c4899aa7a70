"""Masks, in another thread while the model runs where that pays.

The mask of a step depends on the tokens before it, as the model's answer does, so the two can be computed at
the same time: the kernels of both run without Python's lock.  But handing a job to a thread and taking its result back
costs 50 us, and 200 on a busy machine, while a mask takes 2 us where it is known and some 10 where it is not.
So a thread is used only where masks have lately been dear and the model slow.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from time import perf_counter
from typing import Generic, TypeVar

from constrain.forking import renew_in_child
from constrain.generation.statistics import Statistics

T = TypeVar("T")

SLOW_MODEL_SECONDS = 1e-3
DEAR_MASK_SECONDS = 2e-4
"""Where one answer and one mask have lately taken more than these, masks are computed while the model runs."""

_RECENT = 0.25


class Overlap(Generic[T]):
    """Runs the filling of a mask and the asking of a model, one after the other or at once.

    Parameters
    ----------
    enabled : bool or None
        None: where model and masks have lately been slow enough for it to pay.
    """

    def __init__(self, enabled: bool | None) -> None:
        self._enabled = enabled if (os.cpu_count() or 1) > 1 or enabled is not None else False
        self._model_seconds = 0.0
        self._mask_seconds = 0.0
        self._pool: ThreadPoolExecutor | None = None
        self._filling: Future[float] | None = None
        renew_in_child(self)

    def _renew_after_fork(self) -> None:
        self._pool = self._filling = None

    @property
    def pays(self) -> bool:
        """Whether :meth:`both` is to be used for the next step."""
        if self._enabled is not None:
            return self._enabled
        return self._model_seconds > SLOW_MODEL_SECONDS and self._mask_seconds > DEAR_MASK_SECONDS

    def filled(self, seconds: float) -> None:
        """Note what a mask took."""
        self._mask_seconds += _RECENT * (seconds - self._mask_seconds)

    def ask(self, ask: Callable[[], T], statistics: Statistics) -> T:
        """Ask the model."""
        start = perf_counter()
        answer = ask()
        seconds = perf_counter() - start
        statistics.model_seconds += seconds
        # The first answer includes reading the prompt, and says little about the next.
        if statistics.tokens:
            self._model_seconds += _RECENT * (seconds - self._model_seconds)
        return answer

    def both(self, fill: Callable[[], None], ask: Callable[[], T], statistics: Statistics) -> T:
        """Fill the mask in another thread and ask the model in this one; returns when both are done."""

        def timed() -> float:
            start = perf_counter()
            fill()
            return perf_counter() - start

        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="constrain-mask")
        self._filling = filling = self._pool.submit(timed)
        try:
            answer = self.ask(ask, statistics)
        finally:
            # Whatever happens, nothing may write to the mask after this.
            start = perf_counter()
            spent = filling.result()
            self.filled(spent)
            waited = perf_counter() - start
            statistics.mask_seconds += waited
            statistics.hidden_mask_seconds += max(0.0, spent - waited)
        return answer

    def settle(self) -> None:
        """Wait for a mask that is still being filled, as where an interrupt has ended the wait for it."""
        if self._filling is not None:
            wait([self._filling])

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None
