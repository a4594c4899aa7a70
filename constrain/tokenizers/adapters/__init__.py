"""Tokenizers of other libraries behind this library's interface; :func:`adapt` takes any of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.base import Tokenizer

SUPPORTED = (
    "tokenizers.Tokenizer, tiktoken.Encoding, sentencepiece.SentencePieceProcessor, a transformers tokenizer,"
    " llama_cpp.Llama"
)


# By library: the module, which is loaded when it is needed, and what makes the adapter.
_ADAPTERS = {
    "transformers": ("transformers_tokenizer", "adapt_transformers"),
    "tokenizers": ("hugging_face", "HuggingFaceTokenizer"),
    "tiktoken": ("tiktoken_encoding", "TiktokenTokenizer"),
    "sentencepiece": ("sentencepiece_processor", "SentencePieceTokenizer"),
    "llama_cpp": ("llama_cpp_model", "LlamaCppTokenizer"),
}


def _library_of(tokenizer: Any) -> str | None:
    """The library that an object is from, by name, so that none of them has to be installed."""
    modules = ((kind.__module__ or "").split(".")[0] for kind in type(tokenizer).__mro__)
    return next((module for module in modules if module in _ADAPTERS), None)


def has_adapter(tokenizer: Any) -> bool:
    """Whether an object is a tokenizer of this library, or from a library that :func:`adapt` knows."""
    return isinstance(tokenizer, Tokenizer) or _library_of(tokenizer) is not None


def adapt(tokenizer: Any) -> Tokenizer:
    """The adapter for an object of another library, with that adapter's defaults.

    Raises :class:`TokenizerError` if the library is not known, or if the object's tokens have no exact bytes.
    """
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    adapter = _ADAPTERS.get(_library_of(tokenizer) or "")
    if adapter is None:
        raise TokenizerError(
            f"no adapter for {type(tokenizer).__module__}.{type(tokenizer).__name__}; there are: {SUPPORTED}"
        )
    module, name = adapter
    adapted: Tokenizer = getattr(import_module(f"{__name__}.{module}"), name)(tokenizer)
    return adapted
