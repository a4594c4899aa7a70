"""Single masks and compiles that take long, of the schemas of MaskBench or of schemas made to be hard.

    python -m bench.slow_visits [--share I/N] [--above MS] [--most BYTES]
    python -m bench.slow_visits --made N [--seed S]       # schemas of bench/hard_schemas.py
    python -m bench.slow_visits --found                   # those that were found with it

Every process gets so many schemas and has all kernels loaded; each mask, each accepted token and each compile is timed
by itself.  Times are the thread's own on the processor, so what else the machine does is no part of them; no garbage is
collected while they are taken.  The exit status is 1 if something takes longer than ``--above``.  Instances of
MaskBench are followed to their end; through schemas without any, and through made ones, there are random walks.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import gzip
import json
import os
import pkgutil
import random
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from time import thread_time_ns
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
WALKS, WALK_TOKENS = 4, 40

# Of a text's tokens some begin with these, so that walks come out of strings, and to the ends of arrays.
_SIGNS = b'"]},:[{'


class Slow(NamedTuple):
    """Something that took long: of which schema, what, and milliseconds of the processor."""

    schema: str
    what: str
    milliseconds: float


def _load_kernels() -> None:
    """Import all that has kernels, as ``constrain warmup`` does."""
    for module in pkgutil.walk_packages(import_module("constrain.engine").__path__, "constrain.engine."):
        import_module(module.name)


class Visitor:
    """Compiles schemas and goes through texts, with Llama-3's vocabulary.

    Attributes
    ----------
    slow : list of Slow
        What took longer than ``above`` milliseconds since it was emptied.
    longest : float
        Milliseconds of what took longest.
    masks, compiles : int
    """

    def __init__(self, above: float, folder: Path) -> None:
        import constrain
        from bench.maskbench.schemas import VOCABULARY
        from bench.maskbench.vocabulary import TokenTable

        self._constrain: Any = constrain
        self.table = TokenTable.read(folder / VOCABULARY)
        vocabulary = constrain.Vocabulary(
            self.table.tokens, eos_ids=self.table.end_ids, special_ids=self.table.special_ids
        )
        self._compiler = constrain.GrammarCompiler(vocabulary, cache_limit_bytes=0)
        self._mask = constrain.allocate_token_bitmask(1, vocabulary.size)
        tokens = self.table.tokens
        self._is_sign = np.array([bool(token) and token[0] in _SIGNS and len(token) < 3 for token in tokens])
        self._is_short = np.array([0 < len(token) < 6 and token.isascii() for token in tokens])
        self._above = above
        self.slow: list[Slow] = []
        self.longest = 0.0
        self.masks = self.compiles = 0

    def warm_up(self) -> None:
        """Have imported what any schema needs."""
        self.visit_made("warm-up", {"properties": {"a": {"type": "string"}, "b": {"enum": [1, "a", [2]]}}})
        self._forget()

    def _forget(self) -> None:
        self.slow.clear()
        self.longest = self.masks = self.compiles = 0

    def take(self) -> dict[str, Any]:
        """What there was since the last time."""
        found = {"slow": list(self.slow), "longest": self.longest, "masks": self.masks, "compiles": self.compiles}
        self._forget()
        return found

    def compile(self, name: str, text: str) -> Any:
        """The compiled schema; None if it is refused."""
        began = thread_time_ns()
        compiled = None
        with contextlib.suppress(self._constrain.ConstrainError):
            compiled = self._compiler.compile(self._constrain.Grammar.from_json_schema(text))
        self._note(name, "compile", began)
        self.compiles += 1
        return compiled

    def follow(self, name: str, compiled: Any, text: str, tokens: list[int]) -> None:
        """Fill the mask before each token of a text, until it is refused, and behind the last."""
        matcher = self._constrain.Matcher(compiled)
        for index, token in enumerate([*tokens, -1]):
            self._fill(name, matcher, f"{text}, token {index}")
            if token < 0:
                break
            began = thread_time_ns()
            accepted = matcher.accept_token(token)
            self._note(name, f"accept, {text}, token {index}", began)
            if not accepted:
                break

    def walk(self, name: str, compiled: Any, seed: int) -> None:
        """Go a random way through the masks."""
        choose = random.Random(seed)
        matcher = self._constrain.Matcher(compiled)
        written = b""
        for _ in range(WALK_TOKENS):
            self._fill(name, matcher, repr(written.decode(errors="replace")))
            bits = np.unpackbits(self._mask.view(np.uint8), bitorder="little")[: len(self._is_sign)].astype(bool)
            preferred = self._is_sign if choose.random() < 0.3 else self._is_short
            allowed = np.flatnonzero(bits & preferred)
            if not len(allowed):
                allowed = np.flatnonzero(bits & self._is_short)
            if not len(allowed):
                return
            token = int(choose.choice(allowed))
            began = thread_time_ns()
            try:
                matcher.accept_token(token)
            except self._constrain.LimitError:
                return
            written += self.table.tokens[token]
            self._note(name, f"accept, {written.decode(errors='replace')!r}", began)

    def _fill(self, name: str, matcher: Any, where: str) -> None:
        began = thread_time_ns()
        # A limit that is met is an answer, however late.
        with contextlib.suppress(self._constrain.LimitError):
            matcher.fill_next_token_bitmask(self._mask)
        self._note(name, f"mask, {where}", began)
        self.masks += 1

    def _note(self, name: str, what: str, began: int) -> None:
        milliseconds = (thread_time_ns() - began) / 1e6
        self.longest = max(self.longest, milliseconds)
        if milliseconds > self._above:
            self.slow.append(Slow(name, what, milliseconds))

    def visit_made(self, name: str, schema: Any) -> None:
        """Compile a schema and walk through it."""
        compiled = self.compile(name, json.dumps(schema))
        if compiled is not None:
            for seed in range(WALKS):
                self.walk(name, compiled, seed)

    def visit_entry(self, entry: dict[str, Any], most: int) -> None:
        """Compile a schema of MaskBench, of less than so many bytes, and go through its instances."""
        text = json.dumps(entry["schema"])
        if len(text) > most:
            return
        compiled = self.compile(entry["id"], text)
        if compiled is None:
            return
        for index, test in enumerate(entry["tests"]):
            with contextlib.suppress(ValueError):  # the tokenizer changes some texts
                tokens = self.table.encode(json.dumps(test["data"], ensure_ascii=False))
                self.follow(entry["id"], compiled, f"instance {index}", tokens)
        if not entry["tests"]:
            for seed in range(WALKS):
                self.walk(entry["id"], compiled, seed)


def _work(options: argparse.Namespace, first: int, last: int) -> Iterator[dict[str, Any]]:
    """What a process does: its schemas, each with what was slow."""
    from bench import hard_schemas
    from bench.maskbench.schemas import SCHEMAS, data_folder

    folder = data_folder()
    visitor = Visitor(options.above, folder)
    _load_kernels()
    visitor.warm_up()
    lines: list[bytes] = []
    if not options.made:
        with gzip.open(folder / SCHEMAS, "rb") as file:
            lines = file.read().splitlines()
    gc.collect()
    gc.freeze()
    gc.disable()
    for index in range(first, last):
        if options.made:
            visitor.visit_made(f"seed {index}", hard_schemas.schema(index))
        else:
            visitor.visit_entry(json.loads(lines[index].decode(errors="surrogatepass")), options.most)
        yield visitor.take()
        gc.collect()


def _count(options: argparse.Namespace) -> tuple[int, int]:
    """The range of schemas, by number."""
    if options.made:
        return options.seed, options.seed + options.made
    from bench.maskbench.schemas import SCHEMAS, data_folder

    with gzip.open(data_folder() / SCHEMAS, "rb") as file:
        return 0, sum(1 for _ in file)


def _visit_found(above: float) -> int:
    from bench.hard_schemas import FOUND
    from bench.maskbench.schemas import data_folder

    visitor = Visitor(above, data_folder())
    _load_kernels()
    visitor.warm_up()
    gc.disable()
    slow: list[Slow] = []
    for name, schema in FOUND.items():
        visitor.visit_made(name, schema)
        found = visitor.take()
        slow += found["slow"]
        print(f"{found['longest']:8.1f} ms  {name}")
    for one in slow:
        print(f"{one.milliseconds:8.1f} ms  {one.schema}: {one.what}")
    return 1 if slow else 0


def main() -> int:
    """Go over schemas, some in each process."""
    parser = argparse.ArgumentParser(description="Find single masks and compiles that take long.")
    parser.add_argument("--share", default="0/1", help="I/N: every N-th process from the I-th on")
    parser.add_argument("--above", type=float, default=20.0, metavar="MS", help="what is slow (20)")
    parser.add_argument("--most", type=int, default=100_000, metavar="BYTES", help="leave larger schemas out (100,000)")
    parser.add_argument("--schemas", type=int, default=50, metavar="N", help="schemas for each process (50)")
    parser.add_argument("--made", type=int, default=0, metavar="N", help="so many made schemas instead of MaskBench's")
    parser.add_argument("--seed", type=int, default=0, help="of the first made schema")
    parser.add_argument("--found", action="store_true", help="the schemas that were found to be slow, in one process")
    parser.add_argument("--worker", metavar="FIRST:LAST", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        first, last = map(int, options.worker.split(":"))
        for found in _work(options, first, last):
            print(json.dumps(found), flush=True)
        return 0
    if options.found:
        return _visit_found(options.above)
    first, last = _count(options)
    part, parts = map(int, options.share.split("/"))
    slow = masks = compiles = failed = 0
    longest = 0.0
    for begin in list(range(first, last, options.schemas))[part::parts]:
        end = min(begin + options.schemas, last)
        command = [sys.executable, "-m", "bench.slow_visits", *sys.argv[1:], "--worker", f"{begin}:{end}"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            for line in process.stdout or []:
                found = json.loads(line)
                masks, compiles = masks + found["masks"], compiles + found["compiles"]
                longest = max(longest, found["longest"])
                for schema, what, milliseconds in found["slow"]:
                    slow += 1
                    print(f"{milliseconds:8.1f} ms  {schema}: {what}", flush=True)
        if process.returncode:
            failed += 1
            print(f"the process of schemas {begin} to {end - 1} ended with {process.returncode}", flush=True)
    print(f"{compiles:,} compiles, {masks:,} masks: {slow} above {options.above:g} ms; the longest {longest:.1f} ms")
    return 1 if slow or failed or not compiles else 0


if __name__ == "__main__":
    sys.exit(main())
