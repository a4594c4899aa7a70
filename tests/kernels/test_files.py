"""The cache of compiled kernels gives right results, whatever has happened to its files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from numba import njit

pytestmark = pytest.mark.skipif(not hasattr(njit(lambda: None), "overloads"), reason="numba compiles nothing")

KERNEL = """
from constrain.kernels.jit import njit
from toy.layout import SLOT

@njit(["int64()"])
def slot():
    return SLOT

@njit("int64(int64)")
def next_to(number):
    return SLOT + number

@njit(["int64(int64)", "float64(float64)"])
def twice(number):
    return 2 * number
"""
RUN = """
import sys
{before}
from toy.kernel import next_to, slot, twice
kernels = slot, next_to, twice
hits = sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)
print(slot(), next_to(1), twice(3), twice(0.25), hits)
"""
COMPILED, LOADED = "1 2 6 0.5 0", "1 2 6 0.5 4"


class Toy:
    """A package with a few kernels, and its cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.package = folder / "toy"
        self.package.mkdir()
        (self.package / "kernel.py").write_text(KERNEL)
        (self.package / "layout.py").write_text("SLOT = 1\n")
        (self.package / "__init__.py").write_text("")

    def start(self, before: str = "", **environment: str) -> subprocess.Popen[str]:
        path = os.pathsep.join([str(self.folder), *(path for path in sys.path if path)])
        compiler = {"CONSTRAIN_KERNELS": "jit", "NUMBA_CACHE_DIR": str(self.cache)}
        cache = {**compiler, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path}
        return subprocess.Popen(
            [sys.executable, "-c", RUN.format(before=before)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **cache, **environment},
        )

    def run(self, before: str = "", **environment: str) -> str:
        """What a new process prints, which has to end well."""
        process = self.start(before, **environment)
        out, self.errors = process.communicate()
        assert process.returncode == 0, self.errors
        return out.strip()

    def files(self, pattern: str = "*.nb[ic]") -> list[Path]:
        return sorted(file for file in self.cache.rglob(pattern))


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


def test_kernels_are_kept(toy: Toy) -> None:
    assert toy.run() == COMPILED
    assert toy.errors.count("\n") == 1
    assert "compiling kernels" in toy.errors
    assert toy.run() == LOADED
    assert len(toy.files()) == 7
    assert not toy.errors


def _flip(place: float) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        at = int(place * (len(data) - 1))
        return data[:at] + bytes((data[at] ^ 0x10,)) + data[at + 1 :]

    return change


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "half": lambda data: data[: len(data) // 2],
    "without its end": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "zeros in the middle": lambda data: data[: len(data) // 3].ljust(len(data), b"\0"),
    "text": lambda data: b"no pickle\n" * 10,
    "first byte": _flip(0),
    "early byte": _flip(0.2),
    "middle byte": _flip(0.5),
    "last byte": _flip(1),
}


@pytest.mark.parametrize("pattern", ["*.nbi", "*.nbc"])
def test_damaged_files_are_compiled_anew_and_replaced(toy: Toy, pattern: str) -> None:
    assert toy.run() == COMPILED
    whole = {file: file.read_bytes() for file in toy.files()}
    damages = iter(DAMAGES.items())
    while some := list(zip(toy.files(pattern), damages, strict=False)):
        for file, (_, change) in some:
            file.write_bytes(change(whole[file]))
        out = toy.run().split()
        assert out[:4] == COMPILED.split()[:4], some
        # The others are loaded; of a kernel with two signatures, both are gone with its index.
        assert int(out[4]) < 4, some
        assert toy.run() == LOADED, some
        assert len(toy.files("*")) == len(whole) + 1  # the folder


def test_code_of_another_kernel_is_not_taken(toy: Toy) -> None:
    assert toy.run() == COMPILED
    for pattern in ("*.nbi", "*.nbc"):
        files = toy.files(pattern)
        contents = [file.read_bytes() for file in files]
        for file, content in zip(files, contents[1:] + contents[:1], strict=True):
            file.write_bytes(content)
        assert toy.run() == COMPILED
    assert toy.run() == LOADED


def test_old_code_that_cannot_be_removed_is_not_taken(toy: Toy) -> None:
    assert toy.run() == COMPILED
    old = {file: file.read_bytes() for file in toy.files()}
    (toy.package / "layout.py").write_text("SLOT = 7\n")
    assert toy.run() == "7 8 6 0.5 0"
    for file, content in old.items():
        file.write_bytes(content)
    assert toy.run() == "7 8 6 0.5 0"
    assert toy.run() == "7 8 6 0.5 4"


def test_what_cannot_be_read_or_replaced(toy: Toy) -> None:
    # Folders in the place of files: so root cannot read and replace them either.
    assert toy.run() == COMPILED
    for file in toy.files():
        file.unlink()
        (file / "inside").mkdir(parents=True)
    assert toy.run() == COMPILED
    assert "not kept" in toy.errors


def test_a_full_disk(toy: Toy) -> None:
    # A limit for files is met in the middle of a write, as the end of a disk is.
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))"
    assert toy.run(limited) == COMPILED
    assert "not kept" in toy.errors
    assert not toy.files("*.nbc*")
    assert toy.run() == COMPILED
    assert toy.run() == LOADED


