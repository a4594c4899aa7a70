"""What is kept on disk about a vocabulary: the same with it and without, whatever has happened to the files."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

import constrain
from constrain import cache_folder
from constrain.engine.storage import disk_cache
from constrain.engine.vocabulary import files as vocabulary_files
from constrain.engine.vocabulary.trie import TokenTrie
from constrain.grammar.ir import GrammarBuilder
from constrain.grammar.languages.regular import byte_range, concat, literal, repeat

ARRAYS = {
    "numbers": np.arange(1000, dtype=np.int64),
    "none": np.zeros(0, np.int32),
    "bytes": np.frombuffer(b"abc", np.uint8),
}
TOKENS = [bytes((byte,)) for byte in range(256)]
TOKENS += [bytes((a, b)) for a in range(32, 127) for b in range(32, 127)] + [b"", b"aa", b"</s>"]


def same(left: dict[str, np.ndarray] | None, right: dict[str, np.ndarray]) -> bool:
    return left is not None and all(
        left[name].dtype == array.dtype and np.array_equal(left[name], array) for name, array in right.items()
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for the files about vocabularies."""
    monkeypatch.setattr(cache_folder, "cache_folders", lambda: [tmp_path])
    return tmp_path


def masks(vocabulary: constrain.Vocabulary) -> list[bytes]:
    builder = GrammarBuilder()
    text = builder.lexeme(concat(literal('"'), repeat(byte_range(0x23, 0x7E)), literal('"')))
    comma = builder.lexeme(literal(","))
    compiled = constrain.CompiledGrammar(
        builder.finish(builder.sequence((text, builder.star(builder.sequence((comma, text)))))), vocabulary
    )
    matcher = constrain.Matcher(compiled)
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    result = []
    for byte in b'"abc","d"':
        matcher.fill_next_token_bitmask(mask)
        result.append(mask.tobytes())
        assert matcher.accept_token(byte)
    return result


def test_arrays_come_back(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "file"
    assert disk_cache.read(path) is None
    assert disk_cache.write(path, ARRAYS)
    assert same(disk_cache.read(path), ARRAYS)
    assert [file.name for file in path.parent.iterdir()] == ["file"]


def test_a_torn_file_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert disk_cache.write(path, ARRAYS)
    whole = path.read_bytes()
    for size in (0, 1, 10, whole.index(b"\n"), whole.index(b"\n") + 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert disk_cache.read(path) is None
    path.write_bytes(whole + b"\0")
    assert disk_cache.read(path) is None


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert disk_cache.write(path, ARRAYS)
    whole = bytearray(path.read_bytes())
    for place in [*range(120), *range(whole.index(b"\n") + 1, len(whole), 97), len(whole) - 1]:
        changed = whole[:]
        changed[place] ^= 0x11
        path.write_bytes(changed)
        assert disk_cache.read(path) is None


@pytest.mark.parametrize(
    "arrays",
    [
        [["a", "<i8", -1]],
        [["a", "<i8", 1 << 60]],
        [["a", "O", 1]],
        [["a", "V8", 1]],
        [["a", "nonsense", 1]],
        [["a", "<i8", "x"]],
        [["a", "<i8"]],
        [5],
        None,
        5,
        b"[" * 60_000,
        b"",
    ],
)
def test_hostile_texts(tmp_path: Path, arrays: object) -> None:
    path = tmp_path / "file"
    text = arrays if isinstance(arrays, bytes) else json.dumps({"head": {"name": "file"}, "arrays": arrays}).encode()
    for size in (len(text), 1 << 60):
        for data in (b"", bytes(8)):
            body = size.to_bytes(8, "little") + text + data
            path.write_bytes(b"constrain arrays 4\n" + zlib.crc32(body).to_bytes(4, "little") + body)
            assert disk_cache.read(path) is None


def test_a_file_under_another_name_is_no_file(tmp_path: Path) -> None:
    """As of a copy that went wrong: it would be the trie of another vocabulary."""
    path, other = tmp_path / "one.arrays", tmp_path / "two.arrays"
    assert disk_cache.write(path, ARRAYS)
    other.write_bytes(path.read_bytes())
    assert disk_cache.read(other) is None
    assert same(disk_cache.read(path), ARRAYS)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    # A file in place of the folder: also root cannot write there.
    (tmp_path / "place").write_text("")
    path = tmp_path / "place" / "file"
    assert not disk_cache.write(path, ARRAYS)
    assert disk_cache.read(path) is None


def test_readers_see_one_version_or_the_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    versions = [{"a": np.full(20_000, value, np.int64)} for value in range(2)]
    disk_cache.write(path, versions[0])
    done = threading.Event()

    def keep_writing(version: int) -> None:
        while not done.is_set():
            assert disk_cache.write(path, versions[version])

    threads = [threading.Thread(target=keep_writing, args=(version,)) for version in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            read = disk_cache.read(path)
            assert any(same(read, version) for version in versions)
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_what_was_not_used_for_longest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / disk_cache.name_of(str(index)) for index in range(20)]
    for index, path in enumerate(paths):
        assert disk_cache.write(path, ARRAYS)
        os.utime(path, (1000 + index, 1000 + index))
    disk_cache.read(paths[4])  # which makes it a recent one
    (tmp_path / "another's file").write_text("x" * 100_000)
    monkeypatch.setenv(disk_cache.LIMIT_VARIABLE, str(16 * paths[0].stat().st_size))
    assert disk_cache.write(paths[19], ARRAYS)
    left = {path for path in paths if path.exists()}
    assert left == {paths[4], *paths[5:]}
    assert (tmp_path / "another's file").exists()


def test_one_file_has_a_limit_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / disk_cache.name_of("file")
    size = sum(array.nbytes for array in ARRAYS.values())
    monkeypatch.setenv(disk_cache.LIMIT_VARIABLE, str(4 * size - 1))
    assert not disk_cache.write(path, ARRAYS)
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv(disk_cache.LIMIT_VARIABLE, str(4 * size))
    assert disk_cache.write(path, ARRAYS)
    monkeypatch.setenv(disk_cache.LIMIT_VARIABLE, "0")
    assert not disk_cache.write(path, ARRAYS)
    monkeypatch.setenv(disk_cache.LIMIT_VARIABLE, "1 GB")
    with pytest.raises(constrain.ConstrainError, match="CONSTRAIN_CACHE_LIMIT_BYTES must be a number of bytes"):
        disk_cache.write(path, ARRAYS)


def test_a_full_disk(tmp_path: Path) -> None:
    # A limit for files is met in the middle of a write, as the end of a disk is.
    resource = pytest.importorskip("resource")
    path = tmp_path / disk_cache.name_of("file")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        assert not disk_cache.write(path, ARRAYS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())
    assert disk_cache.write(path, ARRAYS)


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / disk_cache.name_of("file")
    assert disk_cache.write(path, {"a": np.zeros(3, np.int32)})
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        disk_cache.write(path, ARRAYS)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert same(disk_cache.read(path), {"a": np.zeros(3, np.int32)})


def test_what_ended_processes_left_goes(tmp_path: Path) -> None:
    left, young = tmp_path / "tmpabc.arrays.tmp", tmp_path / "tmpdef.arrays.tmp"
    for file in (left, young):
        file.write_bytes(b"constrain arrays")
    os.utime(left, (1000, 1000))
    assert disk_cache.write(tmp_path / disk_cache.name_of("file"), ARRAYS)
    assert not left.exists()
    assert young.exists()


def test_files_of_something_else_are_not_taken(folder: Path) -> None:
    expected = masks(constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1]))
    gc.collect()
    for file in folder.iterdir():
        arrays = disk_cache.read(file)
        assert arrays is not None
        for changed in (ARRAYS, {name: np.zeros(1 << 20, array.dtype) for name, array in arrays.items()}):
            if changed is ARRAYS or file.name.startswith("masks"):
                assert disk_cache.write(file, changed)
                assert masks(constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])) == expected
        assert disk_cache.write(file, arrays)


