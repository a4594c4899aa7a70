"""Tokenizers of other libraries behind this library's interface; :func:`adapt` takes any of them."""

from __future__ import annotations

from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.adapters.hugging_face import HuggingFaceTokenizer
from constrain.tokenizers.adapters.llama_cpp_model import LlamaCppTokenizer
from constrain.tokenizers.adapters.sentencepiece_processor import SentencePieceTokenizer
from constrain.tokenizers.adapters.tiktoken_encoding import TiktokenTokenizer
from constrain.tokenizers.adapters.transformers_tokenizer import adapt_transformers
from constrain.tokenizers.base import Tokenizer

SUPPORTED = (
    "tokenizers.Tokenizer, tiktoken.Encoding, sentencepiece.SentencePieceProcessor, a transformers tokenizer,"
    " llama_cpp.Llama"
)


_LIBRARIES = ("transformers", "tokenizers", "tiktoken", "sentencepiece", "llama_cpp")


def _library_of(tokenizer: Any) -> str | None:
    """The library that an object is from, by name, so that none of them has to be installed."""
    modules = ((kind.__module__ or "").split(".")[0] for kind in type(tokenizer).__mro__)
    return next((module for module in modules if module in _LIBRARIES), None)


def has_adapter(tokenizer: Any) -> bool:
    """Whether an object is a tokenizer of this library, or from a library that :func:`adapt` knows."""
    return isinstance(tokenizer, Tokenizer) or _library_of(tokenizer) is not None


def adapt(tokenizer: Any) -> Tokenizer:
    """The adapter for an object of another library, with that adapter's defaults.

    Raises :class:`TokenizerError` if the library is not known, or if the object's tokens have no exact bytes.
    """
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    library = _library_of(tokenizer)
    if library == "transformers":
        return adapt_transformers(tokenizer)
    if library == "tokenizers":
        return HuggingFaceTokenizer(tokenizer)
    if library == "tiktoken":
        return TiktokenTokenizer(tokenizer)
    if library == "sentencepiece":
        return SentencePieceTokenizer(tokenizer)
    if library == "llama_cpp":
        return LlamaCppTokenizer(tokenizer)
    raise TokenizerError(
        f"no adapter for {type(tokenizer).__module__}.{type(tokenizer).__name__}; there are: {SUPPORTED}"
    )
