"""Groups: decoding in one thread, all at once, as a stream, and up to stop sequences."""

from __future__ import annotations

from functools import partial

from bench.tokenizers.measuring import head, least, row
from bench.tokenizers.subjects import Subject, ids_of
from bench.tokenizers.texts import mixed

STREAM_LENGTH = 100_000


def decode(subjects: list[Subject]) -> None:
    """Ids to text."""
    text = mixed(500_000)
    head("decode", "MB/s", "million ids/s")
    for subject in subjects:
        ids = ids_of(subject, text)
        seconds = least(partial(subject.decode, ids), runs=7)
        row(subject, f"{len(text.encode()) / seconds / 1e6:.1f}", f"{len(ids) / seconds / 1e6:.1f}")


def stream(subjects: list[Subject]) -> None:
    """100,000 tokens, one by one, as they come out of a model."""
    text = mixed(900_000)
    head(f"streaming decode: {STREAM_LENGTH:,} tokens one by one", "seconds", "us a token")
    for subject in subjects:
        if subject.stream is None:
            continue
        ids = ids_of(subject, text)[:STREAM_LENGTH]
        assert len(ids) == STREAM_LENGTH
        seconds = least(partial(_run, subject, ids))
        row(subject, f"{seconds:.3f}", f"{1e6 * seconds / len(ids):.2f}")


def _run(subject: Subject, ids: list[int]) -> None:
    assert subject.stream is not None
    step = subject.stream()
    for token_id in ids:
        step(token_id)


def stop(subjects: list[Subject]) -> None:
    """A stream that ends at stop strings: none, one, a thousand.  No reference library has this."""
    text = mixed(120_000)
    columns = {"no stop string": 0, "one": 1, "1,000": 1000}
    head("stop sequences: microseconds a token", *columns)
    for subject in subjects:
        if subject.stop is None:
            continue
        ids = ids_of(subject, text)
        figures = []
        for count in columns.values():
            strings = [f"no such text {i}" for i in range(count)]
            seconds = least(partial(_run_to_stop, subject, strings, ids)) - least(partial(subject.stop, strings))
            figures.append(f"{1e6 * seconds / len(ids):.2f}")
        row(subject, *figures)


def _run_to_stop(subject: Subject, strings: list[str], ids: list[int]) -> None:
    assert subject.stop is not None
    step = subject.stop(strings)
    for token_id in ids:
        step(token_id)
