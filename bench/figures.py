"""The figures in the README: how fast, how exact, how quickly started.

Times are minima and medians over many repetitions, since other work on the machine can only make a
run slower.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import statistics
import time
from pathlib import Path

import click
import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def data_folder() -> Path:
    """The folder of vocabularies and schemas that are not in the repository."""
    folder = Path(os.environ.get("CONSTRAIN_TEST_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        raise click.ClickException(f"no data at {folder}: set CONSTRAIN_TEST_DATA")
    return folder


def llama3_vocabulary():  # type: ignore[no-untyped-def]
    """The 128,256 tokens of Llama-3."""
    import constrain

    tokens = [b""] * 128_256
    with open(data_folder() / "vocab" / "llama3.tiktoken") as file:
        for line in file:
            token, rank = line.split()
            tokens[int(rank)] = base64.b64decode(token)
    return constrain.Vocabulary(tokens, eos_ids=[128_001, 128_009], special_ids=range(128_000, 128_256))


def mask_times(matcher, tokens: list[int]) -> list[float]:  # type: ignore[no-untyped-def]
    """Microseconds of the processor for the mask in front of each token of a text, which is accepted."""
    import constrain

    mask = constrain.allocate_token_bitmask(1, matcher.compiled.vocabulary.size)
    times = []
    for token in tokens:
        start = time.thread_time_ns()
        matcher.fill_next_token_bitmask(mask)
        times.append((time.thread_time_ns() - start) / 1e3)
        assert matcher.accept_token(token)
    return times


def report(name: str, seconds: list[float]) -> None:
    """One line: minimum and median in microseconds."""
    low, middle = 1e6 * min(seconds), 1e6 * statistics.median(seconds)
    click.echo(f"{name:56s} min {low:9.2f} us   median {middle:9.2f} us")


@click.group()
def main() -> None:
    """Measure the figures of the README."""


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "kind": {"enum": ["person", "place"]},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@main.command()
@click.option("--runs", default=30, show_default=True)
def masks(runs: int) -> None:
    """Masks and compiling on Llama-3's vocabulary."""
    import constrain

    started = time.perf_counter()
    vocabulary = llama3_vocabulary()
    trie = vocabulary.trie
    click.echo(
        f"vocabulary: {vocabulary.size:,} tokens, {len(trie.node):,} trie nodes, {vocabulary.nbytes / 1e6:.1f} MB, "
        f"built in {time.perf_counter() - started:.2f} s"
    )
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    text = json.dumps(SCHEMA)
    fronts, compiles, firsts, inside, again, accepts, copies = ([] for _ in range(7))
    for _ in range(runs):
        t0 = time.perf_counter()
        grammar = constrain.Grammar.from_json_schema(text)
        t1 = time.perf_counter()
        compiled = constrain.CompiledGrammar(grammar.ir, vocabulary)
        t2 = time.perf_counter()
        matcher = constrain.Matcher(compiled)
        matcher.fill_next_token_bitmask(mask)
        t3 = time.perf_counter()
        matcher.accept_bytes(b'{"name": "')
        t4 = time.perf_counter()
        matcher.fill_next_token_bitmask(mask)
        t5 = time.perf_counter()
        fronts.append(t1 - t0)
        compiles.append(t2 - t1)
        firsts.append(t3 - t2)
        inside.append(t5 - t4)
        token = int(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))[1000])
        for _ in range(200):
            t0 = time.perf_counter()
            matcher.fill_next_token_bitmask(mask)
            t1 = time.perf_counter()
            matcher.accept_token(token)
            t2 = time.perf_counter()
            copy = mask.copy()
            t3 = time.perf_counter()
            again.append(t1 - t0)
            accepts.append(t2 - t1)
            copies.append(t3 - t2)
        del copy
    report("front-end, four properties", fronts)
    report("compile", compiles)
    report("first mask of all", firsts)
    report("mask inside an open JSON string, first visit", inside)
    report("mask inside an open JSON string, repeated", again)
    report("accept a token", accepts)
    report("(a copy of the mask, for comparison)", copies)


@main.command()
@click.option("--count", default=500, show_default=True, help="How many schemas, or 0 for all that compile.")
def schemas(count: int) -> None:
    """MaskBench schemas: how many compile, and is every instance judged rightly?

    A valid instance that is rejected for the order of its keys is tried again with ``property_order="any"``.
    """
    import constrain

    compiler = constrain.GrammarCompiler(constrain.Vocabulary([bytes([b]) for b in range(256)]), cache_limit_bytes=0)
    taken = refused = right = reordered = all_right = all_right_in_order = 0
    rejected: list[str] = []
    accepted: list[str] = []
    times: list[float] = []
    with gzip.open(data_folder() / "maskbench-dev.jsonl.gz", "rt", errors="surrogatepass") as file:
        for line in file:
            entry = json.loads(line)
            try:
                began = time.perf_counter()
                compiled = compiler.compile(constrain.Grammar.from_json_schema(entry["schema"]))
                times.append(time.perf_counter() - began)
            except constrain.ConstrainError:
                refused += 1
                continue
            taken += 1
            wrong_before, reordered_before = len(rejected) + len(accepted), reordered
            any_order = None
            for test in entry["tests"]:
                try:
                    text = json.dumps(test["data"], ensure_ascii=False).encode()
                except UnicodeEncodeError:
                    continue
                matcher = constrain.Matcher(compiled)
                verdict = matcher.accept_bytes(text) and matcher.is_accepting()
                if not verdict and test["valid"]:
                    if any_order is None:
                        any_order = _compiled_for_any_order(compiler, entry["schema"])
                    matcher = constrain.Matcher(any_order or compiled)
                    if matcher.accept_bytes(text) and matcher.is_accepting():
                        reordered += 1
                        continue
                if verdict == test["valid"]:
                    right += 1
                else:
                    (accepted if verdict else rejected).append(entry["id"])
            if len(rejected) + len(accepted) == wrong_before:
                all_right += 1
                all_right_in_order += reordered == reordered_before
            if taken == count:
                break
    click.echo(f"schemas: {taken} compiled, {refused} refused with an error")
    click.echo(
        f"schemas with every instance right: {all_right}, of them {all_right_in_order} without another order of keys"
    )
    click.echo(
        f"instances: {right} right, {reordered} right in any order of keys, {len(rejected)} wrongly rejected, "
        f"{len(accepted)} wrongly accepted"
    )
    for name, ids in (("wrongly rejected", rejected), ("wrongly accepted", accepted)):
        if ids:
            click.echo(f"{name}: {' '.join(ids)}")
    report("front-end and compile, a schema", times)


