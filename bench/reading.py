"""How long Lark grammars take to be read, and hard ones to follow a text: ``python -m bench.reading``.

Processor time, which is not much longer on a busy machine than on a quiet one.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

import constrain

ROOT = Path(__file__).resolve().parents[1]

# The engine is there; Lark and all of the front-end are not.
_FIRST = """
import sys, time
import constrain
constrain.Grammar, constrain.GrammarCompiler, constrain.Vocabulary
with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
began = time.process_time()
constrain.Grammar.from_lark(text)
print(time.process_time() - began)
"""

_SIZE = 4096
HARD = {
    's: s s s | s s | "a"': ('start: start start start | start start | "a"', "a" * _SIZE),
    's: s "+" s | "1"': ('start: start "+" start | "1"', "1+" * (_SIZE // 2 - 1) + "1"),
    "palindromes": ('start: "a" start "a" | "b" start "b" | "a" | "b" |', "ab" * (_SIZE // 4) + "ba" * (_SIZE // 4)),
    "%ignore /.*/s": ('start: ("a" | "b")+\n%ignore /.*/s', "ab" * (_SIZE // 2)),
    "x~0..200 of y~0..200": ('start: x~0..200\nx: y~0..200\ny: "a" x?', "a" * 400),
    "a constant": (f'start: "{"ab" * 50_000}"', "ab" * 50_000),
}
"""By name: a grammar, and a text of it."""


def processor_ms(work: Callable[[], object], runs: int) -> list[float]:
    """Milliseconds of some runs."""
    times = []
    for _ in range(runs):
        began = time.process_time()
        work()
        times.append(1e3 * (time.process_time() - began))
    return times


def first_ms(file: Path, processes: int) -> list[float]:
    """Milliseconds of the first grammar that a process reads, by process.

    The package is compiled to byte code before, as an installed one is, whatever this process does about it.
    """
    times = []
    command = [sys.executable, "-c", _FIRST, str(file)]
    with tempfile.TemporaryDirectory() as folder:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        for _ in range(1 + processes):
            run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
            times.append(1e3 * float(run.stdout))
    return times[1:]


def following_ms(grammar: str, text: str) -> float:
    """Milliseconds in which a new compiled grammar follows a text byte by byte."""
    vocabulary = constrain.Vocabulary([*(bytes((byte,)) for byte in range(256)), b"</s>"], eos_ids=[256])
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_lark(grammar))

    def follow() -> None:
        recognizer = compiled.recognizer()
        for byte in text.encode():
            if not recognizer.try_push_byte(byte):
                raise click.ClickException(f"{grammar!r} refuses its own text")
        if not recognizer.is_accepting():
            raise click.ClickException(f"{grammar!r} does not accept its own text")

    return processor_ms(follow, 1)[0]


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--runs", default=20, show_default=True, help="Of each file in one process, after the first.")
@click.option("--processes", default=3, show_default=True, help="In which it is read first; 0 for none.")
@click.option("--hard/--no-hard", default=True, show_default=True, help="Texts that are hard to follow.")
def reading(files: tuple[Path, ...], runs: int, processes: int, hard: bool) -> None:
    """Measure how long FILES, those in grammars/ by default, take to be read: least and median, in milliseconds."""
    click.echo("| grammar | lines | least | median | first of a process |\n|---|---:|---:|---:|---:|")
    for file in files or sorted((ROOT / "grammars").glob("*.lark")):
        text = file.read_text(encoding="utf-8")
        constrain.Grammar.from_lark(text)
        times = processor_ms(lambda text=text: constrain.Grammar.from_lark(text), runs)  # type: ignore[misc]
        first = f"{min(first_ms(file.resolve(), processes)):.0f}" if processes else ""
        lines = text.count("\n")
        click.echo(f"| {file.name} | {lines} | {min(times):.1f} | {statistics.median(times):.1f} | {first} |")
    if hard:
        click.echo("\n| hard to follow | bytes | ms |\n|---|---:|---:|")
        for name, (grammar, text) in HARD.items():
            click.echo(f"| `{name}` | {len(text)} | {following_ms(grammar, text):.0f} |")


if __name__ == "__main__":
    reading(prog_name="python -m bench.reading")
