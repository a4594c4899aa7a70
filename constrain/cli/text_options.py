"""The text that a command looks at: an argument, a file, ``--text`` or stdin."""

from __future__ import annotations

import sys

import click

from constrain.cli.grammar_options import grammar_files, read_bytes
from constrain.cli.status import Exit, Stop


def chosen_text(
    file: str | None, text: str | None, file_name: str = "a FILE", text_name: str = "--text"
) -> tuple[str, bytes]:
    """The text that was given, after its name for messages: a file ('-': stdin), the text itself, or else stdin.

    ``file_name`` and ``text_name`` are what the command calls the two, of which one is an option.
    """
    names = sorted((file_name, text_name), key=lambda name: name.startswith("--"))
    if file is not None and text is not None:
        raise click.UsageError(f"{' and '.join(names)} exclude each other")
    if text is not None:
        return text_name, text.encode()
    if file is None:
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError(f"there is no text: give {', '.join(names)}, or text on stdin")
        file = "-"
    if file == "-" and "-" in grammar_files():
        raise click.UsageError("the grammar and the text cannot both come from stdin")
    return "stdin" if file == "-" else file, read_bytes(file)


def as_text(source: str, data: bytes) -> str:
    """Bytes as UTF-8 text, or the command ends."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Stop(Exit.INPUT, f"{source}: not UTF-8 text (byte {error.start})") from error
