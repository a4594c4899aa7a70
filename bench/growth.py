"""How cost grows: with the vocabulary, grammars kept, the schema, the text, its nesting, and the number of sequences.

Each command prints a Markdown table, which docs/performance.md has a copy of.  Times of ``cache``,
``schema``, ``output`` and ``nesting`` are the processor's, those of ``vocabulary`` and ``batch`` the clock's
(medians of several runs): the one is for single steps, the other for what several threads do.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.figures import data_folder  # noqa: E402

VOCABULARIES = ["llama2.spm.model", "r50k_base.tiktoken", "llama3.tiktoken", "o200k_base.tiktoken"]


def load(name: str):  # type: ignore[no-untyped-def]
    """A tokenizer and its vocabulary."""
    import constrain

    tokenizer = constrain.load_tokenizer(data_folder() / "vocab" / name)
    return tokenizer, constrain.Vocabulary.from_tokenizer(tokenizer)


def table(head: str, rows: Iterator[list[str]]) -> None:
    """Print a Markdown table row by row, as each is measured."""
    columns = head.split(" | ")
    click.echo(f"| {head} |\n|" + "---:|" * len(columns))
    for row in rows:
        click.echo(f"| {' | '.join(row)} |")


def seconds(work: Callable[[], object], runs: int = 1) -> float:
    """The median time of some runs."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def run(matcher, mask, tokens: list[int]) -> list[float]:  # type: ignore[no-untyped-def]
    """Fill a mask and accept, for each token; the seconds of each step.

    They are seconds of the processor: a step that waits for it is not a slow one.
    """
    times = []
    for token in tokens:
        began = time.thread_time()
        matcher.fill_next_token_bitmask(mask)
        accepted = matcher.accept_token(token)
        times.append(time.thread_time() - began)
        assert accepted
        assert mask[0, token >> 5] >> (token & 31) & 1
    return times


@click.group()
def main() -> None:
    """Measure how cost grows."""


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "kind": {"enum": ["person", "place"]}},
    "required": ["name", "age", "kind"],
    "additionalProperties": False,
}


def of_vocabulary(name: str) -> list[str]:
    """A row of the table that ``vocabulary`` prints."""
    import numpy as np

    import constrain
    from constrain.engine.vocabulary.trie import TokenTrie

    tokenizer, vocabulary = load(name)
    members = np.flatnonzero(vocabulary.kinds == 0)
    building = seconds(lambda: TokenTrie(vocabulary.data, vocabulary.starts, members))
    loading = seconds(
        lambda: constrain.Vocabulary(vocabulary.tokens, vocabulary.eos_ids, vocabulary.special_ids),
        3,
    )
    vocabulary.shared.clear()  # what was read from disk
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    ir = constrain.Grammar.from_json_schema(PERSON).ir
    first = []
    for _ in range(10):
        matcher = constrain.Matcher(constrain.CompiledGrammar(ir, vocabulary))
        matcher.accept_bytes(b'{"name": "')
        first.append(seconds(partial(matcher.fill_next_token_bitmask, mask)))
    token = tokenizer.encode("a").ids[0]
    return [
        name.split(".")[0],
        f"{vocabulary.size:,}",
        f"{len(vocabulary.trie.node):,}",
        f"{vocabulary.nbytes / 1e6:.1f}",
        f"{1e3 * building:.0f}",
        f"{1e3 * loading:.0f}",
        f"{1e3 * first[0]:.2f}",
        f"{1e6 * statistics.median(first[1:]):.0f}",
        f"{1e6 * seconds(partial(matcher.fill_next_token_bitmask, mask), 1000):.2f}",
        f"{1e6 * seconds(partial(matcher.accept_token, token), 1000):.2f}",
    ]


@main.command()
def vocabulary() -> None:
    """Vocabularies of 32,000 to 200,000 tokens."""
    import constrain

    def rows() -> Iterator[list[str]]:
        for name in VOCABULARIES:
            try:
                yield of_vocabulary(name)
            except constrain.TokenizerError as error:
                click.echo(f"left out: {error}", err=True)

    table(
        "vocabulary | tokens | trie nodes | tables, MB | building, ms | from disk, ms | first mask in a string ever, ms"
        " | in a new grammar, us | repeated, us | accept, us",
        rows(),
    )


