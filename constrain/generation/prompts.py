"""From a prompt or a conversation to the tokens that a model goes on from."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from constrain.errors import ConstrainError
from constrain.generation.interfaces import Encoder, Model
from constrain.tokenizers.base import Tokenizer


def encode_prompt(tokenizer: Encoder, prompt: str | Sequence[int]) -> list[int]:
    """The tokens of a prompt, with what the model expects in front of a text; ids are taken as they are.

    What a tokenizer adds behind a text (an end or separator) is left out, since the text goes on.
    """
    if not isinstance(prompt, str):
        try:
            if isinstance(prompt, (bytes, bytearray)):
                raise TypeError("their items are bytes, and no ids")
            return [operator.index(token) for token in prompt]
        except TypeError:
            raise ConstrainError(
                f"a prompt must be a str or the ids of tokens, not {reprlib.repr(prompt)}; of a chat's messages "
                "encode_chat() makes ids"
            ) from None
    if not isinstance(tokenizer, Tokenizer):
        return [int(token) for token in _encoded(tokenizer, prompt).ids]
    encoding = tokenizer.encode(prompt, add_special_tokens=True)
    end = len(encoding.ids)
    added = encoding.special_tokens_mask
    while end and added[end - 1] and encoding.ids[end - 1] != tokenizer.special_tokens.bos:
        end -= 1
    # A text of special tokens alone has them all in front of it, as for [CLS] [SEP].
    return encoding.ids[:end] if end or not prompt else encoding.ids


def _encoded(tokenizer: Encoder, prompt: str) -> Any:
    """What an encoder of somebody else's makes of a text."""
    # A path, as a str, has an encode() of its own.
    found = tokenizer.encode(prompt) if hasattr(tokenizer, "encode") and not isinstance(tokenizer, str) else None
    if not hasattr(found, "ids"):
        raise ConstrainError(
            f"a tokenizer is one of constrain.load_tokenizer(), or has encode(text).ids, which "
            f"{type(tokenizer).__name__} has not"
        )
    return found


def context_of(model: Model, tokenizer: Encoder, prompt: str | Sequence[int]) -> list[int]:
    """What a generation begins with: :func:`encode_prompt`, or for nothing the token that the model has for that.

    Raises
    ------
    ConstrainError
        If the prompt is neither text nor ids, or one of these is none of the model's; or the model is none.
    """
    if not hasattr(model, "logits"):
        raise ConstrainError(
            f"a model is one of constrain.backends, or has logits(ids), which {type(model).__name__} has not"
        )
    ids = encode_prompt(tokenizer, prompt)
    size = getattr(model, "vocab_size", None)
    for token in ids:
        if token < 0 or (isinstance(size, int) and token >= size):
            known = f": the model has ids 0 to {size - 1}" if isinstance(size, int) else ""
            raise ConstrainError(f"the id {token} of the prompt is out of range{known}")
    start = getattr(model, "start_id", None)
    return ids if ids or start is None else [start]


def encode_chat(
    tokenizer: Tokenizer,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Iterable[Any] | None = None,
    documents: Iterable[Mapping[str, Any]] | None = None,
    template: str | None = None,
    variables: Mapping[str, Any] | None = None,
) -> list[int]:
    """The tokens of a conversation, up to where the model's answer begins; no message holds a control token.

    Parameters
    ----------
    tokenizer : Tokenizer
    messages, tools, documents, template
        As for :meth:`Tokenizer.apply_chat_template`, whose errors this has too.
    variables : mapping, optional
        What else the template reads, by name.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise ConstrainError(
            f"encode_chat() takes a tokenizer of constrain.load_tokenizer(), which opens those of other libraries too, "
            f"not {type(tokenizer).__name__}"
        )
    ids: list[int] = tokenizer.apply_chat_template(
        messages,
        tools=tools,
        documents=documents,
        add_generation_prompt=True,
        template=template,
        tokenize=True,
        **(variables or {}),
    )
    return ids
