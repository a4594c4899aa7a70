"""Verbatim quotes from a megabyte of text: reading, memory, and masks along a quote, for words, characters and chunks.

    python -m bench.quotations

The text is English-like: words of the documentation, each followed as it is there, drawn with a fixed seed; ``--text``
takes a file in its place.  Each row is a process of its own.  A quote of 500 tokens, in Llama-3's tokens, is gone
through at first ("cold": also the mask at its beginning, where any piece may begin), then another one, then the first
again.  Times are the processor's.
"""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
import sys
import time
from collections import defaultdict
from itertools import accumulate, pairwise
from pathlib import Path

import click
import numpy as np

from bench.growth import load

KINDS = ("substring_words", "substring_chars", "substring_chunks")
QUOTES = {"cold": 0.3, "another": 0.6, "again": 0.3}
"""Where in the text each quote begins."""

CHUNK = 60
"""About so many bytes are a chunk, which ends behind a word."""


def english_like(size: int) -> str:
    """Words of the documentation, each followed as somewhere there."""
    words = re.findall(r"\S+", "\n".join(path.read_text() for path in sorted(Path("docs").glob("*.md"))))
    following = defaultdict(list)
    for word, then in pairwise(words):
        following[word].append(then)
    choose, found, length = random.Random(1), [words[0]], len(words[0])
    while length < size:
        found.append(choose.choice(following.get(found[-1]) or words))
        length += len(found[-1]) + 1
    return " ".join(found)[:size]


def chunks_of(text: str) -> list[str]:
    """A text in chunks."""
    return re.findall(rf"(?s).{{1,{CHUNK}}}\S*\s*", text)


def grammar_text(kind: str, text: str) -> str:
    """A Lark grammar of quotes from a text."""
    given = chunks_of(text) if kind == KINDS[2] else text
    return 'start: "<q>" QUOTE "</q>"\nQUOTE: %regex ' + json.dumps({kind: given})


def memory() -> tuple[float, float]:
    """Megabytes of this process: now, and at most so far."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(kind: str, text: str) -> list[str]:
    """A row of the table."""
    import constrain

    tokenizer, vocabulary = load("llama3.tiktoken")
    compiler = constrain.GrammarCompiler(vocabulary)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    small = compiler.compile(constrain.Grammar.from_lark(grammar_text(kind, "a b")))
    constrain.Matcher(small).fill_next_token_bitmask(mask)
    source = grammar_text(kind, text)
    before, began = memory(), time.process_time()
    compiled = compiler.compile(constrain.Grammar.from_lark(source))
    row = [kind, f"{time.process_time() - began:.2f} s"]
    after = memory()
    row.append(f"{after[0] - before[0]:.0f} MB, {after[1] - before[0]:.0f} MB")
    for place in QUOTES.values():
        begin = text.index(" ", int(place * len(text))) + 1
        if kind == KINDS[2]:
            begin = next(end for end in accumulate(map(len, chunks_of(text))) if end >= begin)
        times = along(compiled, mask, tokenizer.encode("<q>" + text[begin : begin + 4000]).ids[:500])
        mean, middle, slowest = times.mean(), np.median(times), times.max()
        row.append(f"{mean:.1f}, {middle:.1f}, {slowest:,.0f} µs")
    row.append(f"{memory()[0] - before[0]:.0f} MB")
    return row


def along(compiled, mask, tokens: list[int]) -> np.ndarray:  # type: ignore[no-untyped-def]
    """The time of each mask along some tokens, in microseconds."""
    import constrain

    matcher = constrain.Matcher(compiled)
    times = np.zeros(len(tokens))
    for i, token in enumerate(tokens):
        began = time.thread_time_ns()
        matcher.fill_next_token_bitmask(mask)
        times[i] = (time.thread_time_ns() - began) / 1000
        if not matcher.accept_token(token):
            raise click.ClickException(f"token {i} of the quote is refused")
    return times


@click.command(help=__doc__, context_settings={"max_content_width": 100})
@click.option("--size", default=1_000_000, show_default=True, help="Characters of the text.")
@click.option("--text", "path", type=click.Path(exists=True, dir_okay=False), help="A file to quote from.")
@click.option("--kind", type=click.Choice(KINDS), help="Print this row alone.")
def main(size: int, path: str | None, kind: str | None) -> None:
    """Print the table."""
    if kind is not None:
        text = english_like(size) if path is None else Path(path).read_text()[:size]
        click.echo(f"| {' | '.join(measure(kind, text))} |")
        return
    quotes = " | ".join(f"masks {name}: mean, median, slowest" for name in QUOTES)
    click.echo(f"| pieces | read and compiled in | memory then, at most | {quotes} | memory at the end |")
    click.echo("|---|" + "---:|" * 6)
    for each in KINDS:
        arguments = ["--size", str(size), "--kind", each, *(["--text", path] if path else [])]
        subprocess.run([sys.executable, "-m", "bench.quotations", *arguments], check=True)


if __name__ == "__main__":
    main()
