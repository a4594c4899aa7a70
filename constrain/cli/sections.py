"""Commands whose ``--help`` is in sections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])

_OTHERS = "Options"


class SectionOption(click.Option):
    """An option that belongs to a section of the help; with ``only_once`` to give it twice is an error."""

    def __init__(self, *names: Any, section: str = _OTHERS, only_once: bool = False, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.section = section
        self.only_once = only_once


class SectionCommand(click.Command):
    """A command that shows its options in sections, in the order in which these first occur."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            if not ctx.resilient_parsing:
                self._check_once(ctx, args)
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            # Without it, the message would point to the help of the whole program.
            error.ctx = error.ctx or ctx
            raise

    def _check_once(self, ctx: click.Context, args: list[str]) -> None:
        """Of an option that is there twice click takes the last value, and says nothing of the others."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for parameter in given:
            if isinstance(parameter, SectionOption) and parameter.only_once and given.count(parameter) > 1:
                raise click.UsageError(f"{max(parameter.opts, key=len)} is there twice")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            # Arguments are explained in the text.
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", _OTHERS), []).append(record)
        # What every command has comes last.
        for name in sorted(sections, key=lambda name: name == _OTHERS):
            with formatter.section(name):
                formatter.write_dl(sections[name])


def option(*names: str, section: str = _OTHERS, **settings: Any) -> Callable[[_F], _F]:
    """Like :func:`click.option`, in a section of the help."""
    return click.option(*names, cls=SectionOption, section=section, **settings)
