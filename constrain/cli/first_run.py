"""What is said while the jitted code is compiled, which happens once per machine and takes a while.

Afterwards numba finds the machine code in its cache: in the package's ``__pycache__`` folders, or where
those cannot be written in the user's cache folder, or in ``NUMBA_CACHE_DIR``.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import click

from constrain.kernel_cache import cache_folder

_MESSAGE = "compiling kernels for this machine (first run only, about 30 s) ..."
_MESSAGE_NO_CACHE = (
    "compiling kernels (about 30 s, on every run: no cache folder can be written; NUMBA_CACHE_DIR can name one) ..."
)


@functools.cache
def announce_compilation() -> None:
    """Have one line printed to stderr as soon as numba starts to compile; nothing if it never does.

    Call it before anything that imports jitted code.
    """
    numba: Any = importlib.import_module("numba")
    event: Any = importlib.import_module("numba.core.event")
    message = _MESSAGE
    if not _cache_is_writable():
        # numba refuses cached functions outright then, so give it a folder for this run.
        folder = tempfile.mkdtemp(prefix="constrain-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        numba.config.CACHE_DIR = folder
        message = _MESSAGE_NO_CACHE

    class FirstCompilation(event.Listener):  # type: ignore[misc, unused-ignore]
        said = False

        def on_start(self, _: object) -> None:
            if not self.said:
                self.said = True
                click.echo(f"constrain: {message}", err=True)

        def on_end(self, _: object) -> None: ...

    event.register("numba:compile", FirstCompilation())


def _cache_is_writable() -> bool:
    """Whether numba finds a folder for the machine code of this package's kernels."""
    return cache_folder(Path(__file__).parents[1] / "engine") is not None
