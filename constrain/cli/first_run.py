"""What is said while the jitted code is compiled, which happens once per machine and takes a while.

Afterwards numba finds the machine code in its cache: in the package's ``__pycache__`` folders, or where
those cannot be written in the user's cache folder, or in ``NUMBA_CACHE_DIR``.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from constrain.kernel_cache import cache_folder

_MESSAGE = "compiling kernels for this machine (first run only, about 20 s) ..."
# What the second process compiles.  It goes through it from the end, and so comes to the sampler last, which this one
# begins with; tokenizers it compiles as it comes to them.
_KERNELS = (
    *(
        "constrain.sampling.sampler",
        "constrain.engine.compiled_grammar",
        "constrain.engine.masks.batches",
        "constrain.engine.conditions.budget.budget",
    ),
    *("constrain.demo.ngram_kernels", "constrain.tokenizers.models.byte_level_kernels"),
    "constrain.tokenizers.splitting.gpt2",
)
_MESSAGE_NO_CACHE = (
    "compiling kernels (about 20 s, on every run: no cache folder can be written; NUMBA_CACHE_DIR can name one) ..."
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
                _compile_beside(numba.config.CACHE_DIR)

        def on_end(self, _: object) -> None: ...

    event.register("numba:compile", FirstCompilation())


def _compile_beside(cache: str) -> subprocess.Popen[bytes] | None:
    """Compile the kernels outside the engine in a process of its own, then those of the engine from its end.

    This one compiles the engine from its beginning meanwhile.
    Both put what they compile into the same cache, each file at once, and take from it what is there
    already.  So nothing depends on the other process: without it, it only takes longer.
    """
    if (os.cpu_count() or 1) < 2 or not sys.executable:
        return None
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    if cache:
        environment["NUMBA_CACHE_DIR"] = cache
    code = (
        f"from constrain.engine.storage import jit\njit.defer()\nimport {', '.join(_KERNELS)}\njit.compile_deferred()"
    )
    nothing = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdin=nothing, stdout=nothing, stderr=nothing
        )
        atexit.register(_end, process)
        return process
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a process that is not needed any more."""
    process.terminate()
    process.wait()


def _cache_is_writable() -> bool:
    """Whether numba finds a folder for the machine code of this package's kernels."""
    return cache_folder(Path(__file__).parents[1] / "engine") is not None
