"""A batch of texts that several threads share.

The kernels that encode let go of Python's lock, so long texts are encoded on several cores at once.  What comes before
and behind a kernel holds the lock, so with short texts threads only stand in each other's way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

from constrain.errors import TokenizerError
from constrain.tokenizers.arguments import checked_id

Result = TypeVar("Result")

_LONG = 1024
"""Characters of a text from which on threads gain something (measured: see ``threads`` in docs/tokenizers.md)."""

_PARTS = 4
"""Parts of the batch for each thread: none has to wait long for the one whose texts take longest."""


def threads_of(threads: int | None, texts: Sequence[str], gain: bool) -> int:
    """How many threads a batch is given.

    Parameters
    ----------
    threads : int or None
        What the caller asks for; None: what gains time.
    texts : sequence of str
    gain : bool
        Whether the tokenizer lets go of Python's lock.

    Raises :class:`TokenizerError` if ``threads`` is no number from 1 on.
    """
    if threads is not None:
        if checked_id(threads) < 1:
            raise TokenizerError(f"threads must be 1 or more, not {threads}")
        return min(threads, len(texts))
    characters = sum(map(len, texts)) if gain else 0
    # A thread is made in 0.1 ms, in which 1,000 tokens are encoded.
    if characters < 32 * _LONG or characters < _LONG * len(texts):
        return 1
    return min(_cores(), len(texts))


def map_on_threads(function: Callable[[str], Result], texts: Sequence[str], threads: int) -> list[Result]:
    """``function`` of each text, in their order; the error of the first text that has one."""

    def part(bounds: tuple[int, int]) -> list[Result]:
        return [function(text) for text in texts[slice(*bounds)]]

    # Threads of its own: none outlives the call, and a process can be forked at any time.
    pool = ThreadPoolExecutor(threads, thread_name_prefix="constrain-encode")
    try:
        return list(chain.from_iterable(pool.map(part, _parts(texts, threads * _PARTS))))
    finally:
        pool.shutdown(cancel_futures=True)


def _parts(texts: Sequence[str], count: int) -> Iterator[tuple[int, int]]:
    """Where stretches of about the same number of characters begin and end."""
    least = sum(map(len, texts)) // count
    begin = size = 0
    for end, text in enumerate(texts, 1):
        size += len(text)
        if size > least or end == len(texts):
            yield begin, end
            begin, size = end, 0


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
