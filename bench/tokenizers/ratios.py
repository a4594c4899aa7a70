"""Group: short calls, ours and the reference in turn, so that the ratio holds on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from bench.tokenizers.measuring import head, row
from bench.tokenizers.subjects import Subject, ids_of
from bench.tokenizers.texts import SHORT, mixed

_ROUNDS = 60
_SECONDS = 0.001
_UNICODE = "Élève naïve, garçon, Straße 人工智能"
_PROSE = "The quick brown fox jumps over the lazy dog, and it was a bright cold day in April. "


def ratios(subjects: list[Subject]) -> None:
    """The time of the reference divided by ours: above 1 we are faster."""
    lines = [line for line in mixed(60_000).split("\n") if line]
    head("ratios: reference / ours, best of many rounds", "decode 30 ids", "30 characters", "Unicode", "batch of lines")
    for ours, reference in zip(subjects[::2], subjects[1::2], strict=True):
        ids = (ids_of(ours, _PROSE) * 3)[:30]
        calls = [
            (
                partial(each.decode, ids),
                partial(each.encode, SHORT),
                partial(each.encode, _UNICODE),
                partial(each.batch, lines),
            )
            for each in (ours, reference)
        ]
        figures = [_best_in_turn(*pair) for pair in zip(*calls, strict=True)]
        row(ours, *(f"{theirs / mine:.2f}" for mine, theirs in figures))


def _best_in_turn(*works: Callable[[], Any]) -> list[float]:
    """The least seconds of a call of each, measured in rounds in which each has its turn."""
    loops = []
    for work in works:
        work()
        begin = time.perf_counter()
        work()
        loops.append(max(1, int(_SECONDS / (time.perf_counter() - begin))))
    best = [float("inf")] * len(works)
    for _ in range(_ROUNDS):
        for place, work in enumerate(works):
            begin = time.perf_counter()
            for _ in range(loops[place]):
                work()
            best[place] = min(best[place], (time.perf_counter() - begin) / loops[place])
    return best
