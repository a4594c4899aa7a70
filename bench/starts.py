"""How soon a process is ready: ``python -m bench.starts``.

A wheel is built (or given with ``--wheel``) and installed into a virtual environment of its own, beside llguidance.
Then processes start in turn, each measured from outside: wall and processor seconds, and most memory.

``--checkout`` measures the first mask alone, with this Python and the checkout, and needs no wheel: ten seconds.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import click

from bench.figures import ROOT, data_folder

_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
_FIRST_MASK = """
import sys
import constrain
tokenizer = constrain.load_tokenizer(sys.argv[1])
vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer)
compiler = constrain.GrammarCompiler(vocabulary)
matcher = constrain.Matcher(compiler.compile(constrain.Grammar.from_json_schema(sys.argv[2])))
mask = constrain.allocate_token_bitmask(1, vocabulary.size)
matcher.fill_next_token_bitmask(mask)
assert mask.any() and "numba" not in sys.modules, "kernels were compiled"
"""
_FIRST_MASK_OF_LLGUIDANCE = """
import sys
import llguidance.numpy
from llguidance import LLMatcher, LLTokenizer
tokenizer = LLTokenizer(sys.argv[1])
matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(sys.argv[2]))
mask = llguidance.numpy.allocate_token_bitmask(1, tokenizer.vocab_size)
llguidance.numpy.fill_next_token_bitmask(matcher, mask, 0)
assert mask.any() and not matcher.get_error(), matcher.get_error()
"""
# Python's own start and that of numpy are in all figures of both.
_NUMPY = "import numpy"


class Start:
    """What one process took."""

    def __init__(self, wall: float, processor: float, megabytes: float) -> None:
        self.wall, self.processor, self.megabytes = wall, processor, megabytes


def start(command: list[str], environment: dict[str, str], user: int | None = None) -> Start:
    """Run a command to its end, which has to be a good one."""
    # The most memory of a process counts what it was forked from, so that is made small.
    command = ["/bin/sh", "-c", '"$0" "$@"; exit $?', *command]
    began = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=errors, cwd="/", user=user
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise click.ClickException(
                f"{command[0]} ended with {process.returncode}: {errors.read().decode()[-2000:]}"
            )
    return Start(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def report(name: str, starts: list[Start]) -> None:
    """One line of medians."""
    wall = statistics.median(each.wall for each in starts)
    processor = statistics.median(each.processor for each in starts)
    megabytes = statistics.median(each.megabytes for each in starts)
    click.echo(f"{name:62s} {wall:8.2f} s {processor:8.2f} s {megabytes:8.0f} MB")


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)],
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def make_environment(folder: Path, wheel: Path) -> Path:
    """The Python of a new virtual environment with the wheel, and llguidance."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    # A checkout on Python's path would count as installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python), "-m", "pip", "install", "--quiet", str(wheel), "llguidance"]
    subprocess.run(command, check=True, env=environment)
    return python


def can_be_read_by_others(path: Path) -> bool:
    """Whether another user can reach a file."""
    return all(parent.stat().st_mode & 0o005 == 0o005 for parent in path.resolve().parents)


@click.command()
@click.option("--wheel", type=click.Path(path_type=Path, exists=True), help="Instead of building one.")
@click.option("--checkout", is_flag=True, help="Only the first mask, with this Python and the checkout.")
@click.option("--runs", default=7, show_default=True, help="How many processes for each figure.")
def main(wheel: Path | None, checkout: bool, runs: int) -> None:
    """Measure starts: wall seconds, processor seconds, memory; medians, the engines in turn."""
    if checkout and wheel is not None:
        raise click.UsageError("--checkout needs no wheel")
    with tempfile.TemporaryDirectory(prefix="constrain-starts-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if wheel is None and not checkout:
            began = time.perf_counter()
            wheel = build_wheel(folder / "wheels")
            click.echo(
                f"built in {time.perf_counter() - began:.0f} s: {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB"
            )
        python = Path(sys.executable) if wheel is None else make_environment(folder / "venv", wheel)
        tokenizer = folder / "tokenizer.json"
        try:
            with gzip.open(data_folder() / "vocab" / "llama3-tokenizer.json.gz") as packed:
                tokenizer.write_bytes(packed.read())
        except (OSError, click.ClickException) as error:
            click.echo(f"without Llama-3's tokenizer: {error}")
        schema = folder / "schema.json"
        shutil.copy(ROOT / "grammars" / "person.schema.json", schema)
        plans = [_first_masks(folder, python, tokenizer, runs)] if tokenizer.exists() else []
        if not checkout:
            plans.insert(0, _starts_of_wheel(folder, python, schema, runs))
        click.echo(f"{'':62s} {'wall':>10s} {'processor':>10s} {'memory':>11s}")
        for plan in plans:
            for title, starts in plan:
                report(title, starts)


def _environment(folder: Path, python: Path, caches: str = "caches") -> dict[str, str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    found = {"PATH": os.environ["PATH"], "CONSTRAIN_CACHE_DIR": str(folder / caches), "HOME": str(home)}
    if python == Path(sys.executable):
        found |= {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    return found


def _starts_of_wheel(folder: Path, python: Path, schema: Path, runs: int) -> Iterator[tuple[str, list[Start]]]:
    def run(*arguments: str) -> list[Start]:
        return [start([str(python), *arguments], _environment(folder, python)) for _ in range(runs)]

    generate = ["-m", "constrain", "generate", "--schema", str(schema), "--seed", "1"]
    yield "python, without anything", run("-c", "")
    yield "import numpy", run("-c", _NUMPY)
    yield "import constrain", run("-c", "import constrain")
    yield "constrain generate, to its end", run(*generate)
    for path in (folder / "venv").rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o555)
    nobody = 65534 if os.getuid() == 0 and can_be_read_by_others(python.resolve()) else None
    who = "as nobody" if nobody else "as the same user (nobody cannot read Python here)"
    bare = {"PATH": os.environ["PATH"], "CONSTRAIN_CACHE_DIR": "/proc/none"}
    yield (
        f"the same, nothing to be written, no HOME, {who}",
        [start([str(python), *generate], bare, user=nobody) for _ in range(runs)],
    )


def _first_masks(folder: Path, python: Path, tokenizer: Path, runs: int) -> Iterator[tuple[str, list[Start]]]:
    """One run of each in turn, since what else a machine does changes from minute to minute."""
    ours = [str(python), "-c", _FIRST_MASK, str(tokenizer), json.dumps(_SCHEMA)]
    theirs = [str(python), "-c", _FIRST_MASK_OF_LLGUIDANCE, str(tokenizer), json.dumps(_SCHEMA)]
    titles = ("without tables on disk", "with tables on disk", "llguidance", "of which python and numpy")
    found: dict[str, list[Start]] = {title: [] for title in titles}
    for command in (ours, theirs):  # bytecode, and the tables
        start(command, _environment(folder, python))
    for _ in range(runs):
        shutil.rmtree(folder / "none", ignore_errors=True)
        found[titles[0]].append(start(ours, _environment(folder, python, "none")))
        found[titles[1]].append(start(ours, _environment(folder, python)))
        found[titles[2]].append(start(theirs, _environment(folder, python)))
        found[titles[3]].append(start([str(python), "-c", _NUMPY], _environment(folder, python)))
    for title in titles:
        yield f"first mask, Llama-3, {title}", found[title]


if __name__ == "__main__":
    main()
