"""``constrain generate``: text for a grammar, to stdout as it is made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from constrain.cli.first_run import announce_compilation
from constrain.cli.grammar_options import (
    check_text,
    chosen_grammar,
    errors_in,
    grammar_options,
    read_grammar,
    show_warnings,
)
from constrain.cli.status import Exit, Stop
from constrain.errors import ConstrainError
from constrain.sampling.options import check_options

if TYPE_CHECKING:
    from constrain.generation import Statistics


@click.command(short_help="Generate text that fits a grammar.")
@grammar_options
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
    kind, value = chosen_grammar(schema=schema, regex=regex, lark=lark, gbnf=gbnf, choices=choices)
    check_text("prompt", prompt)
    try:
        check_options(temperature, top_k, top_p, seed)
    except ConstrainError as error:
        raise click.UsageError(str(error)) from error
    # All that can be wrong with the input is said before the first kernel is compiled.
    source, grammar = read_grammar(kind, value)

    announce_compilation()
    from constrain import GrammarCompiler, Vocabulary, demo, generation
    from constrain.sampling import Sampler

    sampler = Sampler(temperature, top_k, top_p, seed)
    tokenizer, model = demo.load()
    with errors_in(source):
        compiled = GrammarCompiler(Vocabulary.from_tokenizer(tokenizer)).compile(grammar)
    show_warnings(source, grammar.warnings)
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
