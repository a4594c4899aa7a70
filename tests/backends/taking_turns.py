"""Threads that ask one backend at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np


def check_that_threads_take_turns(backend: Any, judge: Any, ids: list[int]) -> None:
    """Each thread reads a text of its own, and has the logits of that text however long it keeps them."""
    texts = [[*ids[:4], *ids[start : start + 30]] for start in range(8, 56, 8)]

    def read(text: list[int]) -> list[Any]:
        return [backend.logits(text[:length]) for length in range(5, len(text))]

    with ThreadPoolExecutor(len(texts)) as pool:
        found = list(pool.map(read, texts))
    for text, rows in zip(texts, found, strict=True):
        for length, row in enumerate(rows, 5):
            assert np.allclose(row, judge(text[:length]), atol=1e-3)
