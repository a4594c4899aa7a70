"""Opens the tokenizer in a GGUF file: reads the metadata and hands it to the reader of its kind of vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.chat.templates import gguf_chat_template
from constrain.tokenizers.file_errors import errors_of
from constrain.tokenizers.formats.gguf_byte_level import byte_level_of_gguf
from constrain.tokenizers.formats.gguf_metadata import read_gguf_metadata
from constrain.tokenizers.formats.gguf_sentencepiece import (
    merged_sentencepiece_of_gguf,
    merged_words_of_gguf,
    sentencepiece_of_gguf,
    unigram_of_gguf,
)
from constrain.tokenizers.formats.gguf_splits import CHARACTER_SPLITS
from constrain.tokenizers.formats.gguf_vocabulary import GGUFVocabulary
from constrain.tokenizers.formats.gguf_wordpiece import wordpiece_of_gguf

_BUILDERS: dict[str, Callable[[GGUFVocabulary, tuple[int, ...] | None], Tokenizer]] = {
    "gpt2": byte_level_of_gguf,
    "llama": sentencepiece_of_gguf,
    "gemma4": merged_sentencepiece_of_gguf,
    "whitespace": merged_words_of_gguf,
    "t5": unigram_of_gguf,
    "bert": wordpiece_of_gguf,
}
"""What builds the tokenizer, by ``tokenizer.ggml.model``."""


def load_gguf_file(path: Path, eos_ids: tuple[int, ...] | None = None) -> Tokenizer:
    """The tokenizer of a GGUF file of any size; its tensors are not read."""
    metadata = read_gguf_metadata(path, _is_wanted)
    with errors_of(path):
        return tokenizer_of_gguf(metadata, eos_ids)


def tokenizer_of_gguf(metadata: dict[str, Any], eos_ids: tuple[int, ...] | None = None) -> Tokenizer:
    """The tokenizer that GGUF metadata describe (as :func:`read_gguf_metadata` returns them)."""
    vocabulary = GGUFVocabulary(metadata)
    if vocabulary.model not in _BUILDERS:
        raise TokenizerError(
            f"GGUF tokenizer model {vocabulary.model!r} is not supported; supported: {', '.join(_BUILDERS)}"
        )
    over_characters = vocabulary.model == "gpt2" and vocabulary.pre in CHARACTER_SPLITS
    tokenizer = _BUILDERS["gemma4" if over_characters else vocabulary.model](vocabulary, eos_ids)
    tokenizer.chat_template = gguf_chat_template(metadata)
    return tokenizer


def _is_wanted(key: str) -> bool:
    # The whole tokenizer.json of some files is megabytes that say the same again.
    if key.startswith("tokenizer."):
        return key != "tokenizer.huggingface.json"
    return key in ("general.name", "general.architecture")
