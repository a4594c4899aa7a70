"""Group: what a tokenizer takes to have."""

from __future__ import annotations

import ctypes
import gc
import os
import time

from bench.tokenizers.measuring import head, row
from bench.tokenizers.subjects import Subject


def memory(subjects: list[Subject]) -> None:
    """What one more tokenizer takes, and how long it takes to open."""
    head("memory and opening", "MB", "seconds")
    for subject in subjects:
        _give_back()
        before = _resident()
        begin = time.thread_time()
        kept = [subject.load() for _ in range(2)]
        seconds = (time.thread_time() - begin) / 2
        row(subject, f"{(_resident() - before) / 2e6:.1f}", f"{seconds:.2f}")
        del kept


def _give_back() -> None:
    """Memory that earlier groups have freed, lest it be used again unseen."""
    gc.collect()
    # Only the C library of GNU has this.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
