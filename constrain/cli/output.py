"""What commands print: UTF-8 wherever they run, colours only where somebody looks."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, BinaryIO

import click

from constrain.cli.status import Exit, Stop


def paint(text: str, **style: Any) -> str:
    """A text in the colours of :func:`click.style` if stdout is a terminal and NO_COLOR is not set."""
    return click.style(text, **style) if colours_wanted() else text


def colours_wanted() -> bool:
    """Whether stdout is a terminal whose user has not asked for no colours (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def write(text: str) -> None:
    """Write to stdout as UTF-8; what is no text (a lone surrogate) is escaped."""
    try:
        sys.stdout.flush()
        _write_all(sys.stdout.buffer, text.encode("utf-8", "backslashreplace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Stop(Exit.INPUT, f"cannot write the output: {error.strerror}") from error


def _write_all(stream: BinaryIO, data: bytes) -> None:
    """Write to a stream that may be unbuffered (``python -u``), which takes as much at once as it likes."""
    rest = memoryview(data)
    while rest:
        count = stream.write(rest)
        if not count:
            raise BlockingIOError(errno.EAGAIN, "it takes nothing for now")
        rest = rest[count:]
