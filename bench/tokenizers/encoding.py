"""Groups: encoding in one thread."""

from __future__ import annotations

import statistics
import time
from functools import partial

from bench.tokenizers.measuring import head, least, repeat, row
from bench.tokenizers.subjects import Subject
from bench.tokenizers.texts import SHORT, english_and_code, mixed


def encode(subjects: list[Subject]) -> None:
    """One long text, in megabytes of UTF-8 a second."""
    texts = {"English, code": english_and_code(2_000_000), "mixed": mixed(2_000_000)}
    head("encode: one text, MB/s", *texts)
    for subject in subjects:
        rates = []
        for text in texts.values():
            seconds = least(partial(subject.encode, text))
            rates.append(f"{len(text.encode()) / seconds / 1e6:.1f}")
        row(subject, *rates)


def lines(subjects: list[Subject]) -> None:
    """Many short texts, each in a call of its own."""
    texts = [line for line in mixed(500_000).split("\n") if line]
    size = sum(len(text.encode()) for text in texts)
    head("encode: lines, each in a call", "MB/s")
    for subject in subjects:
        row(subject, f"{size / least(lambda subject=subject: [subject.encode(text) for text in texts]) / 1e6:.1f}")


def batch(subjects: list[Subject]) -> None:
    """Many short texts in one call; the time of all threads, since sentencepiece has its own even for one."""
    lines = [line for line in mixed(500_000).split("\n") if line]
    size = sum(len(line.encode()) for line in lines)
    head("batch encode: lines in one call", "MB/s")
    for subject in subjects:
        row(subject, f"{size / least(partial(subject.batch, lines), clock=time.process_time) / 1e6:.1f}")


def latency(subjects: list[Subject]) -> None:
    """A text of 30 characters."""
    head("latency: 30 characters, microseconds", "mean", "p50", "p90", "p99")
    for subject in subjects:
        for _ in range(2000):
            subject.encode(SHORT)
        loops = 2000
        mean = least(partial(repeat, subject.encode, SHORT, loops), runs=7) / loops
        times = []
        for _ in range(5000):
            begin = time.perf_counter_ns()
            subject.encode(SHORT)
            times.append((time.perf_counter_ns() - begin) / 1000)
        cuts = statistics.quantiles(times, n=100)
        row(subject, f"{1e6 * mean:.2f}", *(f"{cuts[place - 1]:.2f}" for place in (50, 90, 99)))


def scaling(subjects: list[Subject]) -> None:
    """Nanoseconds for a byte as the text grows, and for texts without any place to cut."""
    texts = {f"{size:,} B": english_and_code(size) for size in (100, 10_000, 1_000_000)}
    texts |= {"1 MB of a": "a" * 10**6, "1 MB of spaces": " " * 10**6}
    head("scaling: nanoseconds a byte", *texts)
    for subject in subjects:
        figures = []
        for name, text in texts.items():
            if name.startswith("1 MB") and subject.name == "tokenizers":
                figures.append("-")  # minutes
                continue
            loops = max(1, 20_000 // len(text))
            seconds = least(partial(repeat, subject.encode, text, loops), runs=2)
            figures.append(f"{1e9 * seconds / loops / len(text.encode()):.1f}")
        row(subject, *figures)
