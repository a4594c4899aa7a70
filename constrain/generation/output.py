"""From tokens to the text of one generation: whole characters only, and nothing of a hidden stop string."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from constrain.characters import whole_characters
from constrain.engine.vocabulary.vocabulary import Vocabulary
from constrain.tokenizers.base import Decoder, Tokenizer
from constrain.tokenizers.streaming.stop_sequences import Held, Stopped, StopSequenceDecoder


class VocabularyDecoder(Decoder):
    """Decodes tokens to the bytes that a grammar was asked about.

    A tokenizer's own decoder may strip or join; under a grammar the text is exactly what was matched.  A special token
    that the grammar names is shown by its name.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocab_size = vocabulary.size
        self.special_ids: frozenset[int] = frozenset()
        self._tokens: Sequence[bytes] = vocabulary.tokens
        if vocabulary.spelled_ids:
            self._tokens = [*self._tokens]
            for token in vocabulary.spelled_ids:
                self._tokens[token] = vocabulary.shown(token)

    def decode_bytes(self, ids: Iterable[int], skip_special_tokens: bool = True) -> bytes:
        return b"".join([self._tokens[token_id] for token_id in ids])


class Output:
    """The text of one generation, as it grows.

    Parameters
    ----------
    decoder : Decoder
        A tokenizer, or a :class:`VocabularyDecoder`.
    stop : sequence of str
        Strings that end the text and are cut off it.
    stop_tokens : sequence of int
        Tokens that end the text and have no part in it.
    prompt_ids : sequence of int
        What precedes the text.

    Raises
    ------
    ConstrainError
        A stop string is empty or a stop token out of range.
    """

    def __init__(
        self, decoder: Decoder, stop: Sequence[str], stop_tokens: Sequence[int], prompt_ids: Sequence[int] = ()
    ) -> None:
        self._decoder = StopSequenceDecoder(cast(Tokenizer, decoder), stop_tokens, stop, prompt_ids=prompt_ids)
        self._hidden = frozenset(stop_tokens)
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        """Everything that was given out so far."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    @property
    def is_stopped(self) -> bool:
        return self._decoder.is_stopped

    def is_hidden_stop(self, token_id: int) -> bool:
        """Whether a token only ends the text."""
        return token_id in self._hidden

    def add(self, token_id: int) -> str:
        """The text that is certain after this token; afterwards :attr:`is_stopped` says whether it was the last."""
        return self._give(self._decoder.step(token_id))

    def add_hidden_stop(self, token_id: int, data: bytes | bytearray) -> str:
        """The same for a token that only ends the text.  ``data``: the bytes of all tokens before it."""
        return self._without_unfinished(self.add(token_id), data)

    def finish(self, data: bytes | bytearray) -> str:
        """The end: what was held back, but no unfinished character.  ``data``: the bytes of all tokens."""
        return self._without_unfinished(self._give(self._decoder.flush()), data)

    def _without_unfinished(self, text: str, data: bytes | bytearray) -> str:
        """The last text that was given out, without the unfinished character at its end."""
        if text.endswith("\ufffd") and whole_characters(data) < len(data):
            text = text[:-1]
            self._parts[-1] = self._parts[-1][:-1]
        return text

    def _give(self, output: object) -> str:
        if isinstance(output, Held | Stopped):
            return ""
        text: str = output.text  # type: ignore[attr-defined]
        if text:
            self._parts.append(text)
        return text
