"""``constrain check``: whether a text is valid for a grammar, and if not, where and why."""

from __future__ import annotations

import json
import shutil
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
from constrain.grammar.words import printable

if TYPE_CHECKING:
    from constrain.explain import Reading
    from constrain.explain.faults import Fault

_FAULTS_SHOWN = 12
_BOM = b"\xef\xbb\xbf"


@click.command(cls=SectionCommand, short_help="Say whether a text is valid, and if not, where and why.")
@click.argument("file", metavar="[FILE]", required=False, type=FILE)
@grammar_options
@option("--text", "-t", section="Text", metavar="TEXT", type=TEXT, help="The text itself, instead of FILE.")
@option("--exact", section="Text", is_flag=True, help="Do not overlook a line break at the end of the text.")
@option("--json", "as_json", section="Output", is_flag=True, help="The answer as one line of JSON.")
@option("--quiet", "-q", section="Output", is_flag=True, help="Nothing but the exit code.")
def check(
    file: str | None,
    text: str | None,
    exact: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say whether a text is valid for a grammar, and if not, where and why.

    The text is that of FILE, of --text, or of stdin. Give exactly one grammar. Exit code 0 if it is valid, 1 if it is
    not: then the line, a caret under the place, what was expected there, and with --schema all that the schema
    finds fault with.
    """
    if as_json and quiet:
        raise click.UsageError("--json and --quiet exclude each other")
    kind, value = chosen_grammar()
    source, data = chosen_text(file, text)
    grammar_source = read_source(kind, value)
    grammar = grammar_source.grammar()

    announce_compilation()
    from constrain import GrammarCompiler, Vocabulary
    from constrain.explain import read_text, without_last_line_break
    from constrain.explain.faults import find_faults

    # Whether a text is valid has nothing to do with tokens.
    vocabulary = Vocabulary([bytes((byte,)) for byte in range(256)])
    with errors_in(grammar_source.name):
        compiled = GrammarCompiler(vocabulary).compile(grammar)
    show_warnings(grammar_source.name, grammar.warnings)
    data = data.removeprefix(_BOM)
    with errors_in(source), Progress("reading", len(data), "bytes") as progress:
        reading = read_text(compiled, data, on_read=progress.advance)
        if reading.refused and not exact:
            shorter = without_last_line_break(compiled, data)
            reading = read_text(compiled, shorter) if shorter != data else reading
    faults = None
    if kind == "schema" and not reading.complete and not quiet:
        faults = find_faults(grammar_source.text, data)
    if as_json:
        write(json.dumps(_as_json(reading, data, faults), ensure_ascii=False) + "\n")
    elif not quiet and reading.complete:
        write(f"{printable(source)}: {paint('valid', fg='green')}\n")
    elif not quiet:
        _complain(printable(source), data, reading, faults or [])
    if not reading.complete:
        raise Stop(Exit.INPUT)


def _complain(source: str, data: bytes, reading: Reading, faults: list[Fault]) -> None:
    from constrain.engine.expectations import in_words
    from constrain.explain.places import place_in_text

    width = max(40, shutil.get_terminal_size((100, 24)).columns - 12)
    place = place_in_text(data, reading.length, width)
    number = str(place.line)
    if reading.refused:
        what = f"not valid: {place.character} cannot stand here" if place.character else "not valid"
    else:
        what = "incomplete: the text ends before it is valid"
    expected = in_words(reading.expected)
    lines = [
        f"{source}:{place.line}:{place.column}: {paint(what, fg='red')}",
        f"  {number} | {place.shown}",
        f"  {' ' * len(number)} | {' ' * place.indent}{paint('^', fg='red', bold=True)}",
        f"{'expected' if reading.refused else 'needed'}: {expected}",
    ]
    if reading.forced and not reading.refused:
        from constrain.grammar.words import quote

        forced = quote(reading.forced)
        if forced != expected:
            lines.append(f"in any case next: {forced}")
    if faults:
        lines.append("the schema says:")
        for fault in faults[:_FAULTS_SHOWN]:
            at = place_in_text(data, fault.offset, width)
            value = f" {printable(fault.place)}:" if fault.place else ""
            lines.append(f"  {at.line}:{at.column}:{value} {fault.message} ({printable(fault.schema_place)})")
        if len(faults) > _FAULTS_SHOWN:
            lines.append(f"  and {len(faults) - _FAULTS_SHOWN} more")
    write("".join(f"{line}\n" for line in lines))


def _as_json(reading: Reading, data: bytes, faults: list[Fault] | None) -> dict[str, object]:
    from constrain.engine.expectations import in_words
    from constrain.explain.places import place_in_text

    result: dict[str, object] = {"valid": reading.complete}
    if not reading.complete:
        place = place_in_text(data, reading.length)
        result |= {
            "incomplete": not reading.refused,
            "line": place.line,
            "column": place.column,
            "byte": reading.length,
            "expected": in_words(reading.expected),
            "alternatives": [
                {
                    "kind": each.kind,
                    "texts": each.texts,
                    "rules": each.rules,
                    "next": each.next_bytes.decode("latin-1") if each.next_bytes.isascii() else list(each.next_bytes),
                }
                for each in reading.expected
            ],
        }
    if faults is not None:
        places = ((each, place_in_text(data, each.offset)) for each in faults)
        result["faults"] = [
            {
                "line": at.line,
                "column": at.column,
                "byte": each.offset,
                "place": each.place,
                "message": each.message,
                "schema_place": each.schema_place,
            }
            for each, at in places
        ]
    return result
