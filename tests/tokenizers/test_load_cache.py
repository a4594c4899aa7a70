"""Tokenizers that come from the cache are those that were loaded, and no file there can do harm."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from processor_time import processor_time
from tokenizers_that_spell import MODELS, content_of

from constrain.engine.storage import disk_cache
from constrain.tokenizers import load_cache, load_tokenizer, state_arrays
from constrain.tokenizers.formats import tokenizer_json
from constrain.tokenizers.formats.gguf_metadata import metadata_length
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json
from constrain.tokenizers.mock import MockTokenizer
from constrain.tokenizers.models.piece_model import PieceModel
from constrain.tokenizers.normalizing.text_steps import TextStep
from constrain.tokenizers.packed_strings import packed

TEXTS = ["Hello, wörld! Naïve 😀", "", "<s>a</s> b<unk>", "Ａ ﬁ \t\n\n x" * 50, "The dog<|endoftext|> ran 123456"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAIN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(load_cache, "SMALLEST", 0)


def kept(tmp_path):
    return sorted((tmp_path / "cache").glob("tokenizer-*"))


def same(one, other):
    assert type(one) is type(other)
    assert other.tokens_as_bytes() == one.tokens_as_bytes()
    assert other.special_tokens == one.special_tokens
    assert (other.eos_ids, other.special_ids, other.vocab_size) == (one.eos_ids, one.special_ids, one.vocab_size)
    assert (other.chat_template, dict(other.first_forms)) == (one.chat_template, dict(one.first_forms))
    for token_id in range(one.vocab_size):
        spelled = one.id_to_token(token_id)
        assert other.id_to_token(token_id) == spelled
        if spelled is not None and token_id % 7 == 0:
            assert other.token_to_id(spelled) == one.token_to_id(spelled)
    for text in TEXTS:
        for options in ({}, {"add_special_tokens": True}, {"special": "none"}):
            found, expected = other.encode(text, **options), one.encode(text, **options)
            assert found == expected
            assert (found.tokens, found.offsets) == (expected.tokens, expected.offsets)
            assert found.special_tokens_mask == expected.special_tokens_mask
        assert other.decode(found.ids) == one.decode(found.ids)
        assert other.decode(found.ids * 100, skip_special_tokens=False) == one.decode(found.ids * 100, False)


def written_and_read(tokenizer):
    arrays = state_arrays.to_arrays(tokenizer)
    assert all(array.ndim == 1 and array.dtype.kind in "iu" for array in arrays.values())
    return state_arrays.from_arrays(arrays)


@pytest.mark.parametrize("name", MODELS)
def test_each_model(name):
    content = content_of(name)
    content["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}
    tokenizer = parse_tokenizer_json(json.dumps(content).encode())
    same(tokenizer, written_and_read(tokenizer))
    same(tokenizer, pickle.loads(pickle.dumps(written_and_read(tokenizer))))


def test_files_of_every_kind(data_folder, tmp_path):
    files = [
        *("ggml-vocab-bert-bge.gguf", "ggml-vocab-gpt-2.gguf", "ggml-vocab-llama-spm.gguf", "ggml-vocab-phi-3.gguf"),
        *("ggml-vocab-deepseek-coder.gguf", "llama2.spm.model", "r50k_base.tiktoken"),
    ]
    paths = [data_folder / "vocab" / name for name in files]
    if not all(path.is_file() for path in paths):
        pytest.skip("no vocabularies")
    for count, path in enumerate(paths, 1):
        first = load_tokenizer(path)
        assert len(kept(tmp_path)) == count
        same(first, load_tokenizer(path))
        assert len(kept(tmp_path)) == count


def test_a_second_load_reads_no_json(llama3_json, monkeypatch):
    first = load_tokenizer(llama3_json)
    monkeypatch.setattr("constrain.tokenizers.formats.tokenizer_json.load_tokenizer_json", None)
    with processor_time() as spent:
        second = load_tokenizer(llama3_json)
    assert spent.seconds < 0.3  # 0.04 s where nothing else runs
    same(first, second)


@pytest.fixture
def folder(small_json, tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    (path / "tokenizer.json").write_text(json.dumps(small_json))
    return path


def test_what_else_decides_is_part_of_the_key(folder, tmp_path):
    assert load_tokenizer(folder).eos_ids == load_tokenizer(folder).eos_ids
    assert load_tokenizer(folder, eos_ids=[5]).eos_ids == (5,)
    assert len(kept(tmp_path)) == 2
    (folder / "generation_config.json").write_text('{"eos_token_id": [7]}')
    assert 7 in load_tokenizer(folder).eos_ids
    (folder / "chat_template.jinja").write_text("a")
    assert load_tokenizer(folder).chat_template == "a"
    (folder / "chat_template.jinja").write_text("b")
    assert load_tokenizer(folder).chat_template == "b"
    content = json.loads((folder / "tokenizer.json").read_text())
    content["added_tokens"].append(
        {**content["added_tokens"][0], "id": len(content["model"]["vocab"]) + 5, "content": "<new>"}
    )
    (folder / "tokenizer.json").write_text(json.dumps(content))
    assert load_tokenizer(folder).token_to_id("<new>") is not None


def test_of_a_gguf_file_only_the_part_that_is_read_counts(data_folder, tmp_path, monkeypatch):
    source = data_folder / "vocab" / "ggml-vocab-llama-spm.gguf"
    if not source.is_file():
        pytest.skip("no vocabularies")
    monkeypatch.setattr(load_cache, "FIRST_BYTES", 1000)
    read = metadata_length(source)
    whole = source.read_bytes()
    path = tmp_path / "model.gguf"
    path.write_bytes(whole + b"weights")
    first = load_tokenizer(path)
    (file,) = kept(tmp_path)
    stamp = file.stat().st_ino
    same(first, load_tokenizer(path))
    path.write_bytes(whole + b"WEIGHTS")  # other tensors
    same(first, load_tokenizer(path))
    assert kept(tmp_path) == [file]
    assert file.stat().st_ino == stamp
    # Another token far behind the first bytes: found by them, and refused.
    token = "▁should".encode()
    place = whole.index(token) + len(token) - 1
    assert 1000 < place < read
    changed = whole[:place] + b"D" + whole[place + 1 :]
    path.write_bytes(changed + b"WEIGHTS")
    other = load_tokenizer(path)
    assert other.tokens_as_bytes() != first.tokens_as_bytes()
    same(other, load_tokenizer(path, cache=False))
    same(other, load_tokenizer(path))


def test_a_gguf_file_of_any_size_and_no_other(data_folder, tmp_path, monkeypatch, folder):
    source = data_folder / "vocab" / "ggml-vocab-llama-spm.gguf"
    if not source.is_file():
        pytest.skip("no vocabularies")
    monkeypatch.setattr(load_cache, "LARGEST", source.stat().st_size)
    path = tmp_path / "model.gguf"
    path.write_bytes(source.read_bytes() + bytes(1000))
    same(load_tokenizer(path), load_tokenizer(path))
    assert len(kept(tmp_path)) == 1
    monkeypatch.setattr(load_cache, "LARGEST", 100)
    load_tokenizer(folder)
    assert len(kept(tmp_path)) == 1


def test_without_the_cache(folder, tmp_path):
    expected = load_tokenizer(folder, cache=False)
    assert kept(tmp_path) == []
    same(expected, load_tokenizer(folder))
    (file,) = kept(tmp_path)
    file.write_bytes(b"")
    same(expected, load_tokenizer(folder, cache=False))
    assert file.read_bytes() == b""


def test_a_file_that_changes_while_it_is_read_is_not_kept(folder, tmp_path, monkeypatch):
    whole = load_tokenizer(folder, cache=False)
    read = tokenizer_json.load_tokenizer_json

    def changing(path, ends):
        found = read(path, ends)
        path.write_text(path.read_text() + " ")
        return found

    monkeypatch.setattr(tokenizer_json, "load_tokenizer_json", changing)
    same(whole, load_tokenizer(folder))
    assert kept(tmp_path) == []


def test_a_file_beside_that_changes_while_it_is_read_is_not_kept(folder, tmp_path, monkeypatch):
    read = tokenizer_json.load_tokenizer_json
    beside = folder / "generation_config.json"
    expected = load_tokenizer(folder, cache=False)

    def changing(path, ends):
        beside.write_text('{"eos_token_id": [7]}')
        return read(path, ends)

    with monkeypatch.context() as patches:
        patches.setattr(tokenizer_json, "load_tokenizer_json", changing)
        assert 7 in load_tokenizer(folder).eos_ids
    assert kept(tmp_path) == []
    beside.unlink()
    same(expected, load_tokenizer(folder))


def test_a_folder_that_cannot_be_written_is_read(folder, tmp_path, monkeypatch):
    expected = load_tokenizer(folder)
    monkeypatch.setattr(load_cache, "writable_cache_folder", lambda: None)
    monkeypatch.setattr(tokenizer_json, "load_tokenizer_json", None)
    same(expected, load_tokenizer(folder))


def test_processes_that_load_at_once(folder, tmp_path):
    code = (
        "import sys; from constrain.tokenizers import load_cache, load_tokenizer; load_cache.SMALLEST = 0\n"
        "for _ in range(5): print(load_tokenizer(sys.argv[1]).encode('Hello').ids)"
    )
    expected = f"{load_tokenizer(folder, cache=False).encode('Hello').ids}\n" * 5
    command = [sys.executable, "-c", code, str(folder)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0] for process in processes] == [expected] * 3
    assert len(kept(tmp_path)) == 1
    # A process that has no machine code keeps its kernels there too.
    assert [file for file in (tmp_path / "cache").iterdir() if file.is_file() and file.suffix != ".arrays"] == []


def test_damaged_files_are_made_anew(folder, tmp_path):
    expected = load_tokenizer(folder)
    (file,) = kept(tmp_path)
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[: len(whole) // 2], whole[:-3] + b"abc", whole + b"x", os.urandom(5000)):
        file.write_bytes(damaged)
        same(expected, load_tokenizer(folder))
        assert file.read_bytes() == whole
    arrays = disk_cache.read(file)

    def structure(value):
        return {**arrays, "structure": np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)}

    # With a right checksum, but not written here.
    for hostile in (
        structure({"object": "Popen", "with": {"dict": [{"list": ["args"]}, {"list": ["true"]}]}}),
        structure({"made": "system", "of": {"tuple": ["true"]}}),
        structure({"object": "ByteLevelBPE", "with": {"dict": [{"list": []}, {"list": []}]}}),
        structure({"array": "missing", "dtype": "<i4", "shape": [3]}),
        structure({"packed": "str", "blob": "a0", "lengths": "a1"}),
        structure(3),
        structure([1]),
        structure({}),
        {"structure": np.frombuffer(b"[" * 100_000, dtype=np.uint8)},
        {"other": np.zeros(3, dtype=np.int32)},
    ):
        assert disk_cache.write(file, hostile)
        same(expected, load_tokenizer(folder))


def test_without_a_folder_and_for_what_cannot_be_kept(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CONSTRAIN_CACHE_DIR", str(tmp_path / "file"))
    same(load_tokenizer(folder), load_tokenizer(folder))
    with pytest.raises(state_arrays.UnknownStateError, match="a MockTokenizer"):
        state_arrays.to_arrays(MockTokenizer())
    with pytest.raises(state_arrays.UnknownStateError, match="a lone surrogate"):
        state_arrays.to_arrays(["\ud800"] * 300)
    monkeypatch.setenv("CONSTRAIN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(load_cache, "SMALLEST", 10**9)
    load_tokenizer(folder)
    assert kept(tmp_path) == []


def test_every_step_and_model_is_known():
    todo, found = [TextStep, PieceModel], []
    while todo:
        kinds = todo.pop().__subclasses__()
        todo += kinds
        found += kinds
    concrete = {
        kind.__name__ for kind in found if not kind.__abstractmethods__ and kind.__module__.startswith("constrain.")
    }
    assert len(concrete) > 12
    assert concrete <= state_arrays._CLASSES.keys()


def test_packed_strings():
    for items in (["a", None, "", "é" * 5], ["x"], [], [b"a", b"", None], [b"\xff"]):
        kind = bytes if items and isinstance(items[0], bytes) else str
        strings = packed(items, kind)
        assert list(strings) == items == [strings[i] for i in range(len(strings))]
        assert len(strings) == len(items)
        assert strings[1:] == items[1:]
        assert strings[-1:] == items[-1:]
        assert strings.kind is kind
    with pytest.raises(IndexError):
        packed(["a"], str)[1]
