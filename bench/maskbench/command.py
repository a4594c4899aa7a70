"""The command: options, the run from beginning to end, and what is written."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import click

from bench.maskbench.engines import NAMES, OURS, SCHEMAS_ONLY, installed
from bench.maskbench.jobs import Job, Outcome
from bench.maskbench.machine import cpu, load_average
from bench.maskbench.schemas import SCHEMAS, VOCABULARY, NoData, data_folder
from bench.maskbench.token_list import SUFFIX, NoEnd, TokenList
from bench.maskbench.vocabulary import TokenTable


@dataclass(frozen=True)
class _Pace:
    """How much time there is, in seconds; see the options for ``limit`` and ``budget``."""

    limit: float
    grammar_limit: float
    budget: float
    # When to stop, counted from the start of the command.  What comes after the schemas takes a few
    # seconds more.
    end: float = float("inf")
    schemas: int | None = None


_FULL = _Pace(limit=10, grammar_limit=60, budget=1200)
_QUICK = _Pace(limit=2, grammar_limit=2, budget=12, end=95, schemas=200)


@click.command()
@click.option("--quick", is_flag=True, help="Within 2 minutes: as many schemas as there is time for.")
@click.option("--cold", is_flag=True, help="Compile + first mask only, with nothing of the engine in the caches.")
@click.option("--schemas", metavar="N", type=click.IntRange(min=0), help="How many schemas; all by default.")
@click.option("--engine", "names", multiple=True, type=click.Choice(NAMES), help="May be given several times.")
@click.option("--limit", metavar="SECONDS", type=click.FloatRange(min=0.01), help="For one schema; 10 by default.")
@click.option(
    "--budget", metavar="SECONDS", type=click.FloatRange(min=0.01), help="For one engine, schemas; 1200 by default."
)
@click.option("--seed", default=1, show_default=True, help="Of the sample and its order.")
@click.option(
    "--vocabulary",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="A tokenizer.json, GGUF, .model or .tiktoken file, or a model folder; Llama-3's rank file by default.",
)
@click.option("--grammars/--no-grammars", default=True, help="The other grammars, and the walk by itself.")
@click.option(
    "--output",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build", "maskbench"),
    show_default=True,
    help="For maskbench.json, maskbench.md, maskbench.svg, and masks-light.svg and masks-dark.svg.",
)
def mask(
    quick: bool,
    cold: bool,
    schemas: int | None,
    names: tuple[str, ...],
    limit: float | None,
    budget: float | None,
    seed: int,
    vocabulary: Path | None,
    grammars: bool,
    output: Path,
) -> None:
    """Measure masks side by side with other engines, on JSON Schemas and other grammars.

    With --cold, 64 MB of other memory are written to before each schema, and there are no other grammars.  Needs the
    data that is not in the repository: see docs/benchmarks.md.
    """
    began = perf_counter()
    chosen, absent = _choose(names)
    for package in ("tiktoken", "matplotlib"):
        if find_spec(package) is None:
            raise click.ClickException(f"{package} is not installed: pip install -e '.[bench]'")
    try:
        folder = data_folder(vocabulary is None)
    except NoData as error:
        raise click.ClickException(str(error)) from error
    own = None if vocabulary is None else _own_tokens(vocabulary)
    output.mkdir(parents=True, exist_ok=True)
    pace = _QUICK if quick else _FULL
    pace = replace(
        pace,
        limit=pace.limit if limit is None else limit,
        budget=pace.budget if budget is None else budget,
        schemas=pace.schemas if schemas is None else schemas,
        end=began + pace.end,
    )
    with TemporaryDirectory() as scratch:
        if own is None:
            place, name = folder / VOCABULARY, VOCABULARY.name
        else:
            place, name = Path(scratch, "vocabulary" + SUFFIX), str(vocabulary)
            own.save(place)
        table = own or TokenTable.read(place)
        _run(folder, place, table, name, chosen, absent, pace, seed, grammars and not cold, cold, output)
    written = "maskbench.json, maskbench.md, maskbench.svg, masks-light.svg, masks-dark.svg"
    click.echo(f"{output}/: {written} ({perf_counter() - began:.0f} s)", err=True)


def _choose(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The engines to run, and those that are not installed."""
    wanted = [name for name in NAMES if name in names] if names else list(NAMES)
    absent = [name for name in wanted if not installed(name)]
    if names and absent:
        raise click.ClickException(f"{', '.join(absent)}: not installed: pip install -e '.[bench]'")
    return [name for name in wanted if name not in absent], absent


