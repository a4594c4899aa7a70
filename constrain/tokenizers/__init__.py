"""Tokenizers: text to ids and back, one format per module; :func:`load_tokenizer` opens any of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from constrain.uninterrupted import load_numpy

if TYPE_CHECKING:
    from constrain.tokenizers.base import Decoder, Encoder, Encoding, Tokenizer
    from constrain.tokenizers.factory import load_tokenizer
    from constrain.tokenizers.formats.json_writer import save_tokenizer_json
    from constrain.tokenizers.models.byte_level_bpe import ByteLevelBPE
    from constrain.tokenizers.special_tokens import SpecialTokens
    from constrain.tokenizers.streaming.decode_stream import DecodeStream
    from constrain.tokenizers.streaming.offset_stream import OffsetDecodeStream
    from constrain.tokenizers.streaming.sequence import Sequence
    from constrain.tokenizers.streaming.stop_sequences import Held, Stopped, StoppedWithText, StopSequenceDecoder, Text

# Loaded on first use: any module of this package loads this file, and few need all of these.
_MODULES = {
    "base": ("Decoder", "Encoder", "Encoding", "Tokenizer"),
    "factory": ("load_tokenizer",),
    "formats.json_writer": ("save_tokenizer_json",),
    "models.byte_level_bpe": ("ByteLevelBPE",),
    "special_tokens": ("SpecialTokens",),
    "streaming.decode_stream": ("DecodeStream",),
    "streaming.offset_stream": ("OffsetDecodeStream",),
    "streaming.sequence": ("Sequence",),
    "streaming.stop_sequences": ("Held", "StopSequenceDecoder", "Stopped", "StoppedWithText", "Text"),
}
_EXPORTS = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ByteLevelBPE",
    "DecodeStream",
    "Decoder",
    "Encoder",
    "Encoding",
    "Held",
    "OffsetDecodeStream",
    "Sequence",
    "SpecialTokens",
    "StopSequenceDecoder",
    "Stopped",
    "StoppedWithText",
    "Text",
    "Tokenizer",
    "load_tokenizer",
    "save_tokenizer_json",
]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    load_numpy()
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
