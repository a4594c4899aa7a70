"""Whether computing a mask in a thread while the model runs pays, for models of different speed.

The model says one valid instance of a MaskBench schema by heart (Llama-3's vocabulary) and takes a given time for each
answer, without Python's lock, as real ones do.  What a token costs beyond the model's own time is printed: with masks
before the model, and with masks beside it; for grammars that are new, and for the same once more.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import time
from collections.abc import Sequence
from typing import Any

import click

from bench.forced import Recital
from bench.maskbench.schemas import SCHEMAS, VOCABULARY, data_folder
from constrain import Grammar, GrammarCompiler, Vocabulary, load_tokenizer
from constrain.errors import ConstrainError
from constrain.generation import generate
from constrain.sampling import Sampler
from constrain.tokenizers import Tokenizer


class Slow:
    """A model that takes its time."""

    def __init__(self, model: Recital, seconds: float) -> None:
        self._model = model
        self._seconds = seconds

    def logits(self, ids: Sequence[int]) -> Any:
        end = time.perf_counter() + self._seconds
        row = self._model.logits(ids)
        # The end of it is waited for without sleeping, whose end is not exact.
        time.sleep(max(0.0, end - time.perf_counter() - 2e-4))
        while time.perf_counter() < end:
            pass
        return row


def texts(count: int, seed: int) -> list[tuple[dict[str, Any], str]]:
    """Schemas with a valid instance of some length each."""
    with gzip.open(data_folder() / SCHEMAS, "rb") as file:
        lines = file.read().splitlines()
    random.Random(seed).shuffle(lines)
    found = []
    for line in lines:
        entry = json.loads(line.decode(errors="replace"))
        for test in entry["tests"]:
            text = json.dumps(test["data"])
            if test["valid"] and 200 < len(text) < 600:
                found.append((entry["schema"], text))
                break
        if len(found) == count:
            break
    return found


def cost(
    tokenizer: Tokenizer, vocabulary: Vocabulary, pairs: list[tuple[dict[str, Any], str]], seconds: float, overlap: bool
) -> tuple[float, float]:
    """Microseconds a token takes beyond the model: with grammars that are new, and with the same again."""
    compiler = GrammarCompiler(vocabulary, cache_limit_bytes=0)
    extra: tuple[list[float], list[float]] = ([], [])
    for schema, text in pairs:
        try:
            compiled = compiler.compile(Grammar.from_json_schema(schema))
        except ConstrainError:
            continue
        for visit in extra:
            model = Slow(Recital(tokenizer, text), seconds)
            generation = generate(
                model,
                tokenizer,
                compiled,
                max_tokens=1000,
                sampler=Sampler(0),
                skip_forced=False,
                budget=False,
                overlap=overlap,
            )
            for _ in generation:
                pass
            # Without the first token, in which buffers are made.
            visit += [one - seconds for one in generation.statistics.token_seconds[1:]]
    # The longest are the machine's other work.
    trimmed = [sorted(one)[: len(one) * 98 // 100] for one in extra]
    return 1e6 * statistics.mean(trimmed[0]), 1e6 * statistics.mean(trimmed[1])


@click.command()
@click.option("--count", default=20, show_default=True, help="Schemas.")
@click.option("--seed", default=1, show_default=True)
def main(count: int, seed: int) -> None:
    """Compare masks before the model with masks beside it."""
    tokenizer = load_tokenizer(data_folder() / VOCABULARY)
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    pairs = texts(count, seed)
    cost(tokenizer, vocabulary, pairs[:2], 0.0, False)
    click.echo("us a token beyond the model:  before, new   beside, new   before, again   beside, again")
    for milliseconds in (0.2, 0.5, 1, 2, 5, 10):
        before = cost(tokenizer, vocabulary, pairs, milliseconds / 1e3, False)
        beside = cost(tokenizer, vocabulary, pairs, milliseconds / 1e3, True)
        click.echo(
            f"model of {milliseconds:4} ms              {before[0]:11.0f} {beside[0]:13.0f}"
            f" {before[1]:15.0f} {beside[1]:15.0f}"
        )


if __name__ == "__main__":
    main()
