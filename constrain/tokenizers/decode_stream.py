"""Turns a stream of ids into a stream of text without ever cutting a character.

A token need not end where a character ends: an emoji may take four tokens.  Bytes are held back
until their character is complete, which is at most three of them, so a step costs the same however
long the stream is.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from constrain.tokenizers.base import Tokenizer


class DecodeStream:
    """Decodes one sequence of ids, token by token.

    The pieces that :meth:`step` and :meth:`flush` return, joined, are what
    ``tokenizer.decode(prompt_ids + ids)`` has after the complete characters of the prompt.

    Parameters
    ----------
    tokenizer : Tokenizer
    prompt_ids : ids
        What precedes the stream.  Its text is not returned, but a character that begins in its
        last token and ends in the stream is.
    skip_special_tokens : bool
        Special tokens give no text.
    """

    def __init__(self, tokenizer: Tokenizer, prompt_ids: Iterable[int] = (), skip_special_tokens: bool = True) -> None:
        self._tokenizer = tokenizer
        self._skip_special_tokens = skip_special_tokens
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder.decode(tokenizer.decode_bytes(prompt_ids, skip_special_tokens))

    def step(self, token_id: int) -> str | None:
        """The text that this token completes, or ``None`` if it completes none."""
        return self._decoder.decode(self._tokenizer.decode_bytes((token_id,), self._skip_special_tokens)) or None

    def flush(self) -> str | None:
        """The end of the stream: what is held back becomes U+FFFD.  ``None`` if nothing is."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text or None
