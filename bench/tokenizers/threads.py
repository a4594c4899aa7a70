"""Groups: several threads with one tokenizer."""

from __future__ import annotations

import os
import random
from functools import partial

from bench.tokenizers.decoding import STREAM_LENGTH
from bench.tokenizers.measuring import head, row, together
from bench.tokenizers.subjects import Subject, ids_of
from bench.tokenizers.texts import mixed

_REQUESTS = 400
_CLIENTS = 16
_STREAMS = 64


def concurrent(subjects: list[Subject]) -> None:
    """Requests as a server gets them: prompts of 100 to 5,000 characters, from more threads than processors."""
    rng = random.Random(3)
    source = mixed(200_000)
    prompts = []
    for _ in range(_REQUESTS):
        begin = rng.randrange(len(source) - 5000)
        prompts.append(source[begin : begin + rng.randrange(100, 5000)])
    size = sum(len(prompt.encode()) for prompt in prompts)
    head(f"concurrent encode: {_REQUESTS} prompts from {_CLIENTS} threads, wall clock", "prompts/s", "MB/s")
    for subject in subjects:
        seconds = together(_CLIENTS, subject.encode, prompts)
        row(subject, f"{_REQUESTS / seconds:,.0f}", f"{size / seconds / 1e6:.1f}")


def concurrent_stream(subjects: list[Subject]) -> None:
    """Streams side by side, one step of each in turn, as a server with a batch has them."""
    text = mixed(900_000)
    head(f"concurrent streaming: {_STREAMS} streams in turn, {os.cpu_count()} threads, wall clock", "million tokens/s")
    for subject in subjects:
        if subject.stream is None:
            continue
        ids = ids_of(subject, text)[:STREAM_LENGTH]
        share = len(ids) // _STREAMS
        parts = [ids[i * share : (i + 1) * share] for i in range(_STREAMS)]
        workers = os.cpu_count() or 1
        seconds = together(workers, partial(_in_turn, subject), [parts[i::workers] for i in range(workers)])
        row(subject, f"{share * _STREAMS / seconds / 1e6:.2f}")


def _in_turn(subject: Subject, parts: list[list[int]]) -> None:
    assert subject.stream is not None
    steps = [subject.stream() for _ in parts]
    for column in zip(*parts, strict=True):
        for step, token_id in zip(steps, column, strict=True):
            step(token_id)


def threads_encode(subjects: list[Subject]) -> None:
    """Long texts, as many threads as processors."""
    workers = os.cpu_count() or 1
    text = mixed(300_000)
    head("multithreaded encode: MB/s together, wall clock", "1 thread", f"{workers} threads")
    for subject in subjects:
        row(subject, *(_rate(count, subject.encode, text, len(text.encode())) for count in (1, workers)))


def threads_decode(subjects: list[Subject]) -> None:
    """Long lists of ids, as many threads as processors."""
    workers = os.cpu_count() or 1
    text = mixed(300_000)
    head("multithreaded decode: million ids/s together, wall clock", "1 thread", f"{workers} threads")
    for subject in subjects:
        ids = ids_of(subject, text)
        row(subject, *(_rate(count, subject.decode, ids, len(ids)) for count in (1, workers)))


def _rate(workers: int, work: object, argument: object, size: int) -> str:
    assert callable(work)
    times = 4 * workers
    return f"{times * size / together(workers, work, [argument] * times) / 1e6:.1f}"