def test_no_folder_at_all(toy: Toy) -> None:
    # A file in the place of each folder that numba thinks of.
    (toy.package / "__pycache__").write_text("")
    (toy.folder / "file").write_text("")
    nowhere = str(toy.folder / "file" / "folder")
    assert toy.run(NUMBA_CACHE_DIR=nowhere, HOME=nowhere, XDG_CACHE_HOME=nowhere, TMPDIR=nowhere) == COMPILED
    assert toy.errors.count("CONSTRAIN_CACHE_DIR") == 1


def test_first_starts_at_once(toy: Toy) -> None:
    running = [toy.start() for _ in range(3)]
    hits = []
    for process in running:
        out, errors = process.communicate()
        assert process.returncode == 0, errors
        hits.append(int(out.split()[4]))
        assert out.split()[:4] == COMPILED.split()[:4]
    # The work was done once, by whoever came first to each kernel.
    assert sum(hits) == 4 * 2
    assert toy.run() == LOADED
    assert not toy.files("*.tmp.*")
    assert not toy.files("*.lock")


def test_leftovers_go(toy: Toy) -> None:
    assert toy.run() == COMPILED
    (kept,) = toy.files("*slot*.nbi")
    old, young = (kept.with_name(f"{kept.name}.tmp.{number}") for number in range(2))
    for file in (old, young):
        shutil.copy(kept, file)
    os.utime(old, (1000, 1000))
    (toy.package / "layout.py").write_text("SLOT = 2\n")
    toy.run()
    assert not old.exists()
    assert young.exists()


def test_a_folder_that_cannot_be_written_is_read(toy: Toy) -> None:
    # As in an image that was warmed up by another user.
    beside = {"NUMBA_CACHE_DIR": "", "CONSTRAIN_CACHE_DIR": ""}
    assert toy.run(**beside) == COMPILED
    folder = toy.package / "__pycache__"
    locked = f"""
import os, tempfile
real_open = open
def refuse(path, *args, **options):
    if str(path).startswith({str(folder)!r}) and "w" in str(args):
        raise PermissionError(13, "read-only", str(path))
    return real_open(path, *args, **options)
import builtins
builtins.open = refuse
"""
    assert toy.run(locked, HOME=str(toy.folder / "home"), **beside) == LOADED
    (toy.package / "layout.py").write_text("SLOT = 2\n")
    home = str(toy.folder / "home")
    assert toy.run(locked, HOME=home, XDG_CACHE_HOME="", **beside).split()[:2] == ["2", "3"]
    assert toy.run(locked, HOME=home, XDG_CACHE_HOME="", **beside).split()[4] == "4"


def test_times_of_files_do_not_matter(toy: Toy) -> None:
    assert toy.run() == COMPILED
    for file in toy.package.glob("*.py"):
        os.utime(file, (1000, 1000))
    assert toy.run() == LOADED
