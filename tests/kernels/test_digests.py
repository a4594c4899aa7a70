"""A kernel must not outlive a change in another file that it depends on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from constrain.kernels import digests

KERNEL = """
from {njit} import njit
from toy.inner.layout import SLOT
from toy import names

@njit("int64()"{cache})
def slot():
    return SLOT + names.MORE
"""


@pytest.fixture
def toy(tmp_path):
    """A package whose kernel reads constants of other files, one of them through a third."""
    package = tmp_path / "toy"
    (package / "inner").mkdir(parents=True)
    for folder in (package, package / "inner"):
        (folder / "__init__.py").write_text("")
    (package / "kernel.py").write_text(KERNEL.format(njit="constrain.kernels.jit", cache=""))
    (package / "names.py").write_text("MORE = 0\n")
    (package / "inner" / "layout.py").write_text("from toy.inner.sizes import (\n    ONE,\n)\nSLOT = ONE\n")
    (package / "inner" / "sizes.py").write_text("ONE = 1\n")
    return package


def run(package, cache, **environment):
    code = "from toy.kernel import slot; print(slot(), sum(slot.stats.cache_hits.values()))"
    path = os.pathsep.join([str(package.parent), *(path for path in sys.path if path)])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "CONSTRAIN_KERNELS": "jit",
        **environment,
    }
    environment.pop("NUMBA_CACHE_DIR", None)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return tuple(int(word) for word in done.stdout.split())


@pytest.mark.parametrize("named", [False, True], ids=["beside the package", "NUMBA_CACHE_DIR"])
@pytest.mark.parametrize(("file", "text"), [("inner/sizes.py", "ONE = 2\n"), ("names.py", "MORE = 1\n")])
def test_a_change_in_another_file_reaches_the_kernel(toy, tmp_path, named, file, text):
    cache = tmp_path / "cache" if named else None
    assert run(toy, cache) == (1, 0)
    assert run(toy, cache) == (1, 1)
    (toy / file).write_text(text)
    assert run(toy, cache) == (2, 0)
    # What the kernel does not import costs no compilation.
    (toy / "other.py").write_text("OTHER = 1\n")
    assert run(toy, cache) == (2, 1)


def test_a_kernel_that_moves_in_its_file_leaves_no_file_behind(toy, tmp_path):
    cache = tmp_path / "cache"
    assert run(toy, cache) == (1, 0)
    before = sorted(path.suffix for path in cache.rglob("*.nb[ic]"))
    (toy / "kernel.py").write_text("# one line more\n" + (toy / "kernel.py").read_text())
    assert run(toy, cache) == (1, 0)
    assert sorted(path.suffix for path in cache.rglob("*.nb[ic]")) == before


def test_how_kernels_are_compiled_is_part_of_the_digest(toy, tmp_path, monkeypatch):
    digest = digests._digest.__wrapped__
    file = (str(toy / "kernel.py"),)
    before = digest(file)
    assert digest(file) == before
    changed = tmp_path / "compiler.py"
    changed.write_bytes(digests._COMPILER[0].read_bytes() + b"# with other options\n")
    monkeypatch.setattr(digests, "_COMPILER", (changed, *digests._COMPILER[1:]))
    assert digest(file) != before


def test_a_tree_is_known_by_all_of_its_kernels(toy):
    digest = digests.tree_digest.__wrapped__
    before = digest(toy)
    (toy / "inner" / "more.py").write_text("# not one of them\n")
    digests._digest.cache_clear()
    assert digest(toy) == before
    (toy / "inner" / "more.py").write_text("# @njit\n")
    assert digest(toy) != before


def test_without_it_numba_returns_the_old_value(toy):
    # The reason for all this; if it fails, numba has learned to look, and the module can go.
    (toy / "kernel.py").write_text(KERNEL.format(njit="numba", cache=", cache=True"))
    assert run(toy, None) == (1, 0)
    (toy / "inner" / "sizes.py").write_text("ONE = 2\n")
    assert run(toy, None) == (1, 1)
