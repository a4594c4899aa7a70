"""The options that name a grammar, shared by the commands, and the reading of what they name."""

from __future__ import annotations

import contextlib
import csv
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from constrain.cli.argument_types import FILE, TEXT
from constrain.cli.sections import option
from constrain.cli.status import Exit, Stop
from constrain.errors import ConstrainError
from constrain.grammar.schema_options import (
    Formats,
    Numbers,
    Patterns,
    PropertyOrder,
    Spellings,
    UnicodeEscapes,
    WhiteSpace,
)

if TYPE_CHECKING:
    from constrain import Grammar

_KINDS = ("schema", "regex", "lark", "llguidance", "gbnf", "ebnf", "choices", "structural-tag", "tools")
# What these take is the grammar itself, and no file.
_IN_PLACE = ("regex", "choices")
# These hold schemas, too.
_HOLD_SCHEMAS = ("structural-tag", "tools")
_LEXINGS = ("any", "longest", "longest-basic")
_WARNINGS_SHOWN = 5
# No grammar or text is so long by intention; a device or a pipe may have no end.
_MOST_BYTES = 256 << 20
GRAMMAR = "Grammar, exactly one"
_LARK = "How a --lark grammar is read"
_TURN = "A turn with --tools"
_JSON = "How the JSON of a --schema is written"
_GIVEN_KINDS = "constrain.grammars"
_GIVEN_LEXING = "constrain.lexing"
_GIVEN_TURN = "constrain.tool options"
_WHITE_SPACE = ("whitespace", "max_whitespace", "indent", "whitespace_pattern")
_GIVEN = "constrain.schema options"


def _kept(section: str, place: str) -> Callable[..., Callable[..., Any]]:
    """What makes options of a section that are noted in one place, so that no command has to pass them on."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is not None and value is not False:
            context.meta.setdefault(place, {})[parameter.name] = value

    return partial(option, section=section, expose_value=False, callback=keep)


_grammar_option = partial(_kept(GRAMMAR, _GIVEN_KINDS), only_once=True)
_lark_option = _kept(_LARK, _GIVEN_LEXING)
_turn_option = _kept(_TURN, _GIVEN_TURN)
_json_option = _kept(_JSON, _GIVEN)

_OPTIONS = (
    _grammar_option("--schema", "-s", metavar="FILE", type=FILE, help="A JSON Schema ('-': from stdin)."),
    _grammar_option("--regex", "-r", metavar="PATTERN", type=TEXT, help="A regular expression for the whole text."),
    _grammar_option("--lark", "-l", metavar="FILE", type=FILE, help="A Lark grammar; it begins with the rule 'start'."),
    _grammar_option("--llguidance", metavar="FILE", type=FILE, help="A Lark grammar, or a list, as llguidance has it."),
    _grammar_option("--gbnf", "-g", metavar="FILE", type=FILE, help="A GBNF grammar; it begins with the rule 'root'."),
    _grammar_option(
        "--ebnf", metavar="FILE", type=FILE, help="A grammar in XGrammar's EBNF; it begins with the rule 'root'."
    ),
    _grammar_option("--choices", "-c", metavar="A,B,..", type=TEXT, help="One of these; written as a line of CSV."),
    _grammar_option(
        "--structural-tag", metavar="FILE", type=FILE, help="A structural tag in JSON, as XGrammar has it."
    ),
    _grammar_option(
        "--tools",
        metavar="FILE",
        type=FILE,
        help="A list of tools in OpenAI's JSON: a whole turn that may call them; needs --style.",
    ),
    _lark_option(
        "--lexing",
        type=click.Choice(_LEXINGS),
        help="any: every split into terminals; longest: what Lark's LALR parser accepts; -basic: with its basic lexer.",
    ),
    _turn_option(
        "--style",
        metavar="NAME",
        type=TEXT,
        help="The model's syntax of calls: llama3, qwen3, hermes, deepseek_v3, ...",
    ),
    _turn_option(
        "--tool-choice", metavar="CHOICE", type=TEXT, help="auto (the default), required, none, or the name of a tool."
    ),
    _turn_option("--one-call", is_flag=True, help="No more than one call."),
    _turn_option("--no-reasoning", is_flag=True, help="No thoughts before the answer."),
    _turn_option(
        "--reasoning-begun", is_flag=True, help="The prompt has begun the thoughts, as one that ends with <think> does."
    ),
    _turn_option(
        "--reasoning-tokens", type=click.IntRange(1), help="The most tokens that thoughts before the answer may take."
    ),
)

_JSON_OPTIONS = (
    _json_option(
        "--numbers", type=click.Choice(get_args(Numbers)), help="plain: no exponents, and integers without fraction."
    ),
    _json_option(
        "--spelling",
        type=click.Choice(get_args(Spellings)),
        help="canonical: keys, strings and constants just as json.dumps writes them.",
    ),
    _json_option("--ensure-ascii", is_flag=True, help="Characters beyond ASCII as \\uXXXX only."),
    _json_option("--whitespace", type=click.Choice(get_args(WhiteSpace)), help="compact: none between tokens."),
    _json_option(
        "--max-whitespace",
        type=click.IntRange(min=0),
        metavar="N",
        help="Any white space between tokens, at most N characters of it in one place.",
    ),
    _json_option(
        "--indent",
        type=click.IntRange(min=0, max=64),
        metavar="N",
        help="New lines and N blanks a level, as json.dumps(indent=N) writes.",
    ),
    _json_option(
        "--whitespace-pattern", metavar="REGEX", type=TEXT, help="What stands before each token but the first."
    ),
    _json_option("--surrounding-whitespace", is_flag=True, help="White space also before and behind the whole text."),
    _json_option(
        "--unicode-escapes", type=click.Choice(get_args(UnicodeEscapes)), help="What may be written as \\uXXXX."
    ),
    _json_option(
        "--no-additional-properties", is_flag=True, help="No other members in objects whose schema names some."
    ),
    _json_option(
        "--max-array-length",
        type=click.IntRange(min=0),
        metavar="N",
        help="The most items of arrays whose schema does not say.",
    ),
    _json_option("--patterns", type=click.Choice(get_args(Patterns)), help="full: a pattern matches all of a string."),
    _json_option(
        "--property-order", type=click.Choice(get_args(PropertyOrder)), help="any: members in whatever order."
    ),
    _json_option("--formats", type=click.Choice(get_args(Formats)), help="annotate: no format keyword is enforced."),
    _json_option("--coerce-one-of", is_flag=True, help="oneOf is read as anyOf."),
    _json_option("--lenient", is_flag=True, help="What is not supported is left out, with a warning."),
)


def grammar_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that name a grammar, and those that say how it is read or JSON is written.

    The functions below and :class:`GrammarSource` find what was given by themselves.
    """
    for add in reversed((*_OPTIONS, *_JSON_OPTIONS)):
        function = add(function)
    return function


