"""The ``transformers`` library: its fast tokenizers, and those that wrap a SentencePiece processor."""

from __future__ import annotations

from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.adapters.hugging_face import HuggingFaceTokenizer
from constrain.tokenizers.adapters.sentencepiece_processor import SentencePieceTokenizer
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.chat.templates import parse_chat_template
from constrain.tokenizers.special_tokens import SpecialTokens

_ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


def adapt_transformers(tokenizer: Any) -> Tokenizer:
    """The adapter for a tokenizer of transformers: its ids, special tokens and chat template.

    Raises :class:`TokenizerError` if it is neither fast nor made of a SentencePiece processor.
    """
    adapted: Tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    processor = getattr(tokenizer, "sp_model", None)
    roles = {role: getattr(tokenizer, f"{role}_token_id", None) for role in _ROLES}
    named: Any = {role: int(token_id) for role, token_id in roles.items() if token_id is not None}
    if backend is not None:
        adapted = HuggingFaceTokenizer(backend, SpecialTokens(**named))
    elif processor is not None and len(tokenizer) == processor.get_piece_size():
        adapted = SentencePieceTokenizer(
            processor,
            add_bos=bool(getattr(tokenizer, "add_bos_token", False)),
            add_eos=bool(getattr(tokenizer, "add_eos_token", False)),
        )
    else:
        raise TokenizerError(
            f"{type(tokenizer).__name__} is neither a fast tokenizer nor a plain SentencePiece model;"
            " load it with AutoTokenizer.from_pretrained(..., use_fast=True), or its files with load_tokenizer"
        )
    template = getattr(tokenizer, "chat_template", None)
    adapted.chat_template = None if template is None else parse_chat_template(template)
    return adapted
