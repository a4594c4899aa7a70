"""The command: options, the run from beginning to end, and what is written."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from bench.code.engines import CANDIDATES, LLGUIDANCE, OURS, OURS_GBNF, XGRAMMAR, installed
from bench.code.languages import LANGUAGES, Language
from bench.code.measuring import EngineRun, Program, measure
from bench.code.result import LanguageResult, Ratio, engine_figures, ratio
from bench.code.tables import report, section
from bench.maskbench.machine import cpu, load_average
from bench.maskbench.runner import WorkerFailed
from bench.maskbench.schemas import NoData, vocabulary_file
from bench.maskbench.vocabulary import TokenTable

_PAIRS = ((OURS, LLGUIDANCE), (OURS_GBNF, LLGUIDANCE), (OURS, XGRAMMAR), (OURS_GBNF, XGRAMMAR))


class _Names(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Names out of some, with commas between them."""

    name = "names"

    def __init__(self, known: Sequence[str]) -> None:
        self._known = tuple(known)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        names = tuple(str(value).split(",")) if not isinstance(value, tuple) else value
        for name in names:
            if name not in self._known:
                self.fail(f"{name!r} is none of {', '.join(self._known)}", param, ctx)
        return tuple(name for name in self._known if name in names)


@click.command()
@click.option(
    "--languages", type=_Names(list(LANGUAGES)), metavar="A,B", help=f"Of {', '.join(LANGUAGES)}; all by default."
)
@click.option("--engines", type=_Names(list(CANDIDATES)), metavar="A,B", help=f"Of {', '.join(CANDIDATES)}.")
@click.option(
    "--tokens", type=click.IntRange(min=1), default=6000, show_default=True, help="At least; the length of a program."
)
@click.option(
    "--xgrammar-tokens", type=click.IntRange(min=0), default=300, show_default=True, help="For XGrammar; 0 for all."
)
@click.option("--seed", default=1, show_default=True, help="Of the programs.")
@click.option(
    "--clock",
    type=click.Choice(["wall", "processor"]),
    default="wall",
    show_default=True,
    help="On a busy machine the processor's clock leaves out what other processes take; reading it takes longer.",
)
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures there.")
@click.option(
    "--write",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write programs and grammars there, and measure nothing.",
)
def code(
    languages: tuple[str, ...] | None,
    engines: tuple[str, ...] | None,
    tokens: int,
    xgrammar_tokens: int,
    seed: int,
    clock: str,
    output: Path | None,
    folder: Path | None,
) -> None:
    """Measure masks in grammars of programming languages, side by side with other engines.

    Two programs are generated in each language; each engine compiles the grammar and takes both, token by token.  Needs
    Llama-3's vocabulary: see docs/benchmarks.md.
    """
    chosen = [LANGUAGES[name] for name in languages or LANGUAGES]
    try:
        vocabulary = vocabulary_file()
    except NoData as error:
        raise click.ClickException(str(error)) from error
    if find_spec("tiktoken") is None:
        raise click.ClickException("tiktoken is not installed: pip install -e '.[bench]'")
    absent = [name for name in engines or CANDIDATES if not installed(name)]
    if engines and absent:
        raise click.ClickException(f"{', '.join(absent)}: not installed: pip install -e '.[bench]'")
    table = TokenTable.read(vocabulary)
    if folder is not None:
        for language in chosen:
            write(folder, language, Program.make(language, seed, tokens, table).text)
        return
    names = [name for name in engines or CANDIDATES if name not in absent]
    limits = {XGRAMMAR: xgrammar_tokens} if xgrammar_tokens else {}
    load = load_average()
    click.echo(f"{cpu()}, {os.cpu_count()} processors, load average {load} before; seed {seed}; {clock} clock.")
    if absent:
        click.echo(f"Not installed, so not measured: {', '.join(absent)} (pip install -e '.[bench]').")
    results: list[LanguageResult] = []
    for language in chosen:
        programs = [Program.make(language, each, tokens, table) for each in (seed, seed + 1)]
        probes = [Program.of(text, table) for text in language.probes]
        try:
            runs = measure(
                language,
                names,
                programs,
                probes,
                vocabulary,
                limits=limits,
                of_processor=clock == "processor",
                progress=_show,
            )
        except WorkerFailed as error:
            raise click.ClickException(str(error)) from error
        finally:
            _show("")
        results.append(_result(language, programs, runs))
        click.echo("\n" + "\n\n".join(section(results[-1])))
    click.echo(f"\nLoad average {load_average()} after.")
    if output is not None:
        settings = {"tokens": tokens, "seed": seed, "xgrammar_tokens": xgrammar_tokens, "clock": clock}
        found = {
            "machine": {"cpu": cpu(), "processors": os.cpu_count(), "load_before": load, "load_after": load_average()},
            "settings": settings,
            "languages": [each.to_json() for each in results],
            "report": report(results),
        }
        output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def write(folder: Path, language: Language, program: str) -> None:
    """Write a program and the language's grammars for a look."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"program{language.suffix}").write_text(program, encoding="utf-8")
    texts = {".lark": language.lark(), ".llguidance.lark": language.llguidance(), ".gbnf": language.gbnf()}
    for suffix, text in texts.items():
        (folder / f"{language.name}{suffix}").write_text(text, encoding="utf-8")


def _result(language: Language, programs: Sequence[Program], runs: Sequence[EngineRun]) -> LanguageResult:
    of_name = {run.name: run for run in runs}
    ratios: list[Ratio | None] = [
        ratio(of_name[mine], of_name[other]) for mine, other in _PAIRS if mine in of_name and other in of_name
    ]
    return LanguageResult(
        language.name,
        [len(program.tokens) for program in programs],
        [program.text.count("\n") for program in programs],
        [engine_figures(run, CANDIDATES[run.name].grammar(language)) for run in runs],
        [each for each in ratios if each is not None],
    )


def _show(text: str) -> None:
    """One line on a terminal that is written over."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{text}", nl=False, err=True)
