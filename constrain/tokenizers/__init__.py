"""Tokenizers: text to ids and back, one format per module; :func:`load_tokenizer` opens any of them."""

# ruff: noqa: E402

from constrain.kernel_cache import drop_stale_kernels

drop_stale_kernels(__path__[0])

from constrain.tokenizers.base import Decoder, Encoder, Encoding, SpecialTokens, Tokenizer
from constrain.tokenizers.byte_level_bpe import ByteLevelBPE
from constrain.tokenizers.decode_stream import DecodeStream
from constrain.tokenizers.factory import load_tokenizer
from constrain.tokenizers.sequence import Sequence
from constrain.tokenizers.stop_sequences import Held, Stopped, StoppedWithText, StopSequenceDecoder, Text

__all__ = [
    "ByteLevelBPE",
    "DecodeStream",
    "Decoder",
    "Encoder",
    "Encoding",
    "Held",
    "Sequence",
    "SpecialTokens",
    "StopSequenceDecoder",
    "Stopped",
    "StoppedWithText",
    "Text",
    "Tokenizer",
    "load_tokenizer",
]
