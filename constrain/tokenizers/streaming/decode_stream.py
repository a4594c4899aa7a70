"""Turns a stream of ids into a stream of text without ever cutting a character.

A token need not end where a character ends: an emoji may take four tokens.  Bytes are held back
until their character is complete, which is at most three of them, so a step costs the same however
long the stream is.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Iterable

from constrain.tokenizers.arguments import checked_id, checked_ids, checked_tokenizer, listed_ids
from constrain.tokenizers.base import Tokenizer

_LONGEST_CHARACTER = 4


class DecodeStream:
    """Decodes one sequence of ids, token by token.

    The pieces that :meth:`step` and :meth:`flush` return, joined, are what
    ``tokenizer.decode(prompt_ids + ids)`` has after the complete characters of the prompt.

    What a token adds may depend on whether there is text before it (SentencePiece drops the space in
    front of a text, WordPiece puts one between words), but on nothing else.

    Parameters
    ----------
    tokenizer : Tokenizer
    prompt_ids : ids
        What precedes the stream.  Its text is not returned, but a character that begins in its
        last tokens and ends in the stream is.  Only its ends are looked at.
    skip_special_tokens : bool
        Special tokens give no text.
    """

    def __init__(self, tokenizer: Tokenizer, prompt_ids: Iterable[int] = (), skip_special_tokens: bool = True) -> None:
        self._tokenizer: Tokenizer = checked_tokenizer(tokenizer)
        self._skip_special_tokens = skip_special_tokens
        self._skipped = tokenizer.special_ids if skip_special_tokens else frozenset[int]()
        # The first token with text, and the one before it.  A later token is decoded by what it adds to these.
        self._first: tuple[int, ...] = ()
        self._first_length = 0
        self._added: dict[int, bytes] = {}
        self._held = self._end_of(checked_ids(prompt_ids))

    def step(self, token_id: int) -> str | None:
        """The text that this token completes, or ``None`` if it completes none."""
        if type(token_id) is not int:
            token_id = checked_id(token_id)  # a dict finds 1 for 1.0 too
        data = self._added.get(token_id)
        if data is None:
            data = self._bytes_added_by(token_id)
        if self._held:
            data = self._held + data
        text, used = utf_8_decode(data, "replace", False)
        self._held = data[used:]
        return text or None

    def step_batch(self, ids: Iterable[int]) -> list[str]:
        """:meth:`step` for each id; the texts that there are, in order."""
        return [text for text in map(self.step, listed_ids(ids)) if text is not None]

    def flush(self) -> str | None:
        """The end of the stream: what is held back becomes U+FFFD.  ``None`` if nothing is."""
        held, self._held = self._held, b""
        return held.decode("utf-8", "replace") or None

    @property
    def incomplete_character(self) -> str:
        """What :meth:`flush` would return: U+FFFD for the bytes that are held back, or nothing."""
        return self._held.decode("utf-8", "replace")

    def _bytes_added_by(self, token_id: int) -> bytes:
        # Remembered only where it holds for the rest of the stream.
        if token_id in self._skipped:
            self._added[token_id] = b""
            return b""
        data = self._tokenizer.decode_bytes((*self._first, token_id), self._skip_special_tokens)
        if not self._first_length:
            self._first = (*self._first, token_id) if data else (token_id,)
            self._first_length = len(data)
            if token_id in self._tokenizer.first_forms:
                return self._tokenizer.first_forms[token_id]
            return data.removeprefix(b" ") if self._tokenizer.strips_leading_space else data
        self._added[token_id] = data = data[self._first_length :]
        return data

    def _end_of(self, prompt_ids: list[int]) -> bytes:
        """The bytes of an unfinished character at the end of the prompt."""
        for token_id in prompt_ids:
            if self._first_length:
                break
            self._bytes_added_by(token_id)
        if not self._first_length:
            return b""
        tail = b""
        # An unfinished character is in the last four bytes, so earlier tokens need not be decoded.
        for i in range(len(prompt_ids) - 1, -1, -1):
            token_id = prompt_ids[i]
            if token_id in self._skipped:
                continue
            tail = self._bytes_added_by(token_id) + tail
            if len(tail) >= _LONGEST_CHARACTER:
                break
        return tail[utf_8_decode(tail, "replace", False)[1] :]
