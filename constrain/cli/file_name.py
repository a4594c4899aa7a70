"""The type of options that name files: shells complete them, and nothing is looked up before the command asks."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


class FileName(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A file's name as it was given."""

    name = "file"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


FILE = FileName()
