"""Compiled grammars as bytes: how many there are, and how long it takes to write and to open them.

Each schema of a part of MaskBench is compiled, its instances are gone through so that something is learned, and the
grammar is written and opened again in the same process.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from bench.maskbench.schemas import SCHEMAS, VOCABULARY, data_folder
from constrain import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    Matcher,
    Vocabulary,
    allocate_token_bitmask,
    load_tokenizer,
)
from constrain.errors import ConstrainError


def _timed(call: Callable[[], Any], times: int = 3) -> float:
    """The least microseconds of a few calls."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return 1e6 * best


@click.command()
@click.option("--count", type=int, default=200, show_default=True, help="Schemas.")
@click.option("--seed", type=int, default=1, show_default=True)
def main(count: int, seed: int) -> None:
    """Time to_bytes() and from_bytes()."""
    tokenizer = load_tokenizer(data_folder() / VOCABULARY)
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    compiler = GrammarCompiler(vocabulary)
    with gzip.open(data_folder() / SCHEMAS, "rb") as file:
        lines = file.read().splitlines()
    random.Random(seed).shuffle(lines)
    mask = allocate_token_bitmask(1, vocabulary.size)
    rows = []
    for line in lines[:count]:
        entry = json.loads(line.decode(errors="surrogatepass"))
        text = json.dumps(entry["schema"])
        with contextlib.suppress(ConstrainError, UnicodeEncodeError):
            grammar = Grammar.from_json_schema(text)
            compiled = compiler.compile(grammar)
            for test in entry["tests"]:
                matcher = Matcher(compiled)
                for token in tokenizer.encode(json.dumps(test["data"], ensure_ascii=False)).ids:
                    matcher.fill_next_token_bitmask(mask)
                    if not matcher.accept_token(token):
                        break
            data = compiled.to_bytes()
            reading = _timed(lambda: Grammar.from_json_schema(text))  # noqa: B023
            compiling = _timed(lambda: CompiledGrammar(grammar.ir, vocabulary))  # noqa: B023
            opening = _timed(lambda: CompiledGrammar.from_bytes(data, vocabulary))  # noqa: B023
            writing = _timed(compiled.to_bytes)
            rows.append((len(data), writing, opening, reading, compiling))
    names = "bytes", "us to write", "us to open", "of it us to read", "us to compile"
    for name, column in zip(names, np.array(rows).T, strict=True):
        low, middle, high = np.percentile(column, [10, 50, 90])
        click.echo(f"{name:18s} median {middle:10.0f}   10 % {low:10.0f}   90 % {high:10.0f}")
    opened = np.array(rows)[:, 2]
    click.echo(f"{len(rows)} schemas; {100 * np.mean(opened <= 1000):.0f} % open within 1 ms")


if __name__ == "__main__":
    main()
