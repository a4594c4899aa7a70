"""Tokenizers: text to ids and back, one format per module; :func:`load_tokenizer` opens any of them."""

# ruff: noqa: E402

from constrain.kernel_cache import drop_stale_kernels

drop_stale_kernels(__path__[0])

from constrain.tokenizers.base import Encoding, SpecialTokens, Tokenizer
from constrain.tokenizers.byte_level_bpe import ByteLevelBPE
from constrain.tokenizers.decode_stream import DecodeStream
from constrain.tokenizers.factory import load_tokenizer

__all__ = ["ByteLevelBPE", "DecodeStream", "Encoding", "SpecialTokens", "Tokenizer", "load_tokenizer"]
