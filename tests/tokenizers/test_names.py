"""Tokenizers by the name of a model, an encoding or a repository."""

from __future__ import annotations

import base64
import inspect
import io
import json
import sys
from dataclasses import replace
from hashlib import sha1, sha256

import huggingface_hub
import pytest
import tiktoken.model

from constrain.errors import TokenizerError
from constrain.tokenizers import load_tokenizer, model_names, rank_download
from constrain.tokenizers.formats.rank_encodings import ENCODINGS
from constrain.tokenizers.hub import is_hub_id
from constrain.tokenizers.model_names import encoding_of_name, find_rank_file

CACHES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME")


@pytest.fixture(autouse=True)
def no_caches(monkeypatch, tmp_path):
    for variable in CACHES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "tiktoken"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.fixture
def small_ranks(monkeypatch, small_vocabulary):
    """The content of a rank file, which passes for that of r50k_base."""
    monkeypatch.setitem(ENCODINGS, "r50k_base", replace(ENCODINGS["r50k_base"], ranks=400))
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(small_vocabulary[0]))


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_names_of_models_as_tiktoken_has_them():
    for name, encoding in tiktoken.model.MODEL_TO_ENCODING.items():
        assert encoding_of_name(name) == encoding, name
    for prefix, encoding in tiktoken.model.MODEL_PREFIX_TO_ENCODING.items():
        name = f"{prefix}2099-01-01" if prefix.endswith("-") else f"{prefix}-2099"
        assert encoding_of_name(name) == encoding, name
    families = ("gpt-5", "gpt-5.1", "gpt-5.2", "gpt-4", "gpt-4.1", "gpt-4.7", "gpt-4o", "o1", "o3", "o4")
    for family in families:
        for rest in ("", "-mini", "-codex", "-codex-max", "-chat-latest", "-2099-01-01", ".1", ".1-nano", "x"):
            try:
                expected = tiktoken.model.encoding_name_for_model(family + rest)
            except KeyError:
                expected = None
            got = encoding_of_name(family + rest)
            assert got == expected or (expected is None and got is not None and rest.startswith("-")), family + rest
    assert encoding_of_name("cl100k_base") == "cl100k_base"
    assert encoding_of_name("gpt-4o-mini") == "o200k_base"
    for name in ("gpt", "gpt-4x", "llama", ""):
        assert encoding_of_name(name) is None


def test_special_tokens_as_tiktoken_has_them(monkeypatch):
    import tiktoken_ext.openai_public as reference

    monkeypatch.setattr(reference, "load_tiktoken_bpe", lambda *a, **k: {})
    monkeypatch.setattr(reference, "data_gym_to_mergeable_bpe_ranks", lambda *a, **k: {})
    for name in ("gpt2", "r50k_base", "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"):
        special = getattr(reference, name)()["special_tokens"]
        special.pop("<|reserved_200018|>", None)  # a second name of <|endofprompt|>
        assert ENCODINGS[name].special == special, name


def test_a_rank_file_is_found(tmp_path, monkeypatch, small_ranks):
    own = put(tmp_path / "mine" / "r50k_base.tiktoken", small_ranks)
    for name in ("r50k_base", "davinci", "gpt2", "gpt-2"):
        assert load_tokenizer(name, folder=own.parent).eos_ids == (50256,)
    assert load_tokenizer("ada", folder=tmp_path).eos_ids == (50256,), "in a folder within it"
    address = "https://openaipublic.blob.core.windows.net/encodings/r50k_base.tiktoken"
    cached = put(tmp_path / "tiktoken" / sha1(address.encode()).hexdigest(), small_ranks)
    assert find_rank_file("r50k_base") == cached
    assert load_tokenizer("davinci").encode("the").ids == load_tokenizer(own, encoding="r50k_base").encode("the").ids
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path / "tiktoken"))
    assert find_rank_file("gpt2") == cached
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path / "nothing"))
    snapshot = put(tmp_path / "hub" / "models--a--b" / "snapshots" / "0" / "p50k_base.tiktoken", b"")
    assert find_rank_file("p50k_edit") == snapshot
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert find_rank_file("p50k_edit") == snapshot


def test_a_table_of_ones_own(tmp_path, monkeypatch, small_ranks):
    put(tmp_path / "r50k_base.tiktoken", small_ranks)
    monkeypatch.setitem(model_names.MODEL_ENCODINGS, "house-model", "r50k_base")
    assert load_tokenizer("house-model-v2", folder=tmp_path).vocab_size == 50257


