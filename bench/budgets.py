"""Generations within a budget: whether each text is complete and valid, however few tokens there are.

The demonstration model, at a temperature at which it rambles, makes a text for one schema of MaskBench after the other,
in at most ``n`` tokens: ``n`` is drawn between the tokens of the shortest text that is known and 200, and one time in
four it is that shortest number.  The jsonschema package judges what comes out; of a key that an object has twice it
sees the last.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

import constrain
from bench.judge import Judge, NoVerdict, RepeatedKey
from bench.walks import entries
from constrain.backends.demo import DemoBackend
from constrain.generation import generate
from constrain.sampling import Sampler

MOST = 200


@dataclass
class Outcome:
    """One generation.

    Attributes
    ----------
    kind : str
        "valid", "invalid", "unfinished"; "valid but for a format" (of which the package has its own opinion); "invalid
        but for a key twice" (an additional key that is repeated counts once for the package, and the grammar warned of
        that); "not judged" (the package cannot read the schema or the text; the text is complete); "schema refused" (it
        does not compile) or "schema too long" (its shortest text is).
    most, tokens : int
        The budget, and what was made.
    seconds : float
    """

    schema: str
    kind: str
    reason: str = ""
    text: str = ""
    most: int = 0
    tokens: int = 0
    seconds: float = 0.0


def outcomes(count: int, seed: int, temperature: float) -> Iterator[Outcome]:
    """So many generations, one for each schema, and what kept other schemas from having one."""
    rng = random.Random(seed)
    backend = DemoBackend()
    compiler = constrain.GrammarCompiler(backend.vocabulary, cache_limit_bytes=0)
    done = 0
    for entry in entries(seed):
        if done == count:
            return
        try:
            grammar = constrain.Grammar.from_json_schema(entry["schema"])
            compiled = compiler.compile(grammar)
            shortest = constrain.Matcher(compiled).tokens_to_finish()
        except constrain.ConstrainError as error:
            yield Outcome(entry["id"], "schema refused", str(error))
            continue
        if shortest > MOST:
            yield Outcome(entry["id"], "schema too long", f"its shortest text takes {shortest} tokens")
            continue
        most = max(1, shortest if rng.random() < 0.25 else rng.randint(shortest, MOST))
        done += 1
        start = time.perf_counter()
        sampler = Sampler(temperature, seed=rng.randrange(2**32))
        generation = generate(backend, backend.tokenizer, compiled, max_tokens=most, sampler=sampler)
        for _ in generation:
            pass
        seconds = time.perf_counter() - start
        kind, reason = _judged(entry["schema"], generation.text, bool(grammar.warnings))
        if generation.statistics.finish_reason != "complete" or generation.statistics.tokens > most:
            kind, reason = "unfinished", f"{generation.statistics.tokens} tokens, {generation.statistics.finish_reason}"
        yield Outcome(entry["id"], kind, reason, generation.text, most, generation.statistics.tokens, seconds)


def _last_of_each_key(text: str) -> str:
    """A JSON text without the members that a later one of the same key hides; numbers stay as they are written."""
    mark = "\ue000"
    value = json.loads(text, parse_float=lambda number: mark + number, parse_int=lambda number: mark + number)
    return re.sub(f'"{mark}([^"]*)"', r"\1", json.dumps(value, ensure_ascii=False))


def _judged(schema: Any, text: str, warned: bool) -> tuple[str, str]:
    try:
        judge, lenient = Judge(schema), Judge(schema, formats=False)
    except Exception as error:  # whatever keeps the judge from reading a schema
        return "not judged", f"{type(error).__name__}: {error}"
    try:
        twice = False
        try:
            reason = judge.verdict(text)
        except RepeatedKey:
            twice = True
            text = _last_of_each_key(text)
            reason = judge.verdict(text)
        if not reason:
            return "valid", ""
        if not lenient.verdict(text):
            return "valid but for a format", reason
        return "invalid but for a key twice" if twice and warned else "invalid", reason
    except NoVerdict as error:
        return "not judged", str(error)


@click.command()
@click.option("--count", default=1000, show_default=True, help="Generations.")
@click.option("--seed", default=1, show_default=True)
@click.option("--temperature", default=1.5, show_default=True)
def main(count: int, seed: int, temperature: float) -> None:
    """Make texts within budgets, and have them judged."""
    counts: Counter[str] = Counter()
    made = []
    for outcome in outcomes(count, seed, temperature):
        counts[outcome.kind] += 1
        if outcome.kind not in ("valid", "not judged") and not outcome.kind.startswith("schema"):
            click.echo(
                f"{outcome.kind}: {outcome.schema}: n={outcome.most}: {outcome.reason}\n    {outcome.text[:300]}"
            )
        if outcome.most:
            made.append(outcome)
    used = statistics.mean(outcome.tokens / outcome.most for outcome in made)
    pace = 1e6 * sum(outcome.seconds for outcome in made) / max(1, sum(outcome.tokens for outcome in made))
    click.echo(
        f"{len(made):,} generations, {100 * used:.0f} % of the budget used, {pace:.0f} us a token: "
        + ", ".join(f"{number:,} {kind}" for kind, number in counts.most_common())
    )


if __name__ == "__main__":
    main()
