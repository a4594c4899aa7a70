"""Masks for logits on a GPU: what applying them takes, and what they add to the steps of a model there.

Applying: the Triton kernel beside torch operations and beside XGrammar's own kernel, engines in turn, with logits of
several sets in turn, so that none is in the processor's cache from the time before.  Steps: a model of matrix products,
256 sequences of MaskBench's schemas in Llama-3's tokens, as in `bench.batches`.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import click
import numpy as np

import constrain
from bench.batches import _LONGEST, anew, sequences
from bench.maskbench.schemas import VOCABULARY, data_folder
from constrain import GrammarCompiler, Matcher, Vocabulary, load_tokenizer
from constrain.engine.vocabulary.device_masks import _apply_with_operations
from constrain.integrations.mask_buffers import MaskBuffers

_WIDTH = 128_256
_SETS = 4
"""Logits that are used in turn: at 256 rows of float32 a set has 131 MB, more than the second cache of any GPU."""


def _appliers(torch: Any) -> dict[str, Callable[[Any, Any], None]]:
    found: dict[str, Callable[[Any, Any], None]] = {
        "constrain": lambda logits, mask: constrain.apply_token_bitmask_inplace(logits, mask),
        "torch operations": lambda logits, mask: _apply_with_operations(torch, logits, mask, None),
    }
    try:
        import xgrammar
    except ImportError:
        click.echo("XGrammar is not installed")
    else:
        found["xgrammar"] = lambda logits, mask: xgrammar.apply_token_bitmask_inplace(logits, mask)
    return found


def _microseconds(torch: Any, call: Callable[[int], None], repeats: int) -> float:
    """The median time of a call on the GPU, by events."""
    for number in range(_SETS):
        call(number)
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
    torch.cuda.synchronize()
    for number, (begin, end) in enumerate(pairs):
        begin.record()
        call(number % _SETS)
        end.record()
    torch.cuda.synchronize()
    return 1e3 * float(np.median([begin.elapsed_time(end) for begin, end in pairs]))


def applying(torch: Any, repeats: int) -> None:
    """Print what applying a mask takes, for batches, dtypes and shares of allowed tokens."""
    appliers = _appliers(torch)
    rng = np.random.default_rng(1)
    click.echo(f"applying masks to {_WIDTH} logits, median microseconds of {repeats}")
    click.echo(f"  {'rows':>4} {'dtype':9} {'allowed':>8} " + " ".join(f"{name:>16}" for name in appliers))
    for rows in (1, 32, 256):
        for dtype in (torch.float32, torch.bfloat16):
            logits = [torch.randn(rows, _WIDTH, device="cuda").to(dtype) for _ in range(_SETS)]
            for share in (0.001, 0.5, 0.99):
                bits = rng.random((rows, _WIDTH)) < share
                mask = torch.from_numpy(np.packbits(bits, axis=1, bitorder="little").view(np.int32)).cuda()
                times = [
                    _microseconds(torch, lambda number, apply=apply: apply(logits[number], mask), repeats)  # type: ignore[misc]  # noqa: B023
                    for apply in appliers.values()
                ]
                name = str(dtype).split(".")[1]
                click.echo(f"  {rows:4} {name:9} {share:8.3f} " + " ".join(f"{value:16.1f}" for value in times))


class _Model:
    """Matrix products that take about so long, and logits."""

    def __init__(self, torch: Any, milliseconds: float, rows: int) -> None:
        self._torch = torch
        self._weights = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
        self._state = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
        self._answer = torch.randn(rows, _WIDTH, device="cuda")
        self._products = 1
        self._products = max(1, round(20 * milliseconds / (_best(self._twenty) or 1)))

    def _twenty(self) -> None:
        for _ in range(20):
            self._state = self._state @ self._weights
        self._torch.cuda.synchronize()

    def logits(self) -> Any:
        """Queue the work; float32[rows, vocabulary] that are there when it is done."""
        for _ in range(self._products):
            self._state = self._state @ self._weights
        return self._answer.clone()


def _best(call: Callable[[], None]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return min(times)


def _steps(torch: Any, pairs: Any, model: _Model, way: str, size: int, threads: int) -> Iterator[float]:
    """Milliseconds of each step: the model, masks, a token for each sequence, from the GPU, and accepting it."""
    matchers = [Matcher(compiled) for compiled, _ in pairs]
    places = [0] * len(pairs)
    mask = constrain.allocate_token_bitmask(len(pairs), size)
    with MaskBuffers(len(pairs), size, "cuda", threads=threads) as buffers:
        last: list[int | None] = [None] * len(pairs)
        for _ in range(_LONGEST):
            tokens = []
            for index, (compiled, ids) in enumerate(pairs):
                if places[index] == len(ids):
                    # As in a server, another sequence takes its place; here it is the same once more.
                    matchers[index], last[index], places[index] = Matcher(compiled), None, 0
                tokens.append(ids[places[index]])
                places[index] += 1
            start = time.perf_counter()
            if way == "before the model":
                constrain.fill_next_token_bitmask_batch(matchers, mask, threads=threads)
            elif way == "MaskBuffers, before":
                buffers.fill(matchers, tokens=last)
            logits = model.logits()
            if way == "MaskBuffers":
                buffers.fill(matchers, tokens=last)
            if way == "when it is queued":
                constrain.fill_next_token_bitmask_batch(matchers, mask, threads=threads)
            if way.startswith("MaskBuffers"):
                buffers.apply(logits)
            elif way != "no masks":
                constrain.apply_token_bitmask_inplace(logits, mask)
            chosen = logits.argmax(-1).cpu()
            assert len(chosen) == len(pairs)
            if way.startswith("MaskBuffers"):
                last = list(tokens)
            elif way != "no masks":
                constrain.accept_token_batch(matchers, tokens)
            yield 1e3 * (time.perf_counter() - start)


def stepping(torch: Any, count: int, grammars: int, threads: int, milliseconds: float, seed: int) -> None:
    """Print what the masks of a batch add to a model's steps, at new places and at known ones."""
    tokenizer = load_tokenizer(data_folder() / VOCABULARY)
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    found = sequences(tokenizer, GrammarCompiler(vocabulary), grammars, count, seed)
    model = _Model(torch, milliseconds, count)
    gc.collect()
    gc.freeze()
    click.echo(f"steps of {count} sequences of {grammars} grammars, {threads} threads, a model of {milliseconds} ms")
    click.echo(f"  {'':20} {'places':8} {'mean':>7} {'median':>7} {'most':>7} ms")
    list(_steps(torch, found, model, "MaskBuffers", vocabulary.size, threads))
    for way in ("no masks", "before the model", "when it is queued", "MaskBuffers, before", "MaskBuffers", "no masks"):
        pairs = anew(found, vocabulary)
        for places in ("new", "known"):
            times = list(_steps(torch, pairs, model, way, vocabulary.size, threads))
            click.echo(f"  {way:20} {places:8} {np.mean(times):7.2f} {np.median(times):7.2f} {max(times):7.2f}")


@click.command()
@click.option("--repeats", type=int, default=200, show_default=True, help="Calls of a kernel.")
@click.option("--count", type=int, default=256, show_default=True, help="Sequences.")
@click.option("--grammars", type=int, default=32, show_default=True)
@click.option("--threads", type=int, default=2, show_default=True)
@click.option("--milliseconds", type=float, default=5.0, show_default=True, help="What the model takes for a step.")
@click.option("--seed", type=int, default=1, show_default=True)
def main(repeats: int, count: int, grammars: int, threads: int, milliseconds: float, seed: int) -> None:
    """Time masks on a GPU of CUDA."""
    try:
        import torch
    except ImportError:
        raise click.ClickException("torch is not installed") from None
    if not torch.cuda.is_available():
        raise click.ClickException("there is no GPU of CUDA")
    click.echo(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, constrain {constrain.__version__}")
    applying(torch, repeats)
    stepping(torch, count, grammars, threads, milliseconds, seed)


if __name__ == "__main__":
    main()
