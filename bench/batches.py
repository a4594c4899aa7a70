"""Steps of a serving engine: the masks of all its sequences, and a token for each of them; and drafts of tokens.

The sequences are instances of MaskBench's schemas in Llama-3's tokens, several for each of some schemas.  They are gone
through twice: the first time their places are new, the second time known.
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import random
import time
from collections.abc import Callable, Iterator

import click
import numpy as np

import constrain
from bench.maskbench.schemas import SCHEMAS, VOCABULARY, data_folder
from constrain import CompiledGrammar, Grammar, GrammarCompiler, Matcher, Vocabulary, load_tokenizer
from constrain.errors import ConstrainError
from constrain.tokenizers import Tokenizer

_LONGEST = 160
_LIMIT = 4096


def sequences(
    tokenizer: Tokenizer, compiler: GrammarCompiler, grammars: int, count: int, seed: int
) -> list[tuple[CompiledGrammar, list[int]]]:
    """Grammars with texts of theirs, as tokens: ``count`` pairs of ``grammars`` grammars."""
    with gzip.open(data_folder() / SCHEMAS, "rb") as file:
        lines = file.read().splitlines()
    random.Random(seed).shuffle(lines)
    found: list[tuple[CompiledGrammar, list[list[int]]]] = []
    for line in lines:
        entry = json.loads(line.decode(errors="surrogatepass"))
        texts = []
        with contextlib.suppress(ConstrainError, UnicodeEncodeError):
            compiled = compiler.compile(Grammar.from_json_schema(entry["schema"]))
            for test in entry["tests"]:
                ids = tokenizer.encode(json.dumps(test["data"], ensure_ascii=False)).ids[:_LONGEST]
                if test["valid"] and len(ids) >= _LONGEST // 4 and Matcher(compiled).validate_tokens(ids) == len(ids):
                    texts.append(ids)
        if texts:
            found.append((compiler.compile(Grammar.from_json_schema(entry["schema"])), texts))
        if len(found) == grammars:
            break
    result = []
    for index in range(count):
        compiled, texts = found[index % len(found)]
        result.append((compiled, texts[index // len(found) % len(texts)]))
    return result


def anew(
    pairs: list[tuple[CompiledGrammar, list[int]]], vocabulary: Vocabulary
) -> list[tuple[CompiledGrammar, list[int]]]:
    """The same pairs with grammars that know nothing yet."""
    fresh = {
        compiled: CompiledGrammar(compiled.ir, vocabulary, source=compiled.source)
        for compiled in dict.fromkeys(compiled for compiled, _ in pairs)
    }
    return [(fresh[compiled], ids) for compiled, ids in pairs]


def steps(
    pairs: list[tuple[CompiledGrammar, list[int]]], size: int, threads: int, together: bool, limit: int | None = None
) -> Iterator[float]:
    """Milliseconds of each step: all masks, and a token for each.  Texts that are over begin again."""
    matchers = [Matcher(compiled, limit) for compiled, _ in pairs]
    places = [index % 7 for index in range(len(pairs))]
    for matcher, place, (_, ids) in zip(matchers, places, pairs, strict=True):
        matcher.accept_tokens(ids[:place])
    mask = constrain.allocate_token_bitmask(len(pairs), size)
    for _ in range(_LONGEST):
        tokens = []
        for index, (_, ids) in enumerate(pairs):
            if places[index] == len(ids):
                matchers[index].reset()
                places[index] = 0
            tokens.append(ids[places[index]])
            places[index] += 1
        start = time.perf_counter()
        constrain.fill_next_token_bitmask_batch(matchers, mask, threads=threads)
        if together:
            constrain.accept_token_batch(matchers, tokens)
        else:
            for matcher, token in zip(matchers, tokens, strict=True):
                matcher.accept_token(token)
        yield 1e3 * (time.perf_counter() - start)


def drafts(
    pairs: list[tuple[CompiledGrammar, list[int]]], size: int, length: int, limit: int | None = None
) -> Iterator[float]:
    """Milliseconds of the masks of all drafts of so many tokens; all is known."""
    matchers = [Matcher(compiled, limit) for compiled, _ in pairs]
    mask = constrain.allocate_token_bitmask(len(pairs) * (length + 1), size)
    for begin in range(0, _LONGEST // 4 - length, length):
        proposed = [ids[begin : begin + length] for _, ids in pairs]
        constrain.fill_draft_bitmasks(matchers, proposed, None, mask)
        best = min(_timed(lambda: constrain.fill_draft_bitmasks(matchers, proposed, None, mask)) for _ in range(5))  # noqa: B023
        yield best
        for matcher, tokens in zip(matchers, proposed, strict=True):
            assert matcher.accept_tokens(tokens)


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)


def _said(times: list[float]) -> str:
    return f"mean {np.mean(times):6.2f}  median {np.median(times):6.2f}  most {max(times):6.2f} ms"


@click.command()
@click.option("--count", type=int, default=256, show_default=True, help="Sequences.")
@click.option("--grammars", type=int, default=32, show_default=True)
@click.option("--threads", type=int, default=2, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
def main(count: int, grammars: int, threads: int, seed: int) -> None:
    """Time steps of a batch, and drafts."""
    tokenizer = load_tokenizer(data_folder() / VOCABULARY)
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    pairs = anew(sequences(tokenizer, GrammarCompiler(vocabulary), grammars, count, seed), vocabulary)
    size = vocabulary.size
    # As servers do: a garbage collection that goes through the tokenizer takes 60 ms.
    gc.collect()
    gc.freeze()
    click.echo(f"{count} sequences of {grammars} grammars, {threads} threads; a step is all masks and a token for each")
    click.echo(f"  new places                  {_said(list(steps(pairs, size, threads, True)))}")
    click.echo(f"  known ones                  {_said(list(steps(pairs, size, threads, True)))}")
    click.echo(f"  known, tokens one by one    {_said(list(steps(pairs, size, threads, False)))}")
    list(steps(pairs, size, threads, True, _LIMIT))
    click.echo(f"  known, {_LIMIT} tokens at most  {_said(list(steps(pairs, size, threads, True, _LIMIT)))}")
    click.echo(f"  64 chains of 5, so limited   {_said(list(drafts(pairs[:64], size, 5, _LIMIT)))}")
    for some, length in ((64, 5), (64, 1), (8, 8)):
        click.echo(f"  {some} chains of {length} tokens, known  {_said(list(drafts(pairs[:some], size, length)))}")


if __name__ == "__main__":
    main()
