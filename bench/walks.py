"""Random walks: any allowed token, again and again, to the end; then another validator judges the text.

Two things are found this way that instances do not find: masks that allow what is not valid, and masks that lead to a
place from which nothing goes on.  After a while a walk is steered towards the end: tokens that close something come
first, so that lists and strings end; at last the matcher's budget sees to it.
"""

from __future__ import annotations

import gzip
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import constrain
from bench.figures import data_folder, llama3_vocabulary
from bench.judge import Judge, NoVerdict, RepeatedKey

# When a walk is steered, what is first here comes first: signs that close, values that are short, the rest.
_OUTSIDE = (b"}]", b"ntf0123456789", b':"', b"[", b"{", b",", b"-+.eE")
_NUMBER = (b"}]", b",", b"+-.eE0123456789")
_INSIDE = (b'"', b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def ranks(vocabulary: constrain.Vocabulary, signs: tuple[bytes, ...]) -> NDArray[np.uint8]:
    """uint8[size]: how early a token comes when a walk is steered towards the end; low is early."""
    found = np.full(vocabulary.size, 2 * len(signs), np.uint8)
    for token, data in enumerate(vocabulary.tokens):
        for rank, group in enumerate(signs):
            if data[:1] and data[0] in group:
                # Of two tokens with the same beginning the one that says no more than that is nearer to the end.
                found[token] = 2 * rank + (len(data) > 1 and any(byte not in b'"}]' for byte in data))
                break
    return found


def _is_inside(text: bytes, inside: bool) -> bool:
    """Whether a JSON string is open after a piece of text; an escape that is cut in two is taken for a sign."""
    skip = False
    for byte in text:
        if skip:
            skip = False
        elif inside and byte == 0x5C:
            skip = True
        elif byte == 0x22:
            inside = not inside
    return inside


@dataclass
class Walk:
    """One walk.

    Attributes
    ----------
    text : bytes
    end : {"end", "stuck", "long", "limit"}
        Whether the end was reached, no token was allowed, there were too many tokens, or the engine gave up with an
        error, which then is the text.
    """

    text: bytes
    end: str
    tokens: int


class Walker:
    """Walks through masks.

    Parameters
    ----------
    free : int
        After so many tokens a walk is steered to its end.
    limit : int
        The budget of the matcher: near its end masks lead to the end of the text.  Where there can be none, the walk is
        given up after four times as many.
    """

    def __init__(self, vocabulary: constrain.Vocabulary, rng: random.Random, free: int, limit: int) -> None:
        self._vocabulary = vocabulary
        self._rng = rng
        self._free, self._limit = free, limit
        self._mask = constrain.allocate_token_bitmask(1, vocabulary.size)
        self._outside, self._number, self._inside = (ranks(vocabulary, signs) for signs in (_OUTSIDE, _NUMBER, _INSIDE))
        self._first = np.array([data[0] if data else 0 for data in vocabulary.tokens], np.uint8)
        self._lengths = np.array([len(data) for data in vocabulary.tokens])
        self._ends = set(vocabulary.eos_ids)

    def walk(self, compiled: constrain.CompiledGrammar) -> Walk:
        """One walk from the beginning."""
        rng, vocabulary = self._rng, self._vocabulary
        limit = self._limit
        try:
            matcher = constrain.Matcher(compiled, max_tokens=limit)
        except constrain.ConstrainError:
            # Where no text is known that is short enough, and where budgets are not supported.
            matcher = constrain.Matcher(compiled)
            limit *= 4
        # Some walks see more of the structure, some more of what stands in strings.
        steered = rng.choice((0.2, 0.5, 0.8))
        free = rng.randrange(self._free)
        text = bytearray()
        inside = False
        for count in range(limit + 1):
            matcher.fill_next_token_bitmask(self._mask)
            allowed = np.flatnonzero(np.unpackbits(self._mask.view(np.uint8), bitorder="little"))
            allowed = allowed[vocabulary.kinds[allowed] == 0]
            ending = [token for token in self._ends if self._mask[0, token >> 5] >> (token & 31) & 1]
            if ending and (not len(allowed) or count >= free or rng.random() < 0.3):
                assert matcher.accept_token(ending[0])
                return Walk(bytes(text), "end", count)
            if not len(allowed):
                return Walk(bytes(text), "stuck", count)
            if count >= free or rng.random() < steered:
                table = self._inside if inside else self._number if text[-1:].isdigit() else self._outside
                order = table[allowed]
                # Now and then something else, lest the walk goes in a circle: an unlikely sign may be what is missing.
                if order.min() == 0 or rng.random() < 0.7:
                    allowed = allowed[order == order.min()]
                else:
                    allowed = allowed[self._first[allowed] == rng.choice(np.unique(self._first[allowed]))]
                    allowed = allowed[self._lengths[allowed] == self._lengths[allowed].min()]
            token = int(allowed[rng.randrange(len(allowed))])
            if not matcher.accept_token(token):
                return Walk(bytes(text) + vocabulary.tokens[token], "stuck", count)
            text += vocabulary.tokens[token]
            inside = _is_inside(vocabulary.tokens[token], inside)
        return Walk(bytes(text), "long", limit)


def entries(seed: int) -> Iterator[dict[str, Any]]:
    """The schemas, in an order that depends on the seed alone, over and over."""
    with gzip.open(data_folder() / "maskbench-dev.jsonl.gz", "rb") as file:
        lines = file.read().splitlines()
    random.Random(seed).shuffle(lines)
    while True:
        for line in lines:
            yield json.loads(line.decode(errors="surrogatepass"))


@click.command()
@click.option("--walks", default=10_000, show_default=True)
@click.option("--each", default=3, show_default=True, help="How many for one schema.")
@click.option("--seed", default=1, show_default=True)
@click.option("--free", default=60, show_default=True, help="Tokens after which a walk is steered to its end.")
@click.option("--limit", default=500, show_default=True, help="Tokens of the matcher's budget.")
@click.option("--order", type=click.Choice(["schema", "any"]), default="schema", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Write the findings here, one JSON object a line.")
def main(walks: int, each: int, seed: int, free: int, limit: int, order: str, output: Path | None) -> None:
    """Walk at random through the masks of real schemas; the jsonschema package judges where that leads."""
    vocabulary = llama3_vocabulary()
    compiler = constrain.GrammarCompiler(vocabulary, cache_limit_bytes=0)
    walker = Walker(vocabulary, random.Random(seed), free, limit)
    counts: Counter[str] = Counter()
    findings: list[dict[str, Any]] = []
    tokens = done = schemas = 0
    began = time.perf_counter()
    for entry in entries(seed):
        if done >= walks:
            break
        schemas += 1
        try:
            compiled = compiler.compile(constrain.Grammar.from_json_schema(entry["schema"], property_order=order))
        except constrain.ConstrainError:
            counts["schemas refused"] += 1
            continue
        judge = None
        why = ""
        try:
            judge = Judge(entry["schema"])
        except Exception as error:
            # Whatever keeps the judge from reading a schema, the walks still show that they come to an end.
            why = str(error)
        for _ in range(min(each, walks - done)):
            done += 1
            try:
                walk = walker.walk(compiled)
            except constrain.ConstrainError as error:
                # A limit of the engine's, met on the way.
                walk = Walk(str(error).encode(), "limit", 0)
            tokens += walk.tokens
            kind, reason = judged(judge, walk) if judge is not None else ("not judged", why)
            counts[kind] += 1
            if kind not in ("valid", "not judged"):
                text = walk.text.decode(errors="replace")
                findings.append({"id": entry["id"], "kind": kind, "reason": reason, "text": text})
                click.echo(f"{kind}: {entry['id']}: {reason}\n    {text[:300]}")
            if output is not None and kind == "not judged":
                findings.append({"id": entry["id"], "kind": kind, "reason": reason})
    if output is not None:
        output.write_text("".join(json.dumps(finding) + "\n" for finding in findings))
    click.echo(
        f"{done:,} walks through {schemas:,} schemas, {tokens:,} tokens, in {time.perf_counter() - began:.0f} s: "
        + ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
    )


def judged(judge: Judge, walk: Walk) -> tuple[str, str]:
    """What a walk came to, and why."""
    if walk.end != "end":
        return walk.end, f"after {walk.tokens} tokens"
    try:
        reason = judge.verdict(walk.text.decode())
    except NoVerdict as error:
        return "not judged", str(error)
    except RepeatedKey as error:
        return "repeated key", str(error)
    except UnicodeDecodeError as error:
        return "invalid", f"not UTF-8: {error}"
    return ("invalid", reason) if reason else ("valid", "")


if __name__ == "__main__":
    main()
