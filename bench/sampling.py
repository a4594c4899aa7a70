"""The sampler against the same chain in PyTorch on the CPU, side by side in one run.

``python -m bench.sampling`` prints a table; ``--json`` prints the figures.  Both get the same logits
and the same bitmask; PyTorch unpacks the mask, and does the chain as its users write it: masked_fill,
division, topk, softmax, sort and cumulative sum for top-p, multinomial.  One thread each.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from constrain.sampling import Sampler

VOCABULARY = 128_256
TEMPERATURE, TOP_K, TOP_P = 0.8, 40, 0.9
ALLOWED = (1.0, 0.85, 0.5, 0.02, 0.01, 0.001)
Logits = npt.NDArray[np.float32]
Mask = npt.NDArray[np.int32]


def bitmask(share: float, generator: np.random.Generator) -> Mask | None:
    """A mask that allows so many of the tokens; ``None`` for all of them."""
    if share == 1:
        return None
    bits = generator.random(VOCABULARY) < share
    bits = np.pad(bits, (0, -VOCABULARY % 32))
    return np.packbits(bits, bitorder="little").view("<i4").astype(np.int32)


def torch_chain(top_k: int, top_p: float, full_sort: bool) -> Callable[[Logits, Mask | None], int]:
    """The chain in PyTorch; with ``full_sort`` as transformers' warpers do it, on whole rows."""
    import torch

    shifts = torch.arange(32, dtype=torch.int32)

    def draw(logits: Logits, mask: Mask | None) -> int:
        row = torch.from_numpy(logits)
        if mask is not None:
            allowed = ((torch.from_numpy(mask).unsqueeze(-1) >> shifts) & 1).bool().reshape(-1)[: len(row)]
            row = row.masked_fill(~allowed, float("-inf"))
        row = row / TEMPERATURE
        if full_sort:
            if top_k:
                row = row.masked_fill(row < torch.topk(row, top_k)[0][-1], float("-inf"))
            values, ids = torch.sort(row, descending=False)
            drop = values.softmax(-1).cumsum(-1) <= 1 - top_p
            drop[-1] = False
            row = row.masked_fill(drop.scatter(0, ids, drop), float("-inf"))
            return int(torch.multinomial(row.softmax(-1), 1))
        values, ids = torch.topk(row, top_k) if top_k else torch.sort(row, descending=True)
        probabilities = values.softmax(-1)
        probabilities[probabilities.cumsum(-1) - probabilities >= top_p] = 0
        return int(ids[torch.multinomial(probabilities, 1)])

    return draw


def torch_all(logits: Logits) -> int:
    """One of all tokens in PyTorch, without any cut."""
    import torch

    return int(torch.multinomial((torch.from_numpy(logits) / TEMPERATURE).softmax(-1), 1))


def torch_typical(logits: Logits) -> int:
    """Locally typical sampling as in transformers."""
    import torch

    row = torch.from_numpy(logits) / TEMPERATURE
    scores = row.log_softmax(-1)
    far = (-scores + (scores * scores.exp()).nansum(-1, keepdim=True)).abs()
    nearest, ids = torch.sort(far)
    last = int((row.gather(-1, ids).softmax(-1).cumsum(-1) < TOP_P).sum())
    row = row.masked_fill(far > nearest[min(last, len(row) - 1)], float("-inf"))
    return int(torch.multinomial(row.softmax(-1), 1))


def torch_rows(rows: npt.NDArray[np.float32]) -> Any:
    """Top-k and top-p of several rows at once in PyTorch."""
    import torch

    values, ids = torch.topk(torch.from_numpy(rows) / TEMPERATURE, TOP_K)
    probabilities = values.softmax(-1)
    probabilities[probabilities.cumsum(-1) - probabilities >= TOP_P] = 0
    return ids.gather(-1, torch.multinomial(probabilities, 1))


def torch_log_probabilities(logits: Logits, top: int, draw: Callable[[Logits, Mask | None], int] | None) -> Any:
    """Log-probabilities of a token and of the ``top`` best in PyTorch; the token is drawn, or the best."""
    import torch

    scores = torch.from_numpy(logits).log_softmax(-1)
    values, ids = scores.topk(top)
    token = int(ids[0]) if draw is None else draw(logits, None)
    return token, float(scores[token]), ids.tolist(), values.tolist()


