"""Writes a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from constrain.cli.status import Exit, Stop


def write_whole(name: str, data: bytes) -> None:
    """Replace a file, or make it.  If that fails, what was there stays, and the command ends.

    What is no ordinary file (a pipe, a terminal) is written to.
    """
    try:
        mode = _mode_of(Path(name))
        if mode is not None and not stat.S_ISREG(mode):
            with open(name, "wb") as file:
                file.write(data)
            return
        _replace(Path(os.path.realpath(name)), data, 0o666 & ~_umask() if mode is None else stat.S_IMODE(mode))
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Stop(Exit.INPUT, f"cannot write {name!r}: {reason}") from error


def _mode_of(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _replace(path: Path, data: bytes, mode: int) -> None:
    # In the same folder, so that putting it in place is one step.
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    # There is no other way to read it; nothing else runs meanwhile on the command line.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
