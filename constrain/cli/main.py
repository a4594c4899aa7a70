"""The command ``constrain``: its subcommands, its exit codes, and one line per error.

Nothing heavy is imported here or at the top of a subcommand's file, so that ``--help`` and usage
errors are instant.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from constrain.cli.bench import bench
from constrain.cli.check import check
from constrain.cli.explain import explain
from constrain.cli.generate import generate
from constrain.cli.mask import mask
from constrain.cli.status import Exit, Stop
from constrain.cli.tokenize import tokenize
from constrain.cli.warmup import warmup
from constrain.errors import ConstrainError
from constrain.grammar.words import printable
from constrain.version import __version__

_SECTIONS = {
    "Text from a model": ("generate",),
    "Text that is there": ("check", "explain", "mask", "tokenize"),
    "This machine": ("warmup", "bench"),
}


class _Group(click.Group):
    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        # The help and the version are printed here.
        try:
            return super().make_context(*arguments, **settings)
        except BrokenPipeError:
            raise Stop(Exit.PIPE) from None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Before click sees it, which would make it exit code 1.
            raise Stop(Exit.PIPE) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, names in _SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(70)) for name in names])


@click.group(
    cls=_Group,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="constrain", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Constrained decoding: text from a language model that always fits a grammar.

    \b
    Exit codes:
      0    done; the output is complete; the text is valid
      1    bad input: a file, a grammar, a schema, a model; the text is not valid
      2    bad usage of the command line
      3    --num-tokens is too little for a complete output
      130  interrupted
      141  whoever read the output closed it
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        raise Stop(Exit.USAGE)


cli.add_command(bench)
cli.add_command(check)
cli.add_command(explain)
cli.add_command(generate)
cli.add_command(mask)
cli.add_command(tokenize)
cli.add_command(warmup)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (``sys.argv`` by default) and return its exit code.

    What a user's input can cause ends as one line on stderr.  Anything else is a defect, and raises.
    """
    if sys.stdout is None:
        _complain("there is no standard output to write to")
        return int(Exit.INPUT)
    status = _run(arguments)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            # It has been said, or there is nobody to tell.
            _forget_output()
    return status


def _run(arguments: Sequence[str] | None) -> int:
    try:
        status = cli.main(arguments, prog_name="constrain", standalone_mode=False)
        sys.stdout.flush()
    except Stop as stop:
        if stop.status == Exit.PIPE:
            _forget_output()
        elif stop.message:
            _complain(stop.message)
        return int(stop.status)
    except click.Abort:
        _complain("interrupted")
        return int(Exit.INTERRUPTED)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "constrain"
        _complain(f"{error.format_message()} (see '{command} --help')")
        return int(Exit.USAGE)
    except click.ClickException as error:
        _complain(error.format_message())
        return int(Exit.INPUT)
    except ConstrainError as error:
        _complain(str(error))
        return int(Exit.INPUT)
    except BrokenPipeError:  # by what click itself prints
        _forget_output()
        return int(Exit.PIPE)
    except OSError as error:
        place = f"{error.filename!r}" if error.filename else "the output"
        _complain(f"cannot write {place}: {error.strerror or error}")
        _forget_output()
        return int(Exit.INPUT)
    return status if isinstance(status, int) else int(Exit.OK)


def _complain(message: str) -> None:
    # Where there is nobody to tell, the exit code has to do.
    with contextlib.suppress(OSError):
        click.echo("constrain: " + printable(" ".join(message.split())), err=True)


def _forget_output() -> None:
    """Point stdout and stderr nowhere, so that the interpreter's last flush does not fail on a closed pipe."""
    with open(os.devnull, "wb") as nowhere:
        for stream in (sys.stdout, sys.stderr):
            # A stream without a file descriptor has no pipe to be broken, nor has one that was closed from the start.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                os.dup2(nowhere.fileno(), stream.fileno())
