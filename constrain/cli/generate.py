"""``constrain generate``: text for a grammar, to stdout as it is made."""

from __future__ import annotations

import contextlib
import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from constrain.cli.first_run import announce_compilation
from constrain.cli.status import Exit, Stop
from constrain.errors import ConstrainError
from constrain.sampling.options import check_options

if TYPE_CHECKING:
    from constrain import Grammar
    from constrain.generation import Statistics

_GRAMMAR_OPTIONS = ("schema", "regex", "lark", "gbnf", "choices")
_WARNINGS_SHOWN = 5


@click.command(short_help="Generate text that fits a grammar.")
@click.option("--schema", metavar="FILE", help="A JSON Schema ('-': from stdin).")
@click.option("--regex", metavar="PATTERN", help="A regular expression for the whole output.")
@click.option("--lark", metavar="FILE", help="A Lark grammar; it begins with the rule 'start'.")
@click.option("--gbnf", metavar="FILE", help="A GBNF grammar; it begins with the rule 'root'.")
@click.option("--choices", metavar="A,B,..", help="One of these; written as a line of CSV.")
@click.option("--prompt", metavar="TEXT", default="", help="Text to go on from; it is not printed.")
@click.option("--max-tokens", metavar="N", type=click.IntRange(min=1), default=256, show_default=True)
@click.option(
    "--temperature", metavar="T", type=float, default=0.8, show_default=True, help="0: always the most likely token."
)
@click.option("--top-p", metavar="P", type=float, default=0.9, show_default=True, help="1: off.")
@click.option("--top-k", metavar="K", type=int, default=40, show_default=True, help="0: off.")
@click.option("--seed", metavar="N", type=click.IntRange(min=0, max=2**64 - 1), help="Random by default.")
def generate(
    schema: str | None,
    regex: str | None,
    lark: str | None,
    gbnf: str | None,
    choices: str | None,
    prompt: str,
    max_tokens: int,
    temperature: float,
    top_p: float,
    top_k: int,
    seed: int | None,
) -> None:
    """Generate text that fits a grammar, with the built-in demonstration model.

    Give exactly one of --schema, --regex, --lark, --gbnf and --choices. The text goes to stdout as it is made, and a
    newline after it; a summary goes to stderr.
    """
    given: dict[str, str | None] = dict(zip(_GRAMMAR_OPTIONS, (schema, regex, lark, gbnf, choices), strict=True))
    chosen = [name for name in _GRAMMAR_OPTIONS if given[name] is not None]
    if len(chosen) != 1:
        wanted = ", ".join(f"--{name}" for name in _GRAMMAR_OPTIONS)
        got = " and ".join(f"--{name}" for name in chosen) or "none"
        raise click.UsageError(f"exactly one of {wanted} is needed, but there is {got}")
    for name, text in (*given.items(), ("prompt", prompt)):
        if text is not None and not _is_text(text):
            raise click.UsageError(f"--{name} is not UTF-8 text")
    try:
        check_options(temperature, top_k, top_p, seed)
    except ConstrainError as error:
        raise click.UsageError(str(error)) from error
    # All that can be wrong with the input is said before the first kernel is compiled.
    source, grammar = _read_grammar(chosen[0], str(given[chosen[0]]))

    announce_compilation()
    from constrain import GrammarCompiler, Vocabulary, demo, generation
    from constrain.sampling import Sampler

    sampler = Sampler(temperature, top_k, top_p, seed)
    tokenizer, model = demo.load()
    with _errors_in(source):
        compiled = GrammarCompiler(Vocabulary.from_tokenizer(tokenizer)).compile(grammar)
    _show_warnings(source, grammar.warnings)
    click.echo("constrain: using the built-in demonstration model; do not expect sense from it", err=True)

    steps = generation.generate(model, tokenizer, compiled, prompt=prompt, max_tokens=max_tokens, sampler=sampler)
    # Bytes, so that the output is UTF-8 wherever it runs.
    output = sys.stdout.buffer
    try:
        for step in steps:
            output.write(step.text.encode())
            output.flush()
        output.write(b"\n")
        output.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Stop(Exit.INPUT, f"cannot write the output: {error.strerror}") from error
    click.echo(f"constrain: {_summary(steps.statistics)}; seed {sampler.seed}", err=True)
    if steps.statistics.finish_reason == "length":
        raise Stop(Exit.LENGTH, f"incomplete: the grammar needs more than --max-tokens {max_tokens} allows")


def _read_grammar(kind: str, value: str) -> tuple[str, Grammar]:
    """The grammar that an option's file or text describes, after the name of the source for messages."""
    from constrain import Grammar

    items = _choices(value) if kind == "choices" else []
    text = value if kind in ("regex", "choices") else _read(value)
    source = f"--{kind}" if kind in ("regex", "choices") else "stdin" if value == "-" else value
    with _errors_in(source):
        if kind == "regex":
            return source, Grammar.from_regex(text)
        if kind == "choices":
            return source, Grammar.from_choices(items)
        if kind == "schema":
            return source, Grammar.from_json_schema(text)
        if kind == "gbnf":
            return source, Grammar.from_gbnf(text)
        return source, Grammar.from_lark(text, base_path=None if value == "-" else Path(value).parent)


@contextlib.contextmanager
def _errors_in(source: str) -> Iterator[None]:
    try:
        yield
    except ConstrainError as error:
        raise Stop(Exit.INPUT, f"{source}: {error}") from error


def _show_warnings(source: str, warnings: tuple[str, ...]) -> None:
    for warning in warnings[:_WARNINGS_SHOWN]:
        click.echo(f"constrain: warning: {source}: {warning}", err=True)
    if len(warnings) > _WARNINGS_SHOWN:
        click.echo(f"constrain: warning: {source}: and {len(warnings) - _WARNINGS_SHOWN} more", err=True)


def _is_text(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:  # bytes of the command line that could not be decoded
        return False
    return True


def _read(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise Stop(Exit.INPUT, f"cannot read {name!r}: {error.strerror}") from error
    try:
        # With or without a byte order mark.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Stop(Exit.INPUT, f"{name}: not UTF-8 text (byte {error.start})") from error


def _choices(value: str) -> list[str]:
    try:
        rows = list(csv.reader([value], strict=True))
    except csv.Error as error:
        raise click.BadParameter(f"not a line of CSV: {error}", param_hint="--choices") from error
    items = rows[0] if rows else []
    if not items or not all(items):
        raise click.BadParameter("a choice is empty" if any(items) else "there is no choice", param_hint="--choices")
    return items


def _summary(statistics: Statistics) -> str:
    parts = [f"{statistics.tokens} token" + "s" * (statistics.tokens != 1)]
    first = statistics.seconds_to_first_token
    if first is not None:
        parts.append(f"first after {1e3 * first:.1f} ms")
    mean, p99 = statistics.mean_seconds_between_tokens, statistics.p99_seconds_between_tokens
    if mean is not None and p99 is not None:
        parts.append(f"then {1e3 * mean:.2f} ms a token (p99 {1e3 * p99:.2f} ms)")
    parts.append(f"masks {1e3 * statistics.mask_seconds:.1f} ms ({100 * statistics.mask_share:.0f} % of the time)")
    return ", ".join(parts)
