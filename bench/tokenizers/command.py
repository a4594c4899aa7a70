"""The command: runs groups of measurements and prints a table for each."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bench.tokenizers import subjects
from bench.tokenizers.decoding import decode, stop, stream
from bench.tokenizers.encoding import batch, encode, latency, lines, scaling
from bench.tokenizers.equality import equality
from bench.tokenizers.memory import memory
from bench.tokenizers.opening import opening
from bench.tokenizers.ratios import ratios
from bench.tokenizers.reopening import reopening
from bench.tokenizers.subjects import Subject
from bench.tokenizers.threads import concurrent, concurrent_stream, threads_decode, threads_encode

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

GROUPS = {
    "encode": encode,
    "lines": lines,
    "batch": batch,
    "concurrent": concurrent,
    "decode": decode,
    "stream": stream,
    "latency": latency,
    "ratios": ratios,
    "concurrent-stream": concurrent_stream,
    "stop": stop,
    "threads-encode": threads_encode,
    "threads-decode": threads_decode,
    "memory": memory,
    "open": opening,
    "reopen": reopening,
    "scaling": scaling,
}


@click.command()
@click.argument("groups", nargs=-1, type=click.Choice((*GROUPS, "equality")))
@click.option("--only", type=click.Choice(("byte-level", "sentencepiece")), help="One family of tokenizers.")
@click.option(
    "--file", "path", type=click.Path(exists=True, path_type=Path), help="A tokenizer.json, instead of all others."
)
@click.option("--megabytes", default=20, show_default=True, help="For equality: text to encode.")
@click.option("--strings", default=10_000, show_default=True, help="For equality: strings to try.")
def main(groups: tuple[str, ...], only: str | None, path: Path | None, megabytes: int, strings: int) -> None:
    """Measure GROUPS (all of them if none is named); "equality" compares ids instead."""
    chosen: list[Subject] = []
    if set(groups) == {"reopen"}:
        reopening(chosen)
        return
    if path is not None:
        chosen += subjects.of_file(path)
    if only != "sentencepiece" and path is None:
        chosen += subjects.byte_level()
    if only != "byte-level" and path is None:
        chosen += subjects.sentencepiece()
    for name in groups or tuple(GROUPS):
        if name == "equality":
            equality(chosen, megabytes, strings)
        else:
            GROUPS[name](chosen)
