"""The embedded demo: a small tokenizer and language model that need no download.

``docs/demo-model.md`` says what they have learned from, and ``LICENSE-DATA`` beside this file has the licences of those
texts.  In a checkout, ``python -m tools.demo_model.train`` makes both files again.
"""

# ruff: noqa: E402 (numpy before what imports it)

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from constrain.uninterrupted import load_numpy

load_numpy()

from constrain.demo.ngram import DemoModel
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.formats.tokenizer_json import parse_tokenizer_json

__all__ = ["DemoModel", "load"]


@lru_cache(maxsize=1)
def load() -> tuple[Tokenizer, DemoModel]:
    """The embedded tokenizer and model; read once, then shared."""
    folder = files("constrain.demo")
    tokenizer = parse_tokenizer_json((folder / "tokenizer.json").read_bytes())
    with (folder / "model.npz").open("rb") as file:
        return tokenizer, DemoModel(file, boundary=tokenizer.eos_ids[0])