def grammar_files() -> list[str]:
    """The files that grammar options were given ('-': stdin)."""
    return [value for kind, value in _given(_GIVEN_KINDS).items() if kind not in _IN_PLACE]


def grammar_is_asked_for() -> bool:
    """Whether there is a grammar option, or one that says how a grammar is read and so needs one."""
    return any(map(_given, (_GIVEN_KINDS, _GIVEN, _GIVEN_LEXING, _GIVEN_TURN)))


def chosen_grammar() -> tuple[str, str]:
    """The one grammar option that was given: its name, and its value.

    Raises
    ------
    click.UsageError
        If none or several were given.
    """
    grammars = {name.replace("_", "-"): value for name, value in _given(_GIVEN_KINDS).items()}
    chosen = [name for name in _KINDS if name in grammars]
    if len(chosen) != 1:
        wanted = ", ".join(f"--{name}" for name in _KINDS)
        got = " and ".join(f"--{name}" for name in chosen) or "none"
        raise click.UsageError(f"exactly one of {wanted} is needed, but there is {got}")
    about_json = _schema_options()
    if chosen[0] in _HOLD_SCHEMAS:
        about_json.pop("lenient", None)
    if about_json and chosen[0] != "schema":
        raise click.UsageError(f"{_as_options(about_json)} needs --schema: it says how JSON is written")
    white_space = [name for name in _WHITE_SPACE if _schema_options().get(name, "flexible") != "flexible"]
    if len(white_space) > 1:
        raise click.UsageError(f"{_as_options(white_space)} exclude each other: each says all about white space")
    if _given(_GIVEN_LEXING) and chosen[0] != "lark":
        raise click.UsageError("--lexing needs --lark: it says how a Lark grammar is read")
    turn = _given(_GIVEN_TURN)
    if chosen[0] == "tools" and "style" not in turn:
        raise click.UsageError("--tools needs --style: the syntax of the model's calls")
    if "no_reasoning" in turn and "reasoning_tokens" in turn:
        raise click.UsageError("--no-reasoning and --reasoning-tokens exclude each other")
    if turn and chosen[0] != "tools":
        raise click.UsageError(f"{_as_options(turn)} needs --tools")
    return chosen[0], grammars[chosen[0]]


def _as_options(names: Iterable[str]) -> str:
    return " and ".join(f"--{name.replace('_', '-')}" for name in names)


def _schema_options() -> dict[str, Any]:
    """The options of JSON Schemas that were given to the command that runs."""
    return _given(_GIVEN)


def _given(place: str) -> dict[str, Any]:
    """The options that were given to the command that runs, of those that are kept in one place."""
    context = click.get_current_context(silent=True)
    return {} if context is None else dict(context.meta.get(place, {}))


