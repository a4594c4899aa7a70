"""Libraries of machine code: kernels do what the functions do, take what they say, and nothing else is taken."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from constrain.kernels import library
from constrain.kernels.build import build_native
from constrain.kernels.native import native_name
from constrain.kernels.signatures import Kind, parse_signature, read_signature

KERNELS = """
import numpy as np
from constrain.kernels.jit import ENTRY, INNER, call_by_address, njit
from toy.layout import SLOT

@njit("int64(int64)", **INNER)
def inner(number):
    return number + SLOT

@njit("int64(int64)", **ENTRY)
def number(number):
    return inner(number)

@njit("float64(float64, boolean)", **ENTRY)
def weight(weight, flag):
    return -weight if flag else weight

@njit("boolean(uint64)", **ENTRY)
def is_large(number):
    return number > 1 << 63

@njit("void(uint8[::1], int32[:, ::1], int64[::1])", **ENTRY)
def fill(data, table, out):
    out[0] = data.size
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            out[1] += (row + 1) * table[row, column]

@njit("UniTuple(int64, 3)(Array(uint8, 1, 'C', readonly=True))", **ENTRY)
def ends(data):
    return data.size, data[0], data[data.size - 1]

@njit("int32[:, ::1](int64, int64)", **ENTRY)
def table(rows, columns):
    result = np.empty((rows, columns), dtype=np.int32)
    for row in range(rows):
        for column in range(columns):
            result[row, column] = 10 * row + column
    return result

@njit(["int64(float32[::1])", "int64(float64[::1])"], **ENTRY)
def size(values):
    return values.size * values.itemsize

@njit("int64(int64, int64)", **ENTRY)
def quotient(dividend, divisor):
    return dividend // divisor

@njit("int64(int64)", **ENTRY)
def refuses(number):
    if number > 3:
        raise ValueError("too many", 3)
    return number

