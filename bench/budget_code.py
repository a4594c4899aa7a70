"""What a budget adds to masks of programming languages: generated programs with and without ``max_tokens``.

    python -m bench.budget_code [--languages c,sql] [--tokens 3000]

A program is read by a matcher of a fresh compiled grammar, on Llama-3's vocabulary, as in ``bench.code``: without a
budget, and with one that leaves so many tokens more than the program has.  Times are the processor's, of one thread.
"""

from __future__ import annotations

import click
import numpy as np

import constrain
from bench.code.languages import LANGUAGES
from bench.code.measuring import Program
from bench.figures import mask_times
from bench.maskbench.schemas import vocabulary_file
from bench.maskbench.vocabulary import TokenTable

MORE = (None, 5_000, 500)


def microseconds(
    source: str, vocabulary: constrain.Vocabulary, tokens: list[int], more: int | None
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The times of the masks of a text, in its order, with a budget of ``more`` tokens than it has."""
    compiled = constrain.GrammarCompiler(vocabulary).compile(constrain.Grammar.from_lark(source))
    matcher = constrain.Matcher(compiled, max_tokens=None if more is None else len(tokens) + more)
    return np.array(mask_times(matcher, tokens))


@click.command()
@click.option("--languages", default=",".join(LANGUAGES), metavar="A,B", help=f"Of {', '.join(LANGUAGES)}.")
@click.option("--tokens", default=3000, help="Of each program, at least.")
@click.option("--seed", default=1, help="Of the programs.")
def main(languages: str, tokens: int, seed: int) -> None:
    """Masks of programming languages with and without a budget."""
    table = TokenTable.read(vocabulary_file())
    vocabulary = constrain.Vocabulary(table.tokens, eos_ids=table.end_ids, special_ids=list(table.special_ids))
    click.echo("| language | budget | mean us | p50 | p99 | max |\n|---|---|---:|---:|---:|---:|")
    for name in languages.split(","):
        language = LANGUAGES[name]
        program = Program.make(language, seed, tokens, table)
        for more in MORE:
            times = microseconds(language.lark(), vocabulary, program.tokens, more)
            budget = "none" if more is None else f"{more:,} more"
            p50, p99 = np.percentile(times, (50, 99))
            click.echo(f"| {name} | {budget} | {times.mean():.1f} | {p50:.1f} | {p99:,.0f} | {times.max():,.0f} |")


if __name__ == "__main__":
    main()
