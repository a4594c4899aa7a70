"""A growing list of tokens and its text, kept together."""

from __future__ import annotations

from collections.abc import Iterable

from constrain.tokenizers.arguments import listed_ids
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.special_text import Disallowed, Special
from constrain.tokenizers.streaming.decode_stream import DecodeStream


class Sequence:
    """Token ids that grow at the end, by text or by token.

    Parameters
    ----------
    tokenizer : Tokenizer
    ids : ids
        What it begins with.
    skip_special_tokens : bool
        Special tokens give no text.

    Attributes
    ----------
    ids : tuple of int
        Everything so far.
    text : str
        ``tokenizer.decode(ids, skip_special_tokens)``.
    """

    def __init__(self, tokenizer: Tokenizer, ids: Iterable[int] = (), skip_special_tokens: bool = False) -> None:
        self._tokenizer = tokenizer
        self._stream = DecodeStream(tokenizer, skip_special_tokens=skip_special_tokens)
        self._ids: list[int] = []
        self._text: list[str] = []
        for token_id in listed_ids(ids):
            self.append_token(token_id)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self._ids)

    @property
    def text(self) -> str:
        complete = "".join(self._text)
        self._text = [complete] if complete else []
        return complete + self._stream.incomplete_character

    def append_text(
        self,
        text: str,
        add_special_tokens: bool = False,
        *,
        special: Special = None,
        disallowed: Disallowed = "text",
    ) -> list[int]:
        """Append the tokens of ``text``, encoded on its own; returns them.  The arguments are those of ``encode``.

        They need not be the tokens that the whole text would have: nothing merges across the border.
        """
        (encoding,) = self._tokenizer.encode_batch([text], add_special_tokens, special=special, disallowed=disallowed)
        ids: list[int] = encoding.ids
        for token_id in ids:
            self.append_token(token_id)
        return ids

    def append_token(self, token_id: int) -> str:
        """Append one token; returns the text that it completes, which may be empty.  Constant work."""
        text = self._stream.step(token_id) or ""
        self._ids.append(int(token_id))
        if text:
            self._text.append(text)
        return text

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return f"Sequence({len(self._ids)} tokens, {self.text[-40:]!r})"