@dataclass(frozen=True)
class GrammarSource:
    """What a grammar option names, read.

    Attributes
    ----------
    name : str
        For messages: the option, or the name of the file.
    kind, value : str
        The option and what it was given.
    text : str
        The grammar's own text.
    """

    name: str
    kind: str
    value: str
    text: str

    def grammar(self, **layout: Any) -> Grammar:
        """The grammar; of a JSON Schema with these options unless the command line says otherwise.

        Raises
        ------
        Stop
            With what is wrong with it.
        """
        from constrain import Grammar

        if self.kind == "tools":
            _check_style(_given(_GIVEN_TURN)["style"])
        items = _choices(self.value) if self.kind == "choices" else []
        with errors_in(self.name):
            if self.kind == "regex":
                return Grammar.from_regex(self.text)
            if self.kind == "choices":
                return Grammar.from_choices(items)
            if self.kind == "schema":
                options = {**layout, **_schema_options()}
                if options.pop("no_additional_properties", False):
                    options["additional_properties"] = False
                return Grammar.from_json_schema(self.text, **options)
            if self.kind == "llguidance":
                return Grammar.from_llguidance(self.text)
            if self.kind == "gbnf":
                return Grammar.from_gbnf(self.text)
            if self.kind == "ebnf":
                return Grammar.from_ebnf(self.text)
            if self.kind == "structural-tag":
                return Grammar.from_structural_tag(self.text, **_schema_options())
            if self.kind == "tools":
                return _turn(self.text, _given(_GIVEN_TURN), **_schema_options())
            return Grammar.from_lark(
                self.text,
                base_path=None if self.value == "-" else Path(self.value).parent,
                lexing=_given(_GIVEN_LEXING).get("lexing", "any"),
            )


def _turn(text: str, turn: dict[str, Any], *, lenient: bool = False) -> Grammar:
    """The grammar of ``--tools`` with its options."""
    from constrain import Grammar

    tokens = turn.get("reasoning_tokens")
    grammar = Grammar.from_tools(
        read_tool_list(text),
        style=turn["style"],
        tool_choice=turn.get("tool_choice", "auto"),
        parallel="one_call" not in turn,
        reasoning="no_reasoning" not in turn if tokens is None else tokens,
        reasoning_begun=True if "reasoning_begun" in turn else None,
        lenient=lenient,
    )
    if tokens is None:
        return grammar
    region = grammar.ir.first_region
    if region is None:
        raise click.UsageError(f"--reasoning-tokens: there are no thoughts in the style {turn['style']}")
    # Messages name what was given.
    named = replace(grammar.ir, first_region=region._replace(option=f"--reasoning-tokens {tokens}"))
    return Grammar(named, grammar.key)


def _check_style(name: str) -> None:
    from constrain.grammar.tools.front_end import style_named

    try:
        style_named(name)
    except ConstrainError as error:
        raise click.UsageError(f"--style: {error}") from None


def read_tool_list(text: str) -> list[Any]:
    """The list in a file of tools, which may be the request that holds it.  Raises ConstrainError if there is none."""
    from constrain.grammar.json_schema.document.document import parse

    value = parse(text)
    tools = value.get("tools") if isinstance(value, dict) else value
    if not isinstance(tools, list):
        raise ConstrainError("a file of tools holds a list, or an object with a list named tools")
    return tools


def read_source(kind: str, value: str) -> GrammarSource:
    """Read what a grammar option names."""
    in_place = kind in _IN_PLACE
    name = f"--{kind}" if in_place else "stdin" if value == "-" else value
    return GrammarSource(name, kind, value, value if in_place else read_text(value))


def read_grammar(kind: str, value: str) -> tuple[str, Grammar]:
    """The grammar that an option's file or text describes, after the name of the source for messages."""
    source = read_source(kind, value)
    return source.name, source.grammar()


def layout_is_given() -> bool:
    """Whether the command line says what stands between the tokens of JSON."""
    return not _schema_options().keys().isdisjoint(_WHITE_SPACE)


@contextlib.contextmanager
def errors_in(source: str) -> Iterator[None]:
    """Have errors of the library end the command, with the name of the source in front."""
    try:
        yield
    except ConstrainError as error:
        raise Stop(Exit.INPUT, f"{source}: {error}") from error


def show_warnings(source: str, warnings: tuple[str, ...]) -> None:
    """What was taken note of in a grammar, to stderr; the first few of it."""
    for warning in warnings[:_WARNINGS_SHOWN]:
        click.echo(f"constrain: warning: {source}: {warning}", err=True)
    if len(warnings) > _WARNINGS_SHOWN:
        click.echo(f"constrain: warning: {source}: and {len(warnings) - _WARNINGS_SHOWN} more", err=True)


def read_bytes(name: str) -> bytes:
    """The content of a file, or of stdin if the name is '-'; the command ends where it has no end in sight."""
    if name == "-" and sys.stdin is None:
        raise Stop(Exit.INPUT, "there is no standard input to read")
    try:
        if name == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with open(name, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = "; '-' reads it from stdin" if name.lstrip()[:1] in ("{", "[") else ""
        raise Stop(Exit.INPUT, f"cannot read {name!r}: {reason}{hint}") from error
    if len(data) > _MOST_BYTES:
        raise Stop(Exit.INPUT, f"cannot read {name!r}: it has more than {_MOST_BYTES >> 20} MB, the most that is read")
    return data


def read_text(name: str) -> str:
    """The content of a file or of stdin as text, with or without a byte order mark."""
    try:
        return read_bytes(name).decode("utf-8-sig")
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
