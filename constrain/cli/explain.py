"""``constrain explain``: a text token by token, as a table or as a page to click through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from constrain.cli.argument_types import FILE, TEXT
from constrain.cli.first_run import announce_compilation
from constrain.cli.grammar_options import (
    chosen_grammar,
    errors_in,
    grammar_options,
    read_source,
    show_warnings,
)
from constrain.cli.output import paint, write
from constrain.cli.progress import Progress
from constrain.cli.sections import SectionCommand, option
from constrain.cli.status import Exit, Stop
from constrain.cli.text_options import chosen_text
from constrain.cli.tokenizer_options import (
    DEMO,
    check_model,
    load_tokens,
    model_option,
    tokenizer_option,
)
from constrain.cli.whole_file import write_whole

if TYPE_CHECKING:
    from constrain.explain.trace import Trace

_EXPECTED_SHOWN = 70
_PIECE_SHOWN = 20
_TITLE_SHOWN = 40


@click.command(cls=SectionCommand, short_help="Walk through a text token by token.")
@click.argument("file", metavar="[FILE]", required=False, type=FILE)
@grammar_options
@option("--text", "-t", section="Text", metavar="TEXT", type=TEXT, help="The text itself, instead of FILE.")
@tokenizer_option
@model_option
@option(
    "--html",
    section="Output",
    metavar="FILE",
    type=FILE,
    help="Write a page to click through, which needs nothing but a browser ('-': to stdout).",
)
@option(
    "--limit",
    section="Output",
    metavar="N",
    type=click.IntRange(min=1),
    default=5000,
    show_default=True,
    help="Tokens to walk over.",
)
def explain(
    file: str | None,
    text: str | None,
    tokenizer: str | None,
    model: str | None,
    html: str | None,
    limit: int,
) -> None:
    """Walk through a text token by token: how many tokens were allowed, how long the mask took, what was forced,
    and what the grammar was waiting for.

    The text is that of FILE, of --text, or of stdin. Give exactly one grammar. Without --html it is a
    table. The text need not be valid: then it goes as far as the grammar does, and the exit code is 1.
    """
    kind, value = chosen_grammar()
    check_model(tokenizer, model)
    source, data = chosen_text(file, text)
    grammar_source = read_source(kind, value)
    grammar = grammar_source.grammar()

    announce_compilation()
    from constrain import GrammarCompiler
    from constrain.explain import without_last_line_break
    from constrain.explain.trace import reach, trace_text

    tokens = load_tokens(tokenizer, model)
    with errors_in(grammar_source.name):
        compiled = GrammarCompiler(tokens.vocabulary).compile(grammar)
    show_warnings(grammar_source.name, grammar.warnings)
    if len(data) <= reach(tokens.vocabulary, limit):
        # Whether it ends in a line break of its own is found out apart, so that every mask is a first one below.
        data = without_last_line_break(GrammarCompiler(tokens.vocabulary).compile(grammar), data)
    with errors_in(source), Progress("walking", min(limit, len(data) // 3 + 1), "tokens") as progress:
        trace = trace_text(compiled, tokens.tokenizer, data, model=tokens.model, most=limit, on_step=progress.advance)
    if len(trace.steps) == limit and trace.unread:
        click.echo(f"constrain: the first {limit:,} tokens are shown (--limit)", err=True)
    elif not trace.own_tokens:
        click.echo(
            "constrain: the tokenizer does not keep this text as it is; at every place the longest token is shown",
            err=True,
        )
    if html is None:
        _show(trace, with_model=tokens.model is not None)
    else:
        from constrain.explain.page import Source, page

        names = {"schema": "places in the schema"}
        content = page(
            trace,
            tokens.vocabulary,
            title=f"Token by token: {_title(source, data)}",
            verdict=_verdict(trace, data),
            facts=f"{grammar_source.name} · {len(trace.steps):,} tokens of {model or tokenizer or DEMO}"
            + ("" if trace.own_tokens else ", always the longest that fits"),
            rules_name=names.get(kind, "rules"),
            source=Source(grammar_source.name, grammar_source.text, is_schema=kind == "schema"),
        )
        if html == "-":
            write(content)
        else:
            write_whole(html, content.encode())
        where = "" if html == "-" else f"; the page is {html}"
        click.echo(f"constrain: {source} is {_verdict(trace, data)}{where}", err=True)
    if trace.refused or not (trace.valid or trace.unread):
        raise Stop(Exit.INPUT)


def _title(source: str, data: bytes) -> str:
    """The name of the text, or where it has none, how it begins."""
    from constrain.grammar.words import quote

    if source not in ("--text", "stdin"):
        return source
    return quote(data[:_TITLE_SHOWN]) + "..." * (len(data) > _TITLE_SHOWN)


def _verdict(trace: Trace, data: bytes) -> str:
    from constrain.explain.places import place_in_text

    if trace.valid:
        return "valid"
    place = place_in_text(data, trace.read)
    if trace.refused:
        return f"not valid from line {place.line}, column {place.column} on"
    return "not shown to its end" if trace.unread else "incomplete: it ends before it is valid"


def _show(trace: Trace, *, with_model: bool) -> None:
    from constrain.grammar.words import quote

    def likely(share: str) -> str:
        return f" {share:>8}" if with_model else ""

    write(
        f"{'token':<{_PIECE_SHOWN + 2}} {'id':>7} {'allowed':>8} {'mask us':>9}{likely('likely')}          expected\n"
    )
    for step in trace.steps:
        piece = quote(step.data)
        piece = piece if len(piece) <= _PIECE_SHOWN else piece[: _PIECE_SHOWN - 3] + "..."
        choice = "forced" if step.forced else "" if step.accepted else "refused"
        colour = "blue" if step.forced else "red"
        before = step.before
        share = "" if step.probability is None else f"{100 * step.probability:.2f} %"
        write(
            f"{piece:<{_PIECE_SHOWN + 2}} {step.token:>7} {before.allowed:>8,} {1e6 * before.mask_seconds:>9,.1f}"
            f"{likely(share)} {paint(f'{choice:<8}', fg=colour)} {_cut(before.expected)}\n"
        )
    assert trace.end is not None
    end = "(stopped here)" if trace.refused else "(more)" if trace.unread else "(end)"
    write(
        f"{end:<{_PIECE_SHOWN + 2}} {'':>7} {trace.end.allowed:>8,} {1e6 * trace.end.mask_seconds:>9,.1f}"
        f"{likely('')} {'':<8} {_cut(trace.end.expected)}\n"
    )


def _cut(text: str) -> str:
    return text if len(text) <= _EXPECTED_SHOWN else text[: _EXPECTED_SHOWN - 3] + "..."
