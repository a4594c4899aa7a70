"""A small tokenizer of transformers: bytes, a few words, an end token, and the tokens that stand around thinking."""

from __future__ import annotations

import json
from typing import Any

from tiny_models import EOS, tokenizer_json

THINK, END_OF_THINKING, OTHER_END = "<think>", "</think>", "<|eot_id|>"


def small_tokenizer() -> Any:
    """The tokenizer; ``eos_token_id`` is ``tiny_models.EOS``."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer.from_str(json.dumps(tokenizer_json()))
    tokenizer.add_special_tokens([THINK, END_OF_THINKING, OTHER_END])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    assert fast.eos_token_id == EOS
    return fast
