"""Vocabularies to try tokenizers on: one learned on the spot, and Llama 3's where it is present."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from tokenizer_texts import CORPUS, pieces_of

from tools.demo_model.bpe_training import learn_merges, tokenizer_json


@pytest.fixture(scope="session")
def small_vocabulary():
    """Tokens and merges learned from a few lines."""
    return learn_merges(Counter(pieces_of(CORPUS * 3, "gpt2")), 400)


@pytest.fixture(scope="session")
def small_json(small_vocabulary):
    """The content of a small ``tokenizer.json``, as an object."""
    return tokenizer_json(*small_vocabulary, "<|endoftext|>")


@pytest.fixture(scope="session")
def llama3_json(data_folder: Path, tmp_path_factory) -> Path:
    """Llama 3's ``tokenizer.json``, unpacked."""
    packed = data_folder / "vocab" / "llama3-tokenizer.json.gz"
    if not packed.is_file():
        pytest.skip(f"no {packed}")
    path = tmp_path_factory.mktemp("llama3") / "tokenizer.json"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path
