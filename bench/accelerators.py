"""What each accelerator is worth: the times of masks with it switched off, by those with all of them.

    python -m bench.accelerators [--schemas N] [--languages A,B] [--tokens N] [--rounds N]

Compiles schemas of MaskBench and goes through their instances, token by token, with Llama-3's vocabulary; then does so
with grammars of programming languages and a program in each (bench.code).  In each round every accelerator is off in a
process of its own, and all are on in one; each goes through all of it three times, and begins without any mask that
others have left on disk.  Times are processor time of the thread, and of each mask the least of all passes counts.  How
much other work on the machine disturbs even so, a second run with all of them shows.
"""

from __future__ import annotations

import argparse
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import thread_time_ns
from typing import Any, NamedTuple

import numpy as np

from bench.code.languages import LANGUAGES
from bench.code.measuring import Program
from bench.maskbench.schemas import SCHEMAS, NoData, SchemaJobs, data_folder, vocabulary_file
from bench.maskbench.vocabulary import TokenTable

Job = tuple[str, str, list[list[int]]]
"""The notation of a grammar, the grammar, and tokens of texts."""

Times = np.ndarray[Any, np.dtype[np.int64]]
"""int64[n, 2]: of each mask, and of the step behind it, in nanoseconds."""

FIGURES = ("mean", "p90", "p99", "p99.9", "mean with step", "tables")
ALL, AGAIN, PLAIN = "nothing", "nothing, once more", "all (the plain engine)"
_PASSES = 3


class Run(NamedTuple):
    """What was measured with some accelerators."""

    times: Times
    table_bytes: int
    """Memory of the tables of all grammars, each after its texts."""


def figures_of(run: Run) -> list[float]:
    """The figures of a run: those of its masks in microseconds, and megabytes."""
    masks = run.times[:, 0]
    figures = [masks.mean(), *np.percentile(masks, (90, 99, 99.9)), run.times.sum(axis=1).mean()]
    return [*(float(figure) / 1e3 for figure in figures), run.table_bytes / 1e6]


def table_of(runs: dict[str, Run]) -> list[str]:
    """The lines of a table in Markdown: microseconds and megabytes with all accelerators, and ratios for the others.

    Parameters
    ----------
    runs : dict
        By what is switched off; :data:`ALL` for nothing.
    """
    lines = ["| switched off | " + " | ".join(FIGURES) + " |", "|---" * (len(FIGURES) + 1) + "|"]
    usual = figures_of(runs[ALL])
    lines.append(f"| {ALL} | " + " | ".join(f"{figure:.1f} us" for figure in usual[:-1]) + f" | {usual[-1]:.1f} MB |")
    for name in runs:
        if name != ALL:
            ratios = [figure / of for figure, of in zip(figures_of(runs[name]), usual, strict=True)]
            lines.append(f"| {name} | " + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |")
    return lines


def _schemas(table: TokenTable, count: int) -> list[Job]:
    return [
        ("json_schema", job.grammar, [list(instance.tokens) for instance in job.instances])
        for job in SchemaJobs(data_folder() / SCHEMAS, table, seed=0, count=count)
    ]


def _programs(table: TokenTable, languages: Sequence[str], tokens: int) -> list[Job]:
    return [
        ("lark", LANGUAGES[name].lark(), [Program.make(LANGUAGES[name], 1, tokens, table).tokens]) for name in languages
    ]


def _measure(path: Path, names: list[str]) -> Run:
    """What some accelerators come to."""
    import constrain

    tokens, end_ids, special_ids, jobs = pickle.loads(path.read_bytes())
    vocabulary = constrain.Vocabulary(tokens, eos_ids=end_ids, special_ids=special_ids)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    passes = []
    for _ in range(_PASSES):
        vocabulary.shared.clear()
        compiler = constrain.GrammarCompiler(vocabulary, cache_limit_bytes=0, accelerators=names)
        times: list[tuple[int, int]] = []
        table_bytes = 0
        for kind, source, instances in jobs:
            try:
                compiled = compiler.compile(getattr(constrain.Grammar, f"from_{kind}")(source))
            except constrain.ConstrainError:
                continue
            for instance in instances:
                matcher = constrain.Matcher(compiled)
                for token in instance:
                    begin = thread_time_ns()
                    matcher.fill_next_token_bitmask(mask)
                    middle = thread_time_ns()
                    is_accepted = matcher.accept_token(token)
                    times.append((middle - begin, thread_time_ns() - middle))
                    if not is_accepted:
                        break
            table_bytes += compiled.nbytes
        passes.append(times)
    return Run(np.array(passes, np.int64).min(axis=0), table_bytes)


def _run(path: Path, names: Sequence[str]) -> Run:
    command = [sys.executable, "-m", "bench.accelerators", "--worker", str(path), "--names", ",".join(names)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return Run(*pickle.loads(output))


def _compare(path: Path, rounds: int) -> dict[str, Run]:
    """What was measured, by what is switched off."""
    from constrain.engine.masks.accelerators import NAMES

    variants: dict[str, Sequence[str]] = {ALL: NAMES, PLAIN: ()}
    variants |= {name: tuple(each for each in NAMES if each != name) for name in NAMES}
    variants[AGAIN] = NAMES
    least: dict[str, Run] = {}
    for _ in range(rounds):
        for name, names in variants.items():
            run = _run(path, names)
            # They are the same masks in every run, or this is an error.
            least[name] = run._replace(times=np.minimum(least.get(name, run).times, run.times))
    return least


def main() -> int:
    """Measure, or be a worker."""
    parser = argparse.ArgumentParser(description="What each accelerator of masks is worth.")
    parser.add_argument("--schemas", type=int, default=100, help="so many schemas; 0 for none")
    parser.add_argument("--languages", default="c,sql,javascript", help="programming languages, with commas between")
    parser.add_argument("--tokens", type=int, default=1500, help="the length of a program, at least")
    parser.add_argument("--rounds", type=int, default=2, help="how often all is measured")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--names", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        run = _measure(options.worker, [name for name in options.names.split(",") if name])
        # As a plain tuple: the classes of a module that is run as a program are others to those who import it.
        sys.stdout.buffer.write(pickle.dumps(tuple(run)))
        return 0
    languages = [name for name in options.languages.split(",") if name]
    unknown = [name for name in languages if name not in LANGUAGES]
    if unknown:
        parser.error(f"unknown languages: {', '.join(unknown)}; there are {', '.join(LANGUAGES)}")
    try:
        table = TokenTable.read(vocabulary_file())
    except NoData as error:
        parser.error(str(error))
    tasks = (
        (f"{options.schemas:,} schemas", _schemas(table, options.schemas) if options.schemas else []),
        (f"programs in {', '.join(languages)}", _programs(table, languages, options.tokens)),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs"
        for what, jobs in tasks:
            if jobs:
                path.write_bytes(pickle.dumps((table.tokens, table.end_ids, table.special_ids, jobs)))
                runs = _compare(path, options.rounds)
                print(f"{len(runs[ALL].times):,} masks of {what}, {options.rounds} rounds", *table_of(runs), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
