"""Tokenizers: text to ids and back, one format per module; :func:`load_tokenizer` opens any of them."""

from constrain.tokenizers.base import Decoder, Encoder, Encoding, Tokenizer
from constrain.tokenizers.factory import load_tokenizer
from constrain.tokenizers.formats.json_writer import save_tokenizer_json
from constrain.tokenizers.models.byte_level_bpe import ByteLevelBPE
from constrain.tokenizers.special_tokens import SpecialTokens
from constrain.tokenizers.streaming.decode_stream import DecodeStream
from constrain.tokenizers.streaming.offset_stream import OffsetDecodeStream
from constrain.tokenizers.streaming.sequence import Sequence
from constrain.tokenizers.streaming.stop_sequences import Held, Stopped, StoppedWithText, StopSequenceDecoder, Text

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
