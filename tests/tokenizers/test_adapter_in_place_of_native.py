"""A tokenizer.json that asks for more than the native tokenizers have is opened by the library, aloud."""

from __future__ import annotations

import json
import sys
import warnings

import pytest

from constrain.errors import TokenizerError
from constrain.tokenizers import ByteLevelBPE, load_tokenizer
from constrain.tokenizers.adapters.hugging_face import HuggingFaceTokenizer
from constrain.tokenizers.adapters.in_place_of_native import AdapterWarning

tokenizers = pytest.importorskip("tokenizers")


@pytest.fixture
def folder(small_json, tmp_path):
    """A byte-level vocabulary behind a split at scripts, which nobody has natively."""
    content = json.loads(json.dumps(small_json))
    content["normalizer"] = {"type": "Prepend", "prepend": "So "}
    parts = [{"type": "UnicodeScripts"}, content["pre_tokenizer"]]
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": parts}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>", "chat_template": "x"}')
    return tmp_path


def test_the_library_is_used_and_it_is_said(folder):
    with pytest.warns(
        AdapterWarning,
        match=r"tokenizer.json: .*pre_tokenizer UnicodeScripts is not supported.*; using the tokenizers library",
    ):
        tokenizer = load_tokenizer(folder)
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.encode("the end").ids == library.encode("the end", add_special_tokens=False).ids
    assert tokenizer.decode(tokenizer.encode("the end").ids) == "So the end"
    assert tokenizer.special_tokens.eos == library.token_to_id("<|endoftext|>")
    assert tokenizer.eos_ids == (tokenizer.special_tokens.eos,)
    assert tokenizer.apply_chat_template([{"role": "user"}]) == "x"
    with pytest.warns(AdapterWarning):
        assert load_tokenizer(folder, eos_ids=[3]).eos_ids == (3,)


def test_without_the_library_the_error_names_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(TokenizerError, match=r"supported.*pip install 'constrain-llm\[tokenizers\]'"):
        load_tokenizer(folder)


def test_native_files_and_broken_ones_never_reach_the_library(folder, small_json, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(small_json))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(load_tokenizer(folder), ByteLevelBPE)
    path.write_text('{"model": 1}')
    with pytest.raises(TokenizerError, match="was expected"):
        load_tokenizer(folder)


def test_what_the_library_cannot_do_either_is_the_first_error(folder):
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    content["decoder"] = {"type": "CTC", "pad_token": "", "word_delimiter_token": "", "cleanup": True}
    path.write_text(json.dumps(content))
    with pytest.raises(TokenizerError, match="and through the tokenizers library: decoder CTC is not supported"):
        load_tokenizer(folder)
    content["model"]["type"] = "Unheard"
    path.write_text(json.dumps(content))
    with pytest.raises(TokenizerError, match="model Unheard is not supported"):
        load_tokenizer(folder)


def test_a_panic_of_the_library_is_an_error(folder, small_json):
    """A replacement that may match nothing: the library loses count of characters, and its panic is no Exception."""
    regex = {"Regex": "(?:(?=.*x).)*"}
    content = {**small_json, "normalizer": {"type": "Replace", "pattern": regex, "content": "y"}}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.warns(AdapterWarning):
        tokenizer = load_tokenizer(folder)
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    with pytest.raises(BaseException) as panic:
        library.encode("a" * 30)
    if isinstance(panic.value, Exception):
        pytest.skip("this version of the library does not panic")
    with pytest.raises(TokenizerError, match="tokenizers cannot encode this text"):
        tokenizer.encode("a" * 30)
    assert tokenizer.decode(tokenizer.encode("").ids) in ("", "y")
