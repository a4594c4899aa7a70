"""A kernel must not outlive a change in another file that it depends on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from constrain import kernel_cache

KERNEL = """
from numba import njit
from toy.layout import SLOT

@njit("int64()", cache=True)
def slot():
    return SLOT
"""


@pytest.fixture
def toy(tmp_path):
    """A package whose kernel reads a constant of another file."""
    package = tmp_path / "toy"
    package.mkdir()
    (package / "kernel.py").write_text(KERNEL)
    (package / "__init__.py").write_text(
        "from constrain.kernel_cache import drop_stale_kernels\ndrop_stale_kernels(__path__[0])\n"
    )
    return package


def run(package, cache, **environment):
    code = "from toy.kernel import slot; print(slot(), sum(slot.stats.cache_hits.values()))"
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    environment.pop("NUMBA_CACHE_DIR", None)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return tuple(int(word) for word in done.stdout.split())


@pytest.mark.parametrize("named", [False, True], ids=["beside the package", "NUMBA_CACHE_DIR"])
def test_a_change_in_another_file_reaches_the_kernel(toy, tmp_path, named):
    cache = tmp_path / "cache" if named else None
    (toy / "layout.py").write_text("SLOT = 1\n")
    assert run(toy, cache) == (1, 0)
    assert run(toy, cache) == (1, 1)
    (toy / "layout.py").write_text("SLOT = 2\n")
    assert run(toy, cache) == (2, 0)
    # What has nothing to do with kernels costs no compilation.
    (toy / "other.py").write_text("OTHER = 1\n")
    assert run(toy, cache) == (2, 1)


def test_how_kernels_are_compiled_is_part_of_the_stamp(toy, tmp_path, monkeypatch):
    digest = kernel_cache.kernel_digest.__wrapped__
    before = digest(str(toy))
    assert digest(str(toy)) == before
    compiler = tmp_path / "kernel_compiler.py"
    compiler.write_bytes(kernel_cache._COMPILER.read_bytes() + b"# with other options\n")
    monkeypatch.setattr(kernel_cache, "_COMPILER", compiler)
    assert digest(str(toy)) != before


def test_without_it_numba_returns_the_old_value(toy):
    # The reason for all this; if it fails, numba has learned to look, and the module can go.
    (toy / "__init__.py").write_text("")
    (toy / "layout.py").write_text("SLOT = 1\n")
    assert run(toy, None) == (1, 0)
    (toy / "layout.py").write_text("SLOT = 2\n")
    assert run(toy, None) == (1, 1)
