"""What is said while kernels are compiled, which happens once per machine and takes a while.

It does not happen where the installation brought their machine code along (kernels/library.py).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import os
import subprocess
import sys
from typing import Any

import click

from constrain.cache_folder import writable_cache_folder

_MESSAGE = "compiling kernels for this machine (first run only, about a minute) ..."
# What the second process compiles.  It goes through it from the end, and so comes to the sampler last, which this one
# begins with; tokenizers it compiles as it comes to them.
_KERNELS = (
    *(
        "constrain.sampling.sampler",
        "constrain.engine.compiled_grammar",
        "constrain.engine.masks.batches",
        "constrain.engine.conditions.budget.rule_budget",
    ),
    *("constrain.demo.ngram_kernels", "constrain.tokenizers.models.byte_level_kernels"),
    "constrain.tokenizers.splitting.gpt2",
)
_MESSAGE_NO_CACHE = "compiling kernels (about a minute, on every run: no cache folder can be written) ..."


@functools.cache
def announce_compilation() -> None:
    """Have one line printed to stderr as soon as numba starts to compile; nothing if it never does.

    Call it before anything that imports jitted code.
    """
    library: Any = importlib.import_module("constrain.kernels.library")
    if library.loaded is not None:
        return
    files: Any = importlib.import_module("constrain.kernels.files")
    can_be_kept = bool(os.environ.get("NUMBA_CACHE_DIR")) or writable_cache_folder() is not None

    def announce() -> None:
        click.echo(f"constrain: {_MESSAGE if can_be_kept else _MESSAGE_NO_CACHE}", err=True)
        if can_be_kept:
            _compile_beside()

    files.announcers.append(announce)


def _compile_beside() -> subprocess.Popen[bytes] | None:
    """Compile the kernels outside the engine in a process of its own, then those of the engine from its end.

    This one compiles the engine from its beginning meanwhile.
    Both put what they compile into the same cache, each file at once, and take from it what is there
    already.  So nothing depends on the other process: without it, it only takes longer.
    """
    if (os.cpu_count() or 1) < 2 or not sys.executable:
        return None
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    code = f"from constrain.kernels import jit\njit.defer()\nimport {', '.join(_KERNELS)}\njit.compile_deferred()"
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
