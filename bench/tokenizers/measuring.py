"""How the groups measure and print.

Times of one thread are processor time of that thread (``time.thread_time``), the least of several runs, with our
tokenizers and the reference libraries in one process; what several threads do together is wall-clock time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click

from bench.tokenizers.subjects import Subject


def least(work: Callable[[], object], runs: int = 3, clock: Callable[[], float] = time.thread_time) -> float:
    """The least time of several runs, in seconds."""
    best = float("inf")
    for _ in range(runs):
        begin = clock()
        work()
        best = min(best, clock() - begin)
    return best


def repeat(work: Callable[[Any], object], argument: Any, times: int) -> None:
    """The same call several times."""
    for _ in range(times):
        work(argument)


def together(workers: int, work: Callable[[Any], object], arguments: list[Any], runs: int = 3) -> float:
    """The least wall-clock time in which some threads have worked off the arguments."""
    with ThreadPoolExecutor(workers) as pool:
        return least(lambda: list(pool.map(work, arguments)), runs, time.perf_counter)


def head(title: str, *columns: str) -> None:
    """The beginning of a table."""
    click.echo(f"\n{title}\n" + " " * 30 + "".join(f"{column:>16s}" for column in columns))


def row(subject: Subject, *figures: str) -> None:
    """A line of a table."""
    click.echo(f"{subject.kind:14s}{subject.name:16s}" + "".join(f"{figure:>16s}" for figure in figures))
