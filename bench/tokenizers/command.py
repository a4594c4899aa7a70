"""The command: runs groups of measurements and prints a table for each.

Times of one thread are processor time of that thread (``time.thread_time``), the least of several runs, with our
tokenizers and the reference libraries in one process; what several threads do together is wall-clock time.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import click

from bench.tokenizers import subjects
from bench.tokenizers.subjects import Subject
from bench.tokenizers.texts import SHORT, english_and_code, mixed

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _least(work: Callable[[], object], runs: int = 3, clock: Callable[[], float] = time.thread_time) -> float:
    best = float("inf")
    for _ in range(runs):
        begin = clock()
        work()
        best = min(best, clock() - begin)
    return best


def _repeat(work: Callable[[Any], object], argument: Any, times: int) -> None:
    for _ in range(times):
        work(argument)


def _share(pool: ThreadPoolExecutor, work: Callable[[Any], object], argument: Any, times: int) -> None:
    for future in [pool.submit(work, argument) for _ in range(times)]:
        future.result()


def _row(subject: Subject, *figures: str) -> None:
    click.echo(f"{subject.kind:14s}{subject.name:16s}" + "".join(f"{figure:>16s}" for figure in figures))


def _head(title: str, *columns: str) -> None:
    click.echo(f"\n{title}\n" + " " * 30 + "".join(f"{column:>16s}" for column in columns))


def encode(all_subjects: list[Subject]) -> None:
    """One long text, in megabytes of UTF-8 a second."""
    texts = {"English, code": english_and_code(2_000_000), "mixed": mixed(2_000_000)}
    _head("encode: one text, MB/s", *texts)
    for subject in all_subjects:
        rates = []
        for text in texts.values():
            seconds = _least(partial(subject.encode, text))
            rates.append(f"{len(text.encode()) / seconds / 1e6:.1f}")
        _row(subject, *rates)


def batch(all_subjects: list[Subject]) -> None:
    """Many short texts in one call."""
    lines = [line for line in mixed(500_000).split("\n") if line]
    size = sum(len(line.encode()) for line in lines)
    _head("batch encode: lines in one call, wall clock", "MB/s")
    for subject in all_subjects:
        _row(subject, f"{size / _least(partial(subject.batch, lines), clock=time.perf_counter) / 1e6:.1f}")


def decode(all_subjects: list[Subject]) -> None:
    """Ids to text."""
    text = mixed(500_000)
    _head("decode", "MB/s", "million ids/s")
    for subject in all_subjects:
        ids = list(subject.encode(text))
        seconds = _least(partial(subject.decode, ids))
        _row(subject, f"{len(text.encode()) / seconds / 1e6:.1f}", f"{len(ids) / seconds / 1e6:.1f}")


def latency(all_subjects: list[Subject]) -> None:
    """A text of 30 characters."""
    _head("latency: 30 characters, microseconds", "mean", "p50", "p90", "p99")
    for subject in all_subjects:
        for _ in range(2000):
            subject.encode(SHORT)
        loops = 2000
        mean = _least(partial(_repeat, subject.encode, SHORT, loops), runs=7) / loops
        times = []
        for _ in range(5000):
            begin = time.perf_counter_ns()
            subject.encode(SHORT)
            times.append((time.perf_counter_ns() - begin) / 1000)
        cuts = statistics.quantiles(times, n=100)
        _row(subject, f"{1e6 * mean:.2f}", *(f"{cuts[place - 1]:.2f}" for place in (50, 90, 99)))


def threads(all_subjects: list[Subject]) -> None:
    """Several threads at once, encoding and decoding."""
    text = mixed(300_000)
    workers = os.cpu_count() or 1
    _head(f"threads: {workers} at once, MB/s together, wall clock", "encode", "decode")
    for subject in all_subjects:
        ids = list(subject.encode(text))
        rates = []
        for work, argument in ((subject.encode, text), (subject.decode, ids)):
            with ThreadPoolExecutor(workers) as pool:
                seconds = _least(partial(_share, pool, work, argument, workers * 4), 3, time.perf_counter)
            rates.append(f"{workers * 4 * len(text.encode()) / seconds / 1e6:.1f}")
        _row(subject, *rates)


def memory(all_subjects: list[Subject]) -> None:
    """What one more tokenizer takes, and how long it takes to open."""
    _head("memory and opening", "MB", "seconds")
    for subject in all_subjects:
        before = _resident()
        begin = time.thread_time()
        kept = [subject.load() for _ in range(2)]
        seconds = (time.thread_time() - begin) / 2
        _row(subject, f"{(_resident() - before) / 2e6:.1f}", f"{seconds:.2f}")
        del kept


def scaling(all_subjects: list[Subject]) -> None:
    """Nanoseconds for a byte as the text grows, and for texts without any place to cut."""
    texts = {f"{size:,} B": english_and_code(size) for size in (100, 10_000, 1_000_000)}
    texts |= {"1 MB of a": "a" * 10**6, "1 MB of spaces": " " * 10**6}
    _head("scaling: nanoseconds a byte", *texts)
    for subject in all_subjects:
        figures = []
        for name, text in texts.items():
            if name.startswith("1 MB") and subject.name == "tokenizers":
                figures.append("-")  # minutes
                continue
            loops = max(1, 20_000 // len(text))
            seconds = _least(partial(_repeat, subject.encode, text, loops), runs=2)
            figures.append(f"{1e9 * seconds / loops / len(text.encode()):.1f}")
        _row(subject, *figures)


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


GROUPS = {group.__name__: group for group in (encode, batch, decode, latency, threads, memory, scaling)}


@click.command()
@click.argument("groups", nargs=-1, type=click.Choice(tuple(GROUPS)))
@click.option("--only", type=click.Choice(("byte-level", "sentencepiece")), help="One family of tokenizers.")
def main(groups: tuple[str, ...], only: str | None) -> None:
    """Measure GROUPS (all if none is named)."""
    chosen: list[Subject] = []
    if only != "sentencepiece":
        chosen += subjects.byte_level()
    if only != "byte-level":
        chosen += subjects.sentencepiece()
    for name in groups or tuple(GROUPS):
        GROUPS[name](chosen)