@njit("int64(int64[::1], int64)", **ENTRY)
def bytes_of(frame, size):
    # frame: 128 words of text, and then two ids in each word
    for i in range(size):
        byte = frame[i // 8] >> (8 * (i % 8)) & 0xFF
        if byte == 0x21:
            return -1
        if byte == 0x3F:
            raise ValueError("a question")
        if i % 2 == 0:
            frame[128 + i // 2] = byte
        else:
            frame[128 + i // 2] |= byte << 32
    return size

@njit("int64(int64)", **INNER)
def called_by_address(number):
    return 2 * number

call_by_address(called_by_address)
"""


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("libraries") / "toy"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "layout.py").write_text("SLOT = 5\n")
    (folder / "kernel.py").write_text(KERNELS)
    return folder


@pytest.fixture(scope="session")
def file(package: Path) -> Path:
    if shutil.which(os.environ.get("CC", "cc")) is None or native_name() is None:
        pytest.skip("no C compiler, or a processor that is not known")
    return build_native(package.parent, package=package)


@pytest.fixture(scope="session")
def kernels(file: Path, package: Path) -> dict[str, Any]:
    found = library.load(file, package)
    assert isinstance(found, library.Library), found
    return {name.rpartition(".")[2]: entry for name, entry in found._kernels.items()}


def test_what_is_in_it(kernels: dict[str, Any]) -> None:
    """Kernels that Python calls, for each of their signatures, and what is called by its address; nothing else."""
    names = {
        "number",
        "weight",
        "is_large",
        "fill",
        "ends",
        "table",
        "size",
        "size#1",
        "quotient",
        "refuses",
        "bytes_of",
    }
    assert set(kernels) == names | {"called_by_address"}
    assert all(address != 0 for _, address, _, _ in kernels.values())
    assert len({address for _, address, _, _ in kernels.values()}) == len(kernels)


def test_numbers(kernels: dict[str, Any]) -> None:
    number, weight, is_large = (kernels[name][0] for name in ("number", "weight", "is_large"))
    assert [number(n) for n in (0, -7, 2**40, np.int32(3), True)] == [5, -2, 2**40 + 5, 8, 6]
    assert (weight(0.25, True), weight(2, False)) == (-0.25, 2.0)
    assert [is_large(n) for n in (1, 2**63, 2**64 - 1)] == [False, False, True]
    for wrong in (1.5, "1", None, 2**63, [1]):
        with pytest.raises((TypeError, OverflowError)):
            number(wrong)
    with pytest.raises(OverflowError):
        is_large(-1)


def test_arrays(kernels: dict[str, Any]) -> None:
    fill = kernels["fill"][0]
    out = np.zeros(2, dtype=np.int64)
    assert fill(np.zeros(7, dtype=np.uint8), np.arange(6, dtype=np.int32).reshape(2, 3), out) is None
    assert out.tolist() == [7, 0 + 1 + 2 + 2 * (3 + 4 + 5)]
    fill(np.zeros(0, dtype=np.uint8), np.zeros((0, 3), dtype=np.int32), out)
    assert out.tolist() == [0, 27]
    assert kernels["ends"][0](np.frombuffer(b"abc", dtype=np.uint8)) == (3, 97, 99)


DATA, TABLE, OUT = np.zeros(7, dtype=np.uint8), np.zeros((2, 3), dtype=np.int32), np.zeros(2, dtype=np.int64)
READ_ONLY = np.frombuffer(bytes(16), dtype=np.int64)


@pytest.mark.parametrize(
    "arguments",
    [
        (DATA, TABLE),
        (DATA, TABLE, OUT, OUT),
        (),
        (DATA.astype(np.int8), TABLE, OUT),
        (DATA.astype(np.bool_), TABLE, OUT),
        (DATA, TABLE.astype(np.int64), OUT),
        (DATA, TABLE.astype(np.uint32), OUT),
        (DATA, TABLE.astype(np.float32), OUT),
        (DATA, TABLE.astype(">i4"), OUT),
        (DATA, TABLE[:, :2], OUT),
        (DATA, np.asfortranarray(TABLE), OUT),
        (DATA, TABLE[0], OUT),
        (DATA[::2], TABLE, OUT),
        (DATA, TABLE, READ_ONLY),
        (DATA, TABLE, np.frombuffer(bytearray(17), dtype=np.uint8)[1:].view(np.int64)),
        (bytes(DATA), TABLE, OUT),
        (memoryview(DATA), TABLE, OUT),
        (DATA.tolist(), TABLE, OUT),
        (None, TABLE, OUT),
    ],
)
def test_wrong_arguments(kernels: dict[str, Any], arguments: tuple[Any, ...]) -> None:
    before = OUT.copy()
    with pytest.raises(TypeError, match=r"toy\.kernel\.fill.* argument"):
        kernels["fill"][0](*arguments)
    assert (before == OUT).all()


def test_arrays_that_kernels_make(kernels: dict[str, Any]) -> None:
    made = kernels["table"][0](3, 2)
    assert made.tolist() == [[0, 1], [10, 11], [20, 21]]
    assert made.dtype == np.int32
    assert made.flags.writeable
    assert kernels["table"][0](0, 2).shape == (0, 2)


def test_exceptions(kernels: dict[str, Any]) -> None:
    assert kernels["quotient"][0](-7, 2) == -4
    with pytest.raises(ZeroDivisionError):
        kernels["quotient"][0](1, 0)
    assert kernels["refuses"][0](3) == 3
    with pytest.raises(ValueError) as caught:
        kernels["refuses"][0](4)
    assert caught.value.args == ("too many", 3)
    with pytest.raises(MemoryError):
        kernels["table"][0](1 << 40, 1 << 10)


def short_texts(file: Path, package: Path, common: bytes, first: bytes, only_ascii: bool = False) -> Any:
    found = library.load(file, package)
    assert isinstance(found, library.Library)
    frame = np.zeros(640, dtype=np.int64)
    text, ids = frame[:128].view(np.uint8), frame[128:].view(np.int32)
    kernel = found._kernels["toy.kernel.bytes_of"][0]
    return found.on_short_texts(kernel, frame, text, ids, common, first, only_ascii, (frame,))


def test_short_texts(file: Path, package: Path) -> None:
    ids_of = short_texts(file, package, b"", b"")
    for text in ("", "a", "The dog.", "é人😀", "\0", "x" * 1024):
        assert ids_of(text) == list(text.encode())

    assert not gc.is_tracked(ids_of("The dog."))

    class Text(str):
        __slots__ = ()

    for other in ("a!", "\ud800", "x" * 1025, "é" * 513, Text("a"), b"a", 1, None):
        assert ids_of(other) is None
    with pytest.raises(ValueError, match="a question"):
        ids_of("why?")
    assert ids_of("still") == list(b"still")
    only_ascii = short_texts(file, package, b"", b"", only_ascii=True)
    assert [only_ascii(text) for text in ("", "ab\x7f", "é", "a😀")] == [[], [97, 98, 127], None, None]


def test_short_texts_with_added_tokens(file: Path, package: Path) -> None:
    ids_of = short_texts(file, package, b"<|e", b"<")
    assert [ids_of(text) is None for text in ("a<|e", "<|end|>", "<|", "a<|", "e|<", "<<|<|e")] == [
        True,
        True,
        False,
        False,
        False,
        True,
    ]
    ids_of = short_texts(file, package, b"", "é<\n".encode())
    assert [ids_of(text) is None for text in ("", "plain", "a\n", "è", "人", "<")] == [
        False,
        False,
        True,
        True,  # begins with the same byte
        False,
        True,
    ]


def test_arrays_of_short_texts_live_as_long(file: Path, package: Path) -> None:
    found = library.load(file, package)
    assert isinstance(found, library.Library)
    frame, kept = np.zeros(640, dtype=np.int64), object()
    text, ids = frame[:128].view(np.uint8), frame[128:].view(np.int32)
    kernel = found._kernels["toy.kernel.bytes_of"][0]
    before = [sys.getrefcount(each) for each in (frame, text, ids, kept)]
    ids_of = found.on_short_texts(kernel, frame, text, ids, b"", b"", False, kept)
    assert [sys.getrefcount(each) for each in (frame, text, ids, kept)] == [count + 1 for count in before]
    for _ in range(1000):
        assert ids_of("as") == [97, 115]
    del ids_of
    assert [sys.getrefcount(each) for each in (frame, text, ids, kept)] == before
    for wrong in (
        (found._kernels["toy.kernel.number"][0], frame, text, ids, b"", b"", False, None),
        (len, frame, text, ids, b"", b"", False, None),
        (kernel, frame.view(np.int32), text, ids, b"", b"", False, None),
        (kernel, frame, text[1:], ids, b"", b"", False, None),
        (kernel, frame, text, ids[1:], b"", b"", False, None),
        (kernel, frame, text, ids, "", b"", False, None),
        (kernel, frame, text, ids),
    ):
        with pytest.raises(TypeError):
            found.on_short_texts(*wrong)


def test_signatures(file: Path, package: Path, kernels: dict[str, Any]) -> None:
    assert kernels["ends"][2:] == ("B1r", "qqq")
    assert kernels["fill"][2:] == ("B1wi2wq1w", "")
    assert kernels["weight"][2:] == ("d0w?0w", "d")
    assert [kernels[name][2] for name in ("size", "size#1")] == ["f1w", "d1w"]
    parsed = parse_signature(("data", "table", "out"), "B1ri2wq1w", "")
    assert parsed.arguments["data"] == Kind("uint8", 1, False)
    assert parsed.code == "B1ri2wq1w"
    read = read_signature("int64(uint8[::1], int64, int32[:, ::1])")
    assert (read.code, read.result) == ("B1wq0wi2w", "q")
    assert [kind.words for kind in read.arguments.values()] == [2, 1, 3]


def test_overloads(file: Path, package: Path) -> None:
    found = library.load(file, package)
    assert isinstance(found, library.Library)

    def size(values: Any) -> None: ...

    size.__module__, size.__qualname__ = "toy.kernel", "size"
    kernel = found.callable_of(size, 2)
    assert kernel(np.zeros(3, dtype=np.float32)) == 12
    assert kernel(np.zeros(3)) == 24
    with pytest.raises(TypeError):
        kernel(np.zeros(3, dtype=np.int64))
    assert found.address_of(kernel) == found._kernels["toy.kernel.size"][1]


def test_other_threads_run_meanwhile(kernels: dict[str, Any]) -> None:
    counted = []
    data = np.zeros((3000, 3000), dtype=np.int32)
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            counted.append(1)

    thread = threading.Thread(target=count)
    thread.start()
    before = len(counted)
    for _ in range(20):
        kernels["fill"][0](DATA, data, OUT)
    done.set()
    thread.join()
    assert len(counted) > before + 20


def test_other_sources(file: Path, package: Path, tmp_path: Path) -> None:
    changed = tmp_path / "toy"
    shutil.copytree(package, changed)
    assert isinstance(library.load(file, changed), library.Library)
    (changed / "layout.py").write_text("SLOT = 6\n")
    assert library.load(file, changed) == "made from other sources"
    (changed / "layout.py").unlink()
    assert "No such file" in str(library.load(file, changed))


@pytest.mark.parametrize("content", [b"", b"no library\n", b"\x7fELF"])
def test_files_that_are_no_libraries(file: Path, package: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / file.name
    path.write_bytes(content)
    assert isinstance(library.load(path, package), str)


def test_a_library_under_another_name(file: Path, package: Path, tmp_path: Path) -> None:
    path = tmp_path / "another.abi3.so"
    shutil.copy(file, path)
    assert "PyInit_another" in str(library.load(path, package))


def test_a_library_that_does_not_fit_is_named_and_kernels_are_compiled(tmp_path: Path, file: Path) -> None:
    # It is looked for under this name, but has the kernels of another package.
    shutil.copy(file, tmp_path / file.name)
    code = "import constrain.kernels.library as l; print(l.loaded and l.loaded.name)"
    environment = {**os.environ, "CONSTRAIN_CACHE_DIR": str(tmp_path), "CONSTRAIN_KERNELS": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    if done.stdout.strip() == "None":  # and not one that was installed
        assert done.stderr.count("\n") == 1
        assert "cannot be used" in done.stderr
        assert file.name in done.stderr
    assert done.stdout.strip() != native_name()
    environment["CONSTRAIN_KERNELS"] = "jit"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("None", "")
