"""``constrain tokenize``: the tokens of a text: ids, bytes, and where they come from."""

from __future__ import annotations

import json
from itertools import cycle
from typing import TYPE_CHECKING, Any

import click

from constrain.cli.argument_types import FILE, TEXT
from constrain.cli.first_run import announce_compilation
from constrain.cli.grammar_options import errors_in
from constrain.cli.output import colours_wanted, write
from constrain.cli.sections import SectionCommand, option
from constrain.cli.status import Exit, Stop
from constrain.cli.text_options import as_text, chosen_text
from constrain.cli.tokenizer_options import DEMO, load, tokenizer_option
from constrain.errors import ConstrainError

if TYPE_CHECKING:
    from constrain.tokenizers.base import Encoding, Tokenizer

_COLOURS = ("blue", "magenta", "cyan", "green", "yellow")
_LINES_AT_ONCE = 1000


@click.command(cls=SectionCommand, short_help="Show the tokens of a text.")
@click.argument("text", required=False, type=TEXT)
@option("--file", "-f", section="Text", metavar="FILE", type=FILE, help="The file that the text is in ('-': stdin).")
@tokenizer_option
@option("--special", section="Tokens", is_flag=True, help="With the special tokens that a model expects around a text.")
@option(
    "--read",
    "read",
    section="Tokens",
    multiple=True,
    metavar="all|none|TOKEN",
    type=TEXT,
    help="Which special tokens are read where TEXT spells them; may be given several times. The others are text.",
)
@option(
    "--decode", section="Text", is_flag=True, help="The other way: TEXT is ids, between blanks, commas or brackets."
)
@option("--ids", "only_ids", section="Output", is_flag=True, help="Only the ids, on one line.")
@option("--json", "as_json", section="Output", is_flag=True, help="The answer as one line of JSON.")
def tokenize(
    text: str | None,
    file: str | None,
    tokenizer: str | None,
    special: bool,
    read: tuple[str, ...],
    decode: bool,
    only_ids: bool,
    as_json: bool,
) -> None:
    """Show the tokens of TEXT: their ids, which characters they cover, their bytes and their text.

    Without TEXT, that of --file or of stdin is taken.
    """
    if only_ids and (as_json or decode):
        raise click.UsageError("--ids goes with neither --json nor --decode")
    if decode and (special or read):
        raise click.UsageError("--special and --read say what is made of text: they do not go with --decode")
    source, data = chosen_text(file, text, "--file", "TEXT")
    announce_compilation()
    loaded = load(tokenizer)
    text = as_text(source, data)
    asked = read[0] if read in (("all",), ("none",)) else read or None
    _check_names(loaded, asked)
    with errors_in(source if tokenizer is None else tokenizer):
        if decode:
            _decode(loaded, _parse_ids(source, text), as_json)
            return
        encoding = loaded.encode(text, add_special_tokens=special, special=asked)
    if only_ids:
        write(" ".join(map(str, encoding.ids)) + "\n")
    elif as_json:
        write(json.dumps(_as_json(loaded, encoding, tokenizer or DEMO), ensure_ascii=False) + "\n")
    else:
        _show(loaded, encoding)
        click.echo(f"constrain: {_summary(text, len(data), len(encoding.ids))}", err=True)


def _check_names(tokenizer: Tokenizer, asked: Any) -> None:
    try:
        tokenizer.encode("", special=asked)
    except ConstrainError as error:
        raise click.UsageError(f"--read: {error}") from error


def _parse_ids(source: str, text: str) -> list[int]:
    words = text.replace(",", " ").replace("[", " ").replace("]", " ").split()
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) < 10):
            raise Stop(Exit.INPUT, f"{source}: {word[:40]!r} is not a token id")
    return list(map(int, words))


def _decode(tokenizer: Tokenizer, ids: list[int], as_json: bool) -> None:
    from constrain.explain.token_text import bytes_as_json

    data = tokenizer.decode_bytes(ids, skip_special_tokens=False)
    if as_json:
        write(json.dumps({"ids": ids, **bytes_as_json(data)}, ensure_ascii=False) + "\n")
    else:
        write(data.decode("utf-8", "replace") + "\n")


def _show(tokenizer: Tokenizer, encoding: Encoding) -> None:
    from constrain.explain.token_text import visible
    from constrain.grammar.words import quote

    colours = cycle(_COLOURS) if colours_wanted() else None
    width = max((len(str(token)) for token in encoding.ids), default=2)
    place = len(str(max((end for _, end in encoding.offsets), default=0)))
    painted: list[str] = []
    rows: list[str] = []
    for token, name, (begin, end) in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True):
        data = tokenizer.token_bytes(token)
        text = f"{name}  (special)" if data is None else f"{quote(data)}  [{data.hex(' ')}]"
        if colours is not None:
            colour = next(colours)
            text = click.style(text, fg=colour)
            piece = name if data is None else visible(data)
            # A background that goes on to the end of the line would be mistaken for blanks.
            line_breaks = (data or b"").count(b"\n")
            painted.append(click.style(piece, fg="black", bg=colour) + "\n" * line_breaks)
        rows.append(f"{token:>{width}}  {begin:>{place}}-{end:<{place}}  {text}\n")
    if painted:
        write("".join(painted) + "\n\n")
    for first in range(0, len(rows), _LINES_AT_ONCE):
        write("".join(rows[first : first + _LINES_AT_ONCE]))


def _as_json(tokenizer: Tokenizer, encoding: Encoding, name: str) -> dict[str, Any]:
    from constrain.explain.token_text import bytes_as_json

    tokens = []
    for token, piece, (begin, end) in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True):
        data = tokenizer.token_bytes(token)
        content = {"special": True} if data is None else bytes_as_json(data)
        tokens.append({"id": token, "token": piece, "begin": begin, "end": end, **content})
    return {"tokenizer": name, "vocabulary": tokenizer.vocab_size, "tokens": tokens}


def _summary(text: str, size: int, count: int) -> str:
    counts = ((count, "token"), (len(text), "character"), (size, "byte"))
    each = f", {size / count:.2f} bytes a token" if count else ""
    return ", ".join(f"{number:,} {name}" + "s" * (number != 1) for number, name in counts) + each