def large_schema(size: int) -> dict[str, object]:
    """A schema of about so many bytes of JSON: an object of records, all of them different, a few of them required."""
    properties: dict[str, object] = {}
    count = max(1, size // 400)
    for index in range(count):
        properties[f"record_{index:05d}"] = {
            "type": "object",
            "title": f"Record number {index} of {count}",
            "properties": {
                f"name_{index}": {"type": "string", "maxLength": 40 + index % 50},
                f"amount_{index}": {"type": "number"},
                f"kind_{index}": {"enum": ["first", "second", f"of {index}"]},
                f"tags_{index}": {"type": "array", "items": {"type": "string"}},
            },
            "required": [f"name_{index}"],
            "additionalProperties": False,
        }
    return {"type": "object", "properties": properties, "additionalProperties": False}


@main.command()
def cache() -> None:
    """Compilers that keep 10 to 2,000 grammars: what the next one takes, and one that is kept."""
    import constrain

    _, vocabulary = load("llama3.tiktoken")

    def grammar(index: int) -> constrain.Grammar:
        properties = {f"name_{index}": {"type": "string"}, "age": {"type": "integer"}}
        return constrain.Grammar.from_json_schema({"type": "object", "properties": properties})

    def rows() -> Iterator[list[str]]:
        compiler = constrain.GrammarCompiler(vocabulary, cache_limit_bytes=1 << 40)
        times: list[float] = []
        for index, each in enumerate(map(grammar, range(2001))):
            began = time.thread_time()
            compiler.compile(each)
            times.append(time.thread_time() - began)
            if index in (10, 100, 1000, 2000):
                again = statistics.median(seconds(partial(compiler.compile, each)) for _ in range(100))
                new = statistics.median(times[-10:])
                yield [f"{index:,}", f"{1e3 * new:.2f}", f"{1e6 * again:.1f}", f"{compiler.nbytes / 1e6:.0f}"]

    table("grammars kept | one more, ms | one that is kept, us | tables, MB", rows())


@main.command()
@click.option("--most", default=4_000_000, show_default=True, help="Bytes of the largest schema.")
def schema(most: int) -> None:
    """Schemas of 4 KB to 4 MB, and a text of 20 records for each."""
    import constrain

    tokenizer, vocabulary = load("llama3.tiktoken")
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)

    def rows() -> Iterator[list[str]]:
        size = 4_000
        while size <= most:
            text = json.dumps(large_schema(size))
            began = time.thread_time()
            grammar = constrain.Grammar.from_json_schema(text)
            parsed = time.thread_time()
            compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
            matcher = constrain.Matcher(compiled)
            done = time.thread_time()
            matcher.fill_next_token_bitmask(mask)
            masked = time.thread_time()
            before = compiled.nbytes
            count = len(json.loads(text)["properties"])
            chosen = sorted({index * max(1, count // 20) for index in range(min(20, count))})
            instance = {
                f"record_{index:05d}": {f"name_{index}": "Ada", f"amount_{index}": 1.5, f"kind_{index}": "second"}
                for index in chosen
                if index < count
            }
            times = run(matcher, mask, tokenizer.encode(json.dumps(instance)).ids)
            assert matcher.is_accepting()
            yield [
                f"{len(text):,}",
                f"{1e3 * (parsed - began):.1f}",
                f"{1e3 * (done - parsed):.1f}",
                f"{1e6 * (masked - began) / len(text):.2f}",
                f"{1e3 * (masked - done):.2f}",
                f"{before / 1e6:.1f}",
                f"{len(times)}",
                f"{1e6 * statistics.median(times):.1f}",
                f"{1e6 * statistics.mean(times):.1f}",
                f"{1e3 * max(times):.2f}",
            ]
            size *= 10

    table(
        "bytes of schema | front-end, ms | compile, ms | us a byte | first mask, ms | tables, MB | tokens | "
        "mask + accept, us | mean, us | slowest, ms",
        rows(),
    )


_WORDS = ["plain", 'quo\\"ted', "naïve", "日本", "\\u00e9", "x" * 20, " "]


def changing_json(choose: random.Random, depth: int) -> Iterator[str]:
    """An endless JSON array in pieces; what is in it, and how it is nested, never repeats itself for long."""
    closers, first = ["]"], True
    yield "["
    while True:
        if len(closers) > 1 and choose.random() < 0.3:
            yield closers.pop()
            first = False
            continue
        piece = "" if first else ", "
        if closers[-1] == "}":
            piece += json.dumps(f"key {choose.randrange(10**6)}") + ": "
        kind = choose.random()
        first = kind < 0.4 and len(closers) < depth
        if first:
            opener, closer = choose.choice(["[]", "{}"])
            closers.append(closer)
            yield piece + opener
        elif kind < 0.7:
            text = " ".join(choose.choices(_WORDS, k=choose.randrange(6)))
            yield f'{piece}"{text}"'
        else:
            yield piece + choose.choice(["true", "null", "-1.5e3", str(choose.randrange(10**9))])


def tokens_of(tokenizer, pieces: Iterator[str], count: int) -> list[int]:  # type: ignore[no-untyped-def]
    """The first so many tokens of a text."""
    ids: list[int] = []
    while len(ids) < count:
        ids += tokenizer.encode("".join(next(pieces) for _ in range(1000))).ids
    return ids[:count]


@main.command()
@click.option("--tokens", default=200_000, show_default=True)
@click.option("--depth", default=40, show_default=True, help="How deep the text is nested at most.")
def output(tokens: int, depth: int) -> None:
    """One text of 200,000 tokens: any JSON, and a list of records."""
    import constrain

    tokenizer, vocabulary = load("llama3.tiktoken")
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    choose = random.Random(1)

    def records() -> Iterator[str]:
        yield "["
        for index in range(10**9):
            name = "".join(choose.choices("abcdefghij klmnop", k=choose.randrange(1, 20)))
            yield ("" if index == 0 else ", ") + json.dumps(
                {"name": name, "age": choose.randrange(10**6), "kind": "person"}
            )

    cases = {
        "any JSON": ({}, changing_json(choose, depth)),
        "records": ({"type": "array", "items": PERSON}, records()),
    }

    def rows() -> Iterator[list[str]]:
        for name, (schema_, pieces) in cases.items():
            ids = tokens_of(tokenizer, pieces, tokens)
            compiled = constrain.CompiledGrammar(constrain.Grammar.from_json_schema(schema_).ir, vocabulary)
            matcher = constrain.Matcher(compiled)
            part = max(1, tokens // 8)
            for begin in range(0, tokens, part):
                times = run(matcher, mask, ids[begin : begin + part])
                counts = compiled.statistics()
                yield [
                    name,
                    f"{begin + len(times):,}",
                    f"{1e6 * statistics.median(times):.2f}",
                    f"{1e6 * statistics.mean(times):.2f}",
                    f"{1e3 * max(times):.1f}",
                    f"{counts['rows']:,}",
                    f"{counts['states']:,}",
                    f"{counts['nbytes'] / 1e6:.1f}",
                ]

    table(
        "text | to token | mask + accept, us | mean, us | slowest, ms | Earley sets | states | tables, MB",
        rows(),
    )


@main.command()
def nesting() -> None:
    """Lists, and lists and objects by turns, to 5,000 levels and back."""
    import constrain

    _, vocabulary = load("llama3.tiktoken")
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    single = {token: index for index, token in enumerate(vocabulary.tokens) if len(token) == 1}

    def rows() -> Iterator[list[str]]:
        for name, opening, closing in (("lists", b"[", b"]"), ("by turns", b'[{"a":', b"}]")):
            for depth in (10, 100, 1_000, 5_000):
                ir = constrain.Grammar.from_json_schema({}).ir
                compiled = constrain.CompiledGrammar(ir, vocabulary)
                matcher = constrain.Matcher(compiled)
                levels = depth // len(closing)
                down = run(matcher, mask, [single[bytes((byte,))] for byte in opening * levels + b"1"])
                up = run(matcher, mask, [single[bytes((byte,))] for byte in closing * levels])
                assert matcher.is_accepting()
                counts = compiled.statistics()
                yield [
                    name,
                    f"{depth:,}",
                    *(f"{1e6 * statistics.mean(times):.1f}" for times in (down, up)),
                    *(f"{1e6 * statistics.median(times):.1f}" for times in (down, up)),
                    f"{1e3 * max(down + up):.2f}",
                    f"{counts['rows']:,}",
                    f"{counts['nbytes'] / 1e6:.1f}",
                ]

    table(
        "nesting | levels | a token down, mean us | up, mean us | down, median us | up, median us | slowest, ms "
        "| Earley sets | tables, MB",
        rows(),
    )


def of_batch(vocabulary, size: int, distinct: bool, threads: int) -> list[str]:  # type: ignore[no-untyped-def]
    """Microseconds a sequence, for masks that are new and for masks that are known."""
    import constrain

    mask = constrain.allocate_token_bitmask(size, vocabulary.size)
    first: list[float] = []
    again: list[float] = []
    for _ in range(3):
        gc.collect()
        grammars = []
        for index in range(size if distinct else 1):
            text = json.dumps(PERSON).replace('"name"', f'"name{index}"')
            ir = constrain.Grammar.from_json_schema(text).ir
            grammars.append(constrain.CompiledGrammar(ir, vocabulary))
        matchers = [constrain.Matcher(grammars[index % len(grammars)]) for index in range(size)]
        fill = partial(constrain.fill_next_token_bitmask_batch, matchers, mask, threads=threads)
        for place in range(3):
            for index, matcher in enumerate(matchers):
                texts = ('{"', f'name{index % len(grammars)}": "', "abc")
                assert matcher.accept_bytes(texts[place].encode())
            first.append(seconds(fill))
            again.append(seconds(fill, 10))
    return [f"{1e6 * statistics.median(times) / size:.2f}" for times in (first, again)]


@main.command()
@click.option("--most", default=512, show_default=True, help="Sequences in the largest batch.")
def batch(most: int) -> None:
    """1 to 512 sequences, of one grammar and of distinct ones, in one call, on 1 and 2 threads."""
    _, vocabulary = load("llama3.tiktoken")

    def rows() -> Iterator[list[str]]:
        size = 1
        while size <= most:
            row = [str(size)]
            for distinct in (False, True):
                for threads in (1, 2):
                    row += of_batch(vocabulary, size, distinct, threads)
            yield row
            size *= 8

    kinds = [f"{kind}, {threads}" for kind in ("one grammar", "distinct") for threads in ("1 thread", "2 threads")]
    table("sequences | " + " | ".join(f"{kind}: new, us | known, us" for kind in kinds), rows())


if __name__ == "__main__":
    main()