def _own_tokens(path: Path) -> TokenList:
    from constrain.errors import ConstrainError

    try:
        return TokenList.of_tokenizer(path)
    except (ConstrainError, NoEnd) as error:
        raise click.ClickException(str(error)) from error


def _run(
    folder: Path,
    vocabulary: Path,
    table: TokenTable | TokenList,
    vocabulary_name: str,
    names: list[str],
    absent: list[str],
    pace: _Pace,
    seed: int,
    grammars: bool,
    cold: bool,
    output: Path,
) -> None:
    from bench.maskbench import bars, figures, picture, result, runner, tables, walk, worker
    from bench.maskbench.schemas import SchemaJobs
    from bench.maskbench.subjects import subject_jobs

    load_before = load_average()
    click.echo(f"starting {len(names)} engines ...", err=True)
    workers: list[runner.Worker] = []
    try:
        workers += (runner.Worker(name, vocabulary, worker.serve_cold if cold else worker.serve) for name in names)
        everything = SchemaJobs(folder / SCHEMAS, table, seed, has_instances=not cold)
        jobs = everything
        if pace.schemas is not None:
            jobs = SchemaJobs(folder / SCHEMAS, table, seed, pace.schemas, has_instances=not cold)
        available = len(everything)
        del everything
        for each in workers:
            each.wait()

        try:
            subjects = subject_jobs(table) if grammars else []
        except ValueError as error:  # the tokenizer changes texts
            raise click.ClickException(f"{error}; --no-grammars leaves the texts out that are not JSON") from error
        general = [each for each in workers if each.name not in SCHEMAS_ONLY]
        with _progress("grammars", len(subjects) * len(general)) as step:
            of_subjects = runner.alternate(general, subjects, pace.grammar_limit, progress=step) if general else {}
        # In a process of its own: this one stays free of the engine and its tables.
        walks: list[walk.Walk] = []
        clock = None
        if grammars and OURS in names:
            click.echo("the walk by itself ...", err=True)
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                walks, clock = pool.submit(walk.measure, vocabulary).result()

        kept: dict[str, Job] = {}

        def keep() -> Iterator[Job]:
            for job in jobs:
                kept[job.id] = job
                yield job

        with _progress("schemas", len(jobs) * len(names)) as step:
            outcomes = runner.alternate(
                workers, keep(), pace.limit, deadline=pace.end, budget=pace.budget, progress=step
            )
        pairs: dict[str, list[tuple[Job, Outcome]]] = {
            name: [(kept[id], of_job[name]) for id, of_job in outcomes.items() if name in of_job] for name in names
        }
        found = result.Result(
            machine={
                "cpu": cpu(),
                "cores": os.cpu_count(),
                "platform": platform.platform(),
                "python": platform.python_version(),
                "load_before": load_before,
                "load_after": load_average(),
            },
            settings={
                "limit_seconds": pace.limit,
                "grammar_limit_seconds": pace.grammar_limit,
                "budget_seconds": pace.budget,
                "seed": seed,
                "vocabulary": vocabulary_name,
                "vocabulary_size": table.size,
                "cold": cold,
            },
            absent=absent,
            available=available,
            selected=len(jobs),
            skipped_instances=jobs.skipped,
            engines={
                each.name: result.engine_result(pairs[each.name], each.ready, each.starts)
                for each in workers
                if outcomes
            },
            comparisons=result.comparisons(pairs) if outcomes else {},
            subjects=result.subject_results(subjects, of_subjects),
            walks=walks,
            clock_ghz=clock,
            records=result.records(pairs),
        )
    except runner.WorkerFailed as error:
        raise click.ClickException(str(error)) from error
    finally:
        for each in workers:
            each.kill()
    text = tables.report(found)
    (output / "maskbench.json").write_text(json.dumps(found.to_json(), indent=1) + "\n", encoding="utf-8")
    (output / "maskbench.md").write_text(text, encoding="utf-8")
    picture.draw(
        output / "maskbench.svg",
        {name: figures.step_times(pairs[name]) for name in names},
        {name: figures.compile_times(pairs[name]) for name in names},
        f"MaskBench, {len(outcomes):,} schemas, {table.size:,} tokens; each engine on what it compiles",
    )
    bars.write(output, found.to_json())
    click.echo(text, nl=False)


@contextmanager
def _progress(label: str, length: int) -> Iterator[Any]:
    """A bar on stderr; what it gives is called before each job of each engine."""
    with click.progressbar(length=length, label=label, file=sys.stderr, show_pos=True, item_show_func=str) as bar:
        begun = False

        def step(job: Job, name: str) -> None:
            nonlocal begun
            bar.update(int(begun), f"{name}: {job.id}"[:40])
            begun = True

        yield step
        bar.update(int(begun), "")