def test_folders_in_the_place_of_files(folder: Path) -> None:
    expected = masks(constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1]))
    gc.collect()
    for file in list(folder.iterdir()):
        file.unlink()
        (file / "inside").mkdir(parents=True)
    assert masks(constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])) == expected
    gc.collect()


def test_long_tokens_are_not_kept_on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A file may take a fourth of this, and the trie takes some thirty times the bytes of the tokens.
    monkeypatch.setenv(disk_cache.LIMIT_VARIABLE, str(8 << 20))
    long = [b"%d" % index + b"x" * 2000 for index in range(100)]
    constrain.Vocabulary([*TOKENS[:-1], *long, b"</s>"], eos_ids=[len(TOKENS) + 99])
    assert not list(folder.iterdir())


def test_the_same_trie_and_masks_from_disk(folder: Path) -> None:
    first = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])
    expected = masks(first)
    del first
    gc.collect()
    assert sorted(file.name.split("-")[0] for file in folder.iterdir()) == ["masks", "trie"]
    second = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])
    built = TokenTrie(second.data, second.starts, np.arange(len(TOKENS) - 1))
    assert same(second.trie.arrays(), built.arrays())
    assert second.trie.depth == built.depth
    assert len(second.shared) > 0
    assert masks(second) == expected


def test_another_vocabulary_has_files_of_its_own(folder: Path) -> None:
    constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])
    constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 2])  # another trie: the last token is in it
    constrain.Vocabulary([*TOKENS[1:], b"\0"], eos_ids=[len(TOKENS) - 1])
    constrain.Vocabulary([b"a"])  # too small to be worth a file
    assert len(list(folder.glob("trie-*"))) == 3


def test_damaged_files_are_made_anew(folder: Path) -> None:
    expected = masks(constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1]))
    gc.collect()
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:-5])
    assert masks(constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])) == expected
    gc.collect()
    assert len(list(folder.iterdir())) == 2
    assert all(disk_cache.read(file) for file in folder.iterdir())


@pytest.mark.parametrize("place", [None, "missing"])
def test_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str | None) -> None:
    if place is None:
        monkeypatch.setattr(vocabulary_files, "writable_cache_folder", lambda: None)
    else:
        (tmp_path / "file").write_text("")
        monkeypatch.setattr(cache_folder, "cache_folders", lambda: [tmp_path / "file"])
    vocabulary = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])
    assert len(masks(vocabulary)) == 9


def test_processes_that_write_at_once(tmp_path: Path) -> None:
    """All build the vocabulary at the same time, and leave whole files behind at their ends."""
    code = """
import sys
from pathlib import Path
import constrain.engine.vocabulary.files
from constrain import cache_folder
cache_folder.cache_folders = lambda: [Path(sys.argv[1])]
sys.path.insert(0, sys.argv[2])
from test_disk_cache import TOKENS, constrain, masks
import hashlib
kept = constrain.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])
print(hashlib.sha256(b"".join(masks(kept))).hexdigest())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parent)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(3)]
    printed = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(set(printed)) == 1
    names = sorted(file.name.split("-")[0] for file in tmp_path.iterdir())
    assert names == ["masks", "trie"]
    assert all(disk_cache.read(file) for file in tmp_path.iterdir())
