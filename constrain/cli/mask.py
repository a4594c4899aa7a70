"""``constrain mask``: which tokens may come next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from constrain.cli.argument_types import FILE, TEXT
from constrain.cli.first_run import announce_compilation
from constrain.cli.grammar_options import (
    chosen_grammar,
    errors_in,
    grammar_files,
    grammar_options,
    read_bytes,
    read_grammar,
    show_warnings,
)
from constrain.cli.output import paint, write
from constrain.cli.sections import SectionCommand, option
from constrain.cli.status import Exit, Stop
from constrain.cli.text_options import as_text
from constrain.cli.tokenizer_options import Tokens, check_model, load_tokens, model_option, tokenizer_option

if TYPE_CHECKING:
    from constrain import Matcher
    from constrain.explain.allowed import RankedToken


@click.command(cls=SectionCommand, short_help="Show which tokens may come next.")
@grammar_options
@option("--prefix", "-p", section="Text", metavar="TEXT", type=TEXT, help="The text so far.  [default: none]")
@option(
    "--prefix-file",
    section="Text",
    metavar="FILE",
    type=FILE,
    help="The file that the text so far is in ('-': stdin).",
)
@tokenizer_option
@model_option
@option(
    "--limit",
    section="Output",
    metavar="N",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Tokens to list; 0: all.",
)
@option("--json", "as_json", section="Output", is_flag=True, help="The answer as one line of JSON.")
def mask(
    prefix: str | None,
    prefix_file: str | None,
    tokenizer: str | None,
    model: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show which tokens may come next: how many, which bytes are certain, and the tokens themselves.

    Give exactly one grammar, and with --prefix the text so far. The tokens are in the order of their ids,
    or with --model the most likely first.
    """
    kind, value = chosen_grammar()
    check_model(tokenizer, model)
    if prefix is not None and prefix_file is not None:
        raise click.UsageError("--prefix and --prefix-file exclude each other")
    if prefix_file == "-" and "-" in grammar_files():
        raise click.UsageError("the grammar and the prefix cannot both come from stdin")
    data = read_bytes(prefix_file) if prefix_file is not None else (prefix or "").encode()
    grammar_source, grammar = read_grammar(kind, value)

    announce_compilation()
    from constrain import GrammarCompiler, Matcher
    from constrain.explain.allowed import allowed_tokens, first_ids, probabilities, rank

    tokens = load_tokens(tokenizer, model)
    with errors_in(grammar_source):
        matcher = Matcher(GrammarCompiler(tokens.vocabulary).compile(grammar))
    show_warnings(grammar_source, grammar.warnings)
    source = prefix_file or "--prefix"
    if not matcher.accept_bytes(data):
        raise Stop(Exit.INPUT, _why_not(matcher, source, data))
    ids = allowed_tokens(matcher)
    shares = None
    if tokens.model is not None:
        context = tokens.tokenizer.encode(as_text(source, data)).ids
        with errors_in(str(model)):
            shares = probabilities(ids, tokens.model.logits([*first_ids(tokens.tokenizer), *context]))
    ranked = rank(ids, shares, limit or len(ids))
    if as_json:
        write(json.dumps(_as_json(matcher, tokens, len(ids), ranked), ensure_ascii=False) + "\n")
    else:
        _show(matcher, tokens, len(ids), ranked)


def _why_not(matcher: Matcher, source: str, data: bytes) -> str:
    from constrain.engine.expectations import in_words
    from constrain.explain import read_text
    from constrain.explain.places import place_in_text

    reading = read_text(matcher.compiled, data)
    place = place_in_text(data, reading.length)
    return (
        f"{source}:{place.line}:{place.column}: not the beginning of a valid text: {place.character} cannot stand "
        f"here; expected: {in_words(reading.expected)}"
    )


def _show(matcher: Matcher, tokens: Tokens, count: int, ranked: list[RankedToken]) -> None:
    from constrain.engine.expectations import in_words
    from constrain.grammar.words import quote

    end = "the text is complete and may end here" if matcher.is_accepting() else "the text cannot end here"
    forced = matcher.forced_bytes()
    lines = [
        f"{paint(f'{count:,}', bold=True)} of {tokens.vocabulary.size:,} tokens are allowed; {end}",
        f"expected: {in_words(matcher.expected())}",
        f"forced: {quote(forced) if forced else 'nothing'}",
    ]
    if ranked:
        width = max(len(str(each.id)) for each in ranked)
        likely = ranked[0].probability is not None
        lines.append("")
        for each in ranked:
            probability = f"  {100 * (each.probability or 0):6.2f} %" if likely else ""
            lines.append(f"  {each.id:>{width}}{probability}  {_name(tokens, each.id)}")
        if count > len(ranked):
            lines.append(f"  ... and {count - len(ranked):,} more (--limit)")
    write("\n".join(lines) + "\n")


def _name(tokens: Tokens, token: int) -> str:
    from constrain.grammar.words import quote

    if token in tokens.vocabulary.eos_ids:
        name = tokens.tokenizer.id_to_token(token)
        return paint(f"end of text ({name})", fg="green")
    return quote(tokens.vocabulary.shown(token))


def _as_json(matcher: Matcher, tokens: Tokens, count: int, ranked: list[RankedToken]) -> dict[str, Any]:
    from constrain.engine.expectations import in_words
    from constrain.explain.token_text import bytes_as_json

    listed = []
    for each in ranked:
        entry: dict[str, Any] = {"id": each.id, **bytes_as_json(tokens.vocabulary.shown(each.id))}
        if each.id in tokens.vocabulary.eos_ids:
            entry = {"id": each.id, "end_of_text": True}
        if each.probability is not None:
            entry["probability"] = each.probability
        listed.append(entry)
    return {
        "allowed": count,
        "vocabulary": tokens.vocabulary.size,
        "complete": matcher.is_accepting(),
        "expected": in_words(matcher.expected()),
        "forced": bytes_as_json(matcher.forced_bytes()),
        "tokens": listed,
    }
