"""Forced tokens against the tokenizer: how many of those made without the model stand in the tokenizer's own reading.

Two tokenizers: the demonstration model's, with that model, and Llama-3's, with a model that knows by heart what it has
to say.  Two kinds of grammar: the JSON Schemas of MaskBench with compact layout, and *forms*, made of their valid
instances: everything as it is but the strings, numbers and literals, which are to be filled in.  (A schema allows every
character of a key to be spelled in several ways, so it forces little; a form forces much.)

A forced token counts as right if the tokenizer, given the whole finished text, makes the same token of the same bytes.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from bench.maskbench.schemas import SCHEMAS, VOCABULARY, data_folder
from constrain import Grammar, GrammarCompiler, Vocabulary, demo, load_tokenizer
from constrain.errors import ConstrainError
from constrain.generation import Generation, generate
from constrain.sampling import Sampler
from constrain.tokenizers import Tokenizer


class Recital:
    """A model that says one text by heart, in the tokens that the tokenizer splits it into."""

    def __init__(self, tokenizer: Tokenizer, text: str) -> None:
        self._tokenizer = tokenizer
        self._text = text.encode()
        self._ids = tokenizer.encode(text).ids
        self._starts = {0: 0}
        position = 0
        for index, token in enumerate(self._ids):
            position += len(tokenizer.token_bytes(token) or b"")
            self._starts[position] = index + 1
        self._row = np.zeros(tokenizer.vocab_size, np.float32)
        self._said = self._length = 0
        self._favoured = 0

    def logits(self, ids: Sequence[int]) -> Any:
        for token in ids[self._said :]:
            self._length += len(self._tokenizer.token_bytes(token) or b"")
        self._said = len(ids)
        self._row[self._favoured] = 0
        index = self._starts.get(self._length)
        if index is None:
            # Within one of its tokens: go on with what is left of the text.
            rest = self._text[self._length : self._length + 64].decode("utf-8", "ignore")
            following = self._tokenizer.encode(rest).ids
        else:
            following = self._ids[index : index + 1]
        self._favoured = following[0] if following else self._tokenizer.eos_ids[0]
        self._row[self._favoured] = 50
        return self._row


class Count:
    """What was found with one tokenizer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.texts = self.tokens = self.forced = self.wrong = self.unfinished = 0
        self.seconds = 0.0
        self.examples: list[str] = []

    def add(self, tokenizer: Tokenizer, generation: Generation) -> None:
        start = time.perf_counter()
        steps = list(generation)
        self.seconds += time.perf_counter() - start
        if generation.statistics.finish_reason != "complete":
            self.unfinished += 1
            return
        text = generation.text
        spans = set()
        position = 0
        for token in tokenizer.encode(text).ids:
            spans.add((position, token))
            position += len(tokenizer.token_bytes(token) or b"")
        if position != len(text.encode()):
            raise AssertionError(f"{self.name}: the tokens of {text!r} have other bytes")
        position = 0
        self.texts += 1
        for step in steps:
            if step.token_id is None:
                continue
            data = tokenizer.token_bytes(step.token_id) or b""
            self.tokens += 1
            self.forced += step.forced
            if step.forced and (position, step.token_id) not in spans:
                self.wrong += 1
                self.examples.append(
                    f"{data!r} after {text.encode()[max(0, position - 20) : position]!r}"
                    f" before {text.encode()[position + len(data) :][:20]!r}"
                )
            position += len(data)

    def report(self) -> str:
        share = 100 * (1 - self.wrong / self.forced) if self.forced else 100.0
        return (
            f"{self.name:18s} {self.texts:6d} texts {self.tokens:8d} tokens"
            f" {100 * self.forced / max(1, self.tokens):5.1f} % forced;"
            f" {self.wrong} of {self.forced} not the tokenizer's own: {share:.3f} % equal;"
            f" {1e6 * self.seconds / max(1, self.tokens):.0f} us a token; {self.unfinished} texts not finished"
        )


def _schemas(path: Path, count: int | None, seed: int) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rb") as file:
        lines = file.read().splitlines()
    random.Random(seed).shuffle(lines)
    for line in lines[:count]:
        yield json.loads(line.decode(errors="surrogatepass"))


_STRING = r'"([^"\\\\\x00-\x1f\ud800-\udfff]|\\\\(["\\\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_NUMBER = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_LITERAL = "(true|false|null)"
_LAYOUTS: tuple[dict[str, Any], ...] = ({}, {"separators": (",", ":")}, {"indent": 2})
_LEAF = "\ufffc"


def form(instance: Any, layout: dict[str, Any]) -> str:
    """A regular expression for the JSON texts that differ from this one in scalar values only."""
    kinds: list[str] = []

    def empty(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: empty(item) for key, item in value.items()}
        if isinstance(value, list):
            return [empty(item) for item in value]
        kinds.append(
            _STRING
            if isinstance(value, str)
            else _LITERAL
            if value is None or value is True or value is False
            else _NUMBER
        )
        return _LEAF

    parts = json.dumps(empty(instance), ensure_ascii=False, **layout).split(f'"{_LEAF}"')
    pattern = re.escape(parts[0])
    for kind, part in zip(kinds, parts[1:], strict=True):
        pattern += kind + re.escape(part)
    return pattern


@click.command()
@click.option("--count", type=int, default=300, show_default=True, help="Schemas; 0: all.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--temperature", type=float, default=1.0, show_default=True, help="Of the demonstration model.")
@click.option("--show", type=int, default=5, show_default=True, help="Wrong tokens to print.")
def main(count: int, seed: int, temperature: float, show: int) -> None:
    """Compare forced tokens with the tokenizer's reading of the finished text."""
    folder = data_folder()
    small, model = demo.load()
    large = load_tokenizer(folder / VOCABULARY)
    small_compiler, large_compiler = (GrammarCompiler(Vocabulary.from_tokenizer(one)) for one in (small, large))
    counts = {name: Count(name) for name in ("demo, schemas", "demo, forms", "Llama-3, schemas", "Llama-3, forms")}

    def sampled(kind: str, grammar: Grammar) -> None:
        compiled = small_compiler.compile(grammar)
        sampler = Sampler(temperature, seed=seed)
        counts[f"demo, {kind}"].add(small, generate(model, small, compiled, max_tokens=1000, sampler=sampler))

    def recited(kind: str, grammar: Grammar, text: str) -> None:
        compiled = large_compiler.compile(grammar)
        generation = generate(Recital(large, text), large, compiled, max_tokens=4000, sampler=Sampler(0))
        counts[f"Llama-3, {kind}"].add(large, generation)

    for number, entry in enumerate(_schemas(folder / SCHEMAS, count or None, seed)):
        valid = [test["data"] for test in entry["tests"] if test["valid"]]
        with contextlib.suppress(ConstrainError, UnicodeEncodeError):
            schema = Grammar.from_json_schema(entry["schema"], whitespace="compact")
            sampled("schemas", schema)
            for instance in valid:
                recited("schemas", schema, json.dumps(instance, ensure_ascii=False, separators=(",", ":")))
        layout = _LAYOUTS[number % len(_LAYOUTS)]
        for instance in valid:
            with contextlib.suppress(ConstrainError, UnicodeEncodeError):
                grammar = Grammar.from_regex(form(instance, layout))
                sampled("forms", grammar)
                recited("forms", grammar, json.dumps(instance, ensure_ascii=False, **layout))
    for one in counts.values():
        click.echo(one.report())
        for example in one.examples[:show]:
            click.echo(f"    {example}")


if __name__ == "__main__":
    main()