def _compiled_for_any_order(compiler, schema):  # type: ignore[no-untyped-def]
    """The schema compiled for every order of keys; None if that is too large."""
    import constrain

    try:
        return compiler.compile(constrain.Grammar.from_json_schema(schema, property_order="any"))
    except constrain.ConstrainError:
        return None


@main.command()
@click.option("--seconds", default=120, show_default=True)
@click.option("--seed", default=1, show_default=True)
def exact(seconds: int, seed: int) -> None:
    """Masks on real schemas and Llama-3's vocabulary, each compared with trying every token byte by byte."""
    import constrain

    vocabulary = llama3_vocabulary()
    # In the order of their bytes, so that tokens share the work on their common beginnings.
    order = sorted(np.flatnonzero(vocabulary.kinds == 0).tolist(), key=vocabulary.tokens.__getitem__)

    def by_trying(compiled, prefix: bytes) -> set[int]:  # type: ignore[no-untyped-def]
        recognizer = compiled.recognizer()
        assert all(recognizer.try_push_byte(byte) for byte in prefix)
        result = set(vocabulary.eos_ids) if recognizer.is_accepting() else set()
        read, dead = b"", None
        for token in order:
            data = vocabulary.tokens[token]
            if dead is not None and data.startswith(dead):
                continue
            dead = None
            common = 0
            while common < min(len(data), len(read)) and data[common] == read[common]:
                common += 1
            recognizer.pop_bytes(len(read) - common)
            read = read[:common]
            for byte in data[common:]:
                if not recognizer.try_push_byte(byte):
                    dead = read + bytes((byte,))
                    break
                read += bytes((byte,))
            if dead is None:
                result.add(token)
        return result

    with gzip.open(data_folder() / "maskbench-dev.jsonl.gz", "rt", errors="surrogatepass") as file:
        entries = file.readlines()
    rng = random.Random(seed)
    rng.shuffle(entries)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    compared = different = 0
    end = time.monotonic() + seconds
    for line in entries:
        if time.monotonic() > end:
            break
        entry = json.loads(line)
        try:
            ir = constrain.Grammar.from_json_schema(entry["schema"]).ir
        except constrain.ConstrainError:
            continue
        compiled, untouched = (constrain.CompiledGrammar(ir, vocabulary) for _ in range(2))
        for test in entry["tests"][:2]:
            try:
                text = json.dumps(test["data"], ensure_ascii=False).encode()
            except UnicodeEncodeError:
                continue
            places = set(rng.sample(range(len(text)), min(3, len(text))))
            matcher = constrain.Matcher(compiled)
            for place, byte in enumerate(text):
                if not matcher.accept_bytes(bytes((byte,))):
                    break
                if place in places:
                    matcher.fill_next_token_bitmask(mask)
                    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
                    compared += 1
                    different += set(np.flatnonzero(bits).tolist()) != by_trying(untouched, text[: place + 1])
    click.echo(f"{compared} masks of {vocabulary.size:,} tokens compared with brute force: {different} differ")


@main.command()
def growth() -> None:
    """Cost per byte of text, mask and accept, as the text grows."""
    import constrain
    from constrain.grammar.ir import GrammarBuilder
    from constrain.grammar.languages import regular

    vocabulary = constrain.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_ids=[256])
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)

    def lists(recursion: str):  # type: ignore[no-untyped-def]
        builder = GrammarBuilder()
        item, comma = builder.lexeme(regular.literal("x")), builder.lexeme(regular.literal(","))
        rule = builder.nonterminal("list")
        builder.add(rule, [item])
        builder.add(rule, [item, comma, rule] if recursion == "right" else [rule, comma, item])
        return builder.finish(rule), lambda n: b"x," * n + b"x"

    def nested():  # type: ignore[no-untyped-def]
        builder = GrammarBuilder()
        rule = builder.nonterminal("nested")
        builder.add(rule, [])
        builder.add(rule, [builder.lexeme(regular.literal("(")), rule, builder.lexeme(regular.literal(")"))])
        return builder.finish(rule), lambda n: b"(" * n + b")" * n

    cases = {"left-recursive list": lists("left"), "right-recursive list": lists("right"), "nesting": nested()}
    for name, (ir, make_text) in cases.items():
        for n in (1_000, 10_000, 50_000):
            matcher = constrain.Matcher(constrain.CompiledGrammar(ir, vocabulary))
            text = make_text(n)
            began = time.perf_counter()
            for byte in text:
                matcher.fill_next_token_bitmask(mask)
                assert matcher.accept_token(byte)
            seconds = time.perf_counter() - began
            rows = matcher.compiled.statistics()["rows"]
            click.echo(f"{name:22s} n = {n:6d}: {1e6 * seconds / len(text):6.2f} us a byte, {rows:6d} rows")


if __name__ == "__main__":
    main()
