"""The types of arguments that are text: names of files, which shells complete, and text itself.

Bytes of the command line that are not in the encoding of the locale reach Python as lone surrogates, which no text has.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import click
from click.shell_completion import CompletionItem


class Text(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Text that UTF-8 can write."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value)
        with contextlib.suppress(UnicodeEncodeError):
            text.encode()
            return text
        try:
            # In a locale of ASCII alone the bytes may be UTF-8 all the same.
            return os.fsencode(text).decode()
        except UnicodeError:
            name = max(param.opts, key=len) if isinstance(param, click.Option) else "TEXT"
            raise click.UsageError(f"{name} is not UTF-8 text", ctx) from None


class FileName(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A file's name as it was given, of any bytes; nothing is looked up before the command asks."""

    name = "file"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


TEXT = Text()
FILE = FileName()