def in_turn(works: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least microseconds of a call of each, with each in its turn."""
    best = dict.fromkeys(works, float("inf"))
    for work in works.values():
        work()
    rounds = 0
    end = time.perf_counter() + seconds * len(works)
    while time.perf_counter() < end or rounds < 5:
        rounds += 1
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            best[name] = min(best[name], 1e6 * (time.perf_counter() - begin))
    return best


def other_chains(logits: list[Logits], seconds: float) -> list[dict[str, Any]]:
    """What else is sampled, of all tokens: no cut, typical, rows of 32, log-probabilities."""
    turn = iter(range(10**9))
    rows = np.stack([logits[i % len(logits)] for i in range(32)])
    whole, typical = Sampler(TEMPERATURE, 0, 1.0, seed=0), Sampler(TEMPERATURE, 0, 1.0, seed=0, typical=TOP_P)
    cut, greedy = Sampler(TEMPERATURE, TOP_K, TOP_P, seed=0), Sampler(0.0)
    chain = torch_chain(TOP_K, TOP_P, False)

    def row() -> Logits:
        return logits[next(turn) % len(logits)]

    works: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "no cut": (lambda: whole.sample(row()), lambda: torch_all(row())),
        "typical": (lambda: typical.sample(row()), lambda: torch_typical(row())),
        "32 rows, top-k, top-p": (lambda: cut.sample_batch(rows), lambda: torch_rows(rows)),
        "log-probabilities, best": (
            lambda: greedy.sample_with_log_probabilities(row(), top=1),
            lambda: torch_log_probabilities(row(), 1, None),
        ),
        "log-probabilities, drawn, top 5": (
            lambda: cut.sample_with_log_probabilities(row(), top=5),
            lambda: torch_log_probabilities(row(), 5, chain),
        ),
    }
    figures = []
    for name, (ours, theirs) in works.items():
        best = in_turn({"constrain_us": ours, "torch_us": theirs}, seconds)
        figures.append({"chain": name, **best})
    return figures


def microseconds(draw: Callable[[], Any], seconds: float) -> float:
    """The median time of a call, measured for so long."""
    draw()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        draw()
        times.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(times))


@click.command()
@click.option("--seconds", default=0.5, show_default=True, help="For each figure.")
@click.option("--json", "as_json", is_flag=True, help="Figures for programs.")
def main(seconds: float, as_json: bool) -> None:
    """Sampling one token from 128,256 logits: this library and PyTorch on the CPU."""
    import torch

    torch.set_num_threads(1)
    generator = np.random.default_rng(0)
    logits = [generator.normal(0, 3, VOCABULARY).astype(np.float32) for _ in range(8)]
    figures: list[dict[str, Any]] = []
    for name, top_k, top_p in (("temperature, top-k, top-p", TOP_K, TOP_P), ("temperature, top-p", 0, TOP_P)):
        sampler = Sampler(TEMPERATURE, top_k, top_p, seed=0)
        short, long = torch_chain(top_k, top_p, False), torch_chain(top_k, top_p, True)
        for share in ALLOWED:
            mask = bitmask(share, generator)
            turn = iter(range(10**9))

            def run(draw: Callable[[Logits, Mask | None], int], mask: Mask | None = mask, turn: Any = turn) -> float:
                return microseconds(lambda: draw(logits[next(turn) % len(logits)], mask), seconds)

            figures.append(
                {
                    "chain": name,
                    "allowed": share,
                    "constrain_us": run(sampler.sample),
                    "torch_us": run(short),
                    "torch_full_rows_us": run(long),
                }
            )
    others = other_chains(logits, seconds)
    if as_json:
        click.echo(json.dumps([*figures, *others], indent=2))
        return
    click.echo("chain                       allowed   constrain    PyTorch            PyTorch, full rows")
    for figure in figures:
        ours = figure["constrain_us"]
        times = "".join(
            f"{figure[key]:9.0f} us ({figure[key] / ours:5.1f}x)" for key in ("torch_us", "torch_full_rows_us")
        )
        click.echo(f"{figure['chain']:27} {figure['allowed']:7.1%} {ours:8.1f} us {times}")
    click.echo("\nall tokens allowed, the least of many in turn   constrain    PyTorch")
    for figure in others:
        ours, theirs = figure["constrain_us"], figure["torch_us"]
        click.echo(f"{figure['chain']:42} {ours:12.1f} us {theirs:9.0f} us ({theirs / ours:5.1f}x)")


if __name__ == "__main__":
    main()