def test_what_is_missing_is_said(tmp_path):
    for name, words in (
        ("gpt-4o", rf"o200k_base; looked for {tmp_path}/tiktoken/fb374d419588a4632f3f557e76b4b70aebbca790.*folder="),
        ("o200k_harmony", "looked for .*o200k_base.tiktoken"),
        ("nothing", "nothing: no such file, and no name of a model"),
    ):
        with pytest.raises(TokenizerError, match=words):
            load_tokenizer(name)
    with pytest.raises(TokenizerError, match=r"nowhere: no such folder"):
        load_tokenizer("gpt-4", folder=tmp_path / "nowhere")
    with pytest.raises(TokenizerError, match=r"neither a model nor an encoding; known: .*gpt-4o"):
        load_tokenizer("gpt", folder=tmp_path)
    with pytest.raises(TokenizerError, match="revision= is for repositories"):
        load_tokenizer("gpt-4", revision="v1")
    file = put(tmp_path / "x.json", b"{}")
    with pytest.raises(TokenizerError, match="are for names"):
        load_tokenizer(file, folder=tmp_path)


def test_a_rank_file_is_fetched_and_checked(tmp_path, monkeypatch, small_ranks):
    asked = []
    answer = small_ranks

    def urlopen(address, timeout):
        asked.append(address)
        if not answer:
            raise OSError("no route")
        return io.BytesIO(answer)

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    monkeypatch.setitem(rank_download.SHA256, "r50k_base", sha256(small_ranks).hexdigest())
    assert load_tokenizer("davinci", download=True).eos_ids == (50256,)
    assert asked == ["https://openaipublic.blob.core.windows.net/encodings/r50k_base.tiktoken"]
    assert load_tokenizer("davinci").vocab_size == 50257  # where tiktoken would look for it
    (tmp_path / "own").mkdir()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "other"))
    load_tokenizer("gpt2", folder=tmp_path / "own", download=True)
    assert (tmp_path / "own" / "r50k_base.tiktoken").read_bytes() == small_ranks
    answer = b"changed"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "empty"))
    with pytest.raises(TokenizerError, match=r"has the SHA-256 [0-9a-f]{64}, and should have"):
        load_tokenizer("davinci", download=True)
    answer = b""
    with pytest.raises(TokenizerError, match="could not be downloaded: no route"):
        load_tokenizer("davinci", download=True)
    assert not (tmp_path / "empty").exists()
    with pytest.raises(TokenizerError, match="the rank file of llama3 is not public"):
        load_tokenizer("llama3", download=True)


def test_checksums_are_those_of_tiktoken():
    import tiktoken_ext.openai_public as reference

    source = inspect.getsource(reference)
    for name, expected in rank_download.SHA256.items():
        assert f'{rank_download.ADDRESS.format(name)}",\n        expected_hash="{expected}"' in source


def test_ids_of_repositories():
    for name in ("meta-llama/Llama-3.1-8B", "a/b", "org_1/x.y-z"):
        assert is_hub_id(name)
    for name in ("a", "a/b/c", "/a/b", "./a", "../a", "a/../b", "a//b", "a b/c", "~/x", "a\\b", "a/b" + "c" * 100):
        assert not is_hub_id(name)


def test_a_repository_in_the_cache(tmp_path, small_json):
    repository = tmp_path / "hub" / "models--some--model"
    commit = "0123456789abcdef0123456789abcdef01234567"
    put(repository / "snapshots" / commit / "tokenizer.json", json.dumps(small_json).encode())
    put(repository / "refs" / "main", commit.encode())
    tokenizer = load_tokenizer("some/model", "{{ messages[0].content }}")
    assert tokenizer.decode(tokenizer.encode("the end").ids) == "the end"
    assert tokenizer.apply_chat_template([{"role": "user", "content": "hi"}]) == "hi"
    assert load_tokenizer("some/model", revision=commit).vocab_size == tokenizer.vocab_size
    with pytest.raises(TokenizerError, match=r"the Hugging Face cache; load_tokenizer\('some/model', download=True"):
        load_tokenizer("some/model", revision="v2")
    with pytest.raises(TokenizerError, match=r"other/model: no such file or folder, and no repository"):
        load_tokenizer("other/model")


def test_downloading_only_when_asked(tmp_path, monkeypatch, small_json):
    put(tmp_path / "there" / "tokenizer.json", json.dumps(small_json).encode())
    calls = []

    def snapshot_download(name, **options):
        calls.append((name, options["local_files_only"], options["revision"]))
        if name == "gated/model":
            raise RuntimeError("401: not for you\nmore")
        return str(tmp_path / "there")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    load_tokenizer("some/model")
    load_tokenizer("some/model", download=True, revision="v1")
    assert calls == [("some/model", True, None), ("some/model", False, "v1")]
    with pytest.raises(TokenizerError, match=r"gated/model: it could not be downloaded .*: 401: not for you$"):
        load_tokenizer("gated/model", download=True)


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(TokenizerError, match=r"some/model: no such file.*constrain-llm\[hub\]"):
        load_tokenizer("some/model")
