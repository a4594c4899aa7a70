"""Group: how long a tokenizer takes to open."""

from __future__ import annotations

import time

from bench.tokenizers.measuring import head, row
from bench.tokenizers.subjects import Subject

_RUNS = 5


def opening(subjects: list[Subject]) -> None:
    """Processor time of the whole process, ours and the reference in turn; the file and the machine code are warm."""
    head("open: seconds", "least", "median")
    times: dict[int, list[float]] = {place: [] for place in range(len(subjects))}
    for _ in range(_RUNS):
        for place, subject in enumerate(subjects):
            begin = time.process_time()
            kept = subject.load()
            times[place].append(time.process_time() - begin)
            del kept
    for place, subject in enumerate(subjects):
        ordered = sorted(times[place])
        row(subject, f"{ordered[0]:.2f}", f"{ordered[_RUNS // 2]:.2f}")
