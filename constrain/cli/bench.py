"""``constrain bench``: the benchmarks that come with the source."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from constrain.cli.status import Exit, Stop

_ROOT = Path(__file__).resolve().parents[2]


@click.group(
    short_help="Measure, side by side with other engines.", invoke_without_command=True, subcommand_metavar="COMMAND"
)
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure, side by side with other engines.

    Works in a checkout of the source: what measures is not part of the installed package.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        raise Stop(Exit.USAGE)


@bench.command(
    short_help="Masks on JSON Schemas and other grammars.",
    context_settings={"ignore_unknown_options": True},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def mask(arguments: tuple[str, ...]) -> None:
    """Masks on JSON Schemas and other grammars; ``--help`` for its options."""
    _run("maskbench", "mask", arguments)


@bench.command(
    short_help="Masks in grammars of programming languages.",
    context_settings={"ignore_unknown_options": True},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def code(arguments: tuple[str, ...]) -> None:
    """Masks in grammars of programming languages; ``--help`` for its options."""
    _run("code", "code", arguments)


def _run(package: str, name: str, arguments: tuple[str, ...]) -> None:
    """Run the command ``name`` of a package in ``bench/``."""
    if not (_ROOT / "bench" / package).is_dir():
        raise Stop(
            Exit.INPUT,
            "the benchmark is part of the source, not of the installed package: "
            "run it in a checkout, after pip install -e '.[bench]' there",
        )
    sys.path.insert(0, str(_ROOT))
    command: click.Command = getattr(import_module(f"bench.{package}.command"), name)
    command.main(list(arguments), prog_name=f"constrain bench {name}", standalone_mode=False)
