"""Ends a stream of text at stop tokens and stop strings, and never shows a part of a hidden one.

Text that may still become a stop string is held back; everything else is given out at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from constrain.errors import ConstrainError
from constrain.tokenizers.arguments import checked_id, checked_ids, checked_texts, listed_ids
from constrain.tokenizers.base import Tokenizer
from constrain.tokenizers.streaming.decode_stream import DecodeStream
from constrain.tokenizers.streaming.stop_matcher import StopMatcher


@dataclass(frozen=True)
class Text:
    """Text that is certain, and the stream goes on."""

    text: str


@dataclass(frozen=True)
class Held:
    """Nothing to give out yet: the token has no text, or it is held back."""


@dataclass(frozen=True)
class Stopped:
    """The stream has ended, and there is no more text."""


@dataclass(frozen=True)
class StoppedWithText:
    """The stream has ended, and this is the last text."""

    text: str


StopOutput = Text | Held | Stopped | StoppedWithText
"""What a step of a :class:`StopSequenceDecoder` returns."""


class StopSequenceDecoder:
    """A :class:`DecodeStream` that ends at the first stop token or stop string.

    A stop string counts as soon as its last character is there; of several that end at the same
    character the longest counts.  A hidden one is cut off the text, a visible one is its end; what the
    token has behind it is dropped.

    Parameters
    ----------
    tokenizer : Tokenizer
    stop_tokens, visible_stop_tokens : ids
        A hidden stop token gives no text; a visible one gives its text, special or not.
    stop_strings, visible_stop_strings : strings
    prompt_ids, skip_special_tokens :
        As for :class:`DecodeStream`.  Stop strings are not looked for in the prompt.

    Raises
    ------
    ConstrainError
        A stop string is empty, an id has no place in the vocabulary, or one is both hidden and visible.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop_tokens: Iterable[int] = (),
        stop_strings: Iterable[str] = (),
        visible_stop_tokens: Iterable[int] = (),
        visible_stop_strings: Iterable[str] = (),
        *,
        prompt_ids: Iterable[int] = (),
        skip_special_tokens: bool = True,
    ) -> None:
        self._tokenizer = tokenizer
        self._stop_tokens = frozenset(checked_ids(stop_tokens))
        self._visible_tokens = frozenset(checked_ids(visible_stop_tokens))
        hidden, visible = _strings(stop_strings, "stop_strings"), _strings(visible_stop_strings, "visible_stop_strings")
        for both in (self._stop_tokens & self._visible_tokens, hidden & visible):
            if both:
                raise ConstrainError(f"{min(both)!r} is a hidden and a visible stop at once")
        for token_id in sorted(self._stop_tokens | self._visible_tokens):
            if not 0 <= token_id < tokenizer.vocab_size:
                raise ConstrainError(f"stop token {token_id} is out of range: ids are 0 to {tokenizer.vocab_size - 1}")
        self._visible_strings = visible
        self._matcher = StopMatcher([*hidden, *visible])
        self._prompt_ids = tuple(checked_ids(prompt_ids))
        self._skip_special_tokens = skip_special_tokens
        self.reset()

    def reset(self) -> None:
        """Begin anew, after the same prompt."""
        self._stream = DecodeStream(self._tokenizer, self._prompt_ids, self._skip_special_tokens)
        self._matcher.reset()
        self._held: deque[str] = deque()
        self._held_length = 0
        self._stopped = False

    @property
    def is_stopped(self) -> bool:
        """Whether a stop was met, or the stream was flushed."""
        return self._stopped

    @property
    def holds_text(self) -> bool:
        """Whether text is held back that may become a stop string."""
        return self._held_length > 0

    def is_stop_token(self, token_id: int) -> bool:
        """Whether a token ends the stream, hidden or visible."""
        return token_id in self._stop_tokens or token_id in self._visible_tokens

    def step(self, token_id: int) -> StopOutput:
        """Take the next token.  After a stop, every token gives :class:`Stopped`."""
        if type(token_id) is not int:
            token_id = checked_id(token_id)
        if self._stopped:
            return Stopped()
        if token_id in self._stop_tokens:
            return self._end(self._stream.incomplete_character)
        if token_id in self._visible_tokens:
            if self._skip_special_tokens and token_id in self._tokenizer.special_ids:
                before = self._stream.flush() or ""
                return self._end(before + self._tokenizer.decode((token_id,), skip_special_tokens=False))
            text = self._stream.step(token_id) or ""
            return self._end(text + self._stream.incomplete_character)
        more = self._stream.step(token_id)
        return Held() if more is None else self._more(more)

    def step_batch(self, ids: Iterable[int]) -> list[StopOutput]:
        """:meth:`step` for each id."""
        return [self.step(token_id) for token_id in listed_ids(ids)]

    def flush(self) -> StopOutput:
        """The end of the stream: the text that is held back, if there is any.

        It is :class:`Stopped` after a stop, else :class:`Text` (which may be empty), unless an unfinished
        character, now U+FFFD, makes a stop string complete.
        """
        if self._stopped:
            return Stopped()
        self._stopped = True
        out = self._more(self._stream.flush() or "")
        if isinstance(out, (Stopped, StoppedWithText)):
            return out
        text = out.text if isinstance(out, Text) else ""
        return Text(text + self._release("", 0))

    def _more(self, text: str) -> StopOutput:
        """Certain text goes out, what may become a stop string stays."""
        found = self._matcher.feed(text)
        if found is not None:
            self._stopped = True
            end, string = found
            whole = self._release(text[:end], 0)
            shown = whole if string in self._visible_strings else whole[: len(whole) - len(string)]
            return StoppedWithText(shown) if shown else Stopped()
        shown = self._release(text, self._matcher.pending)
        return Text(shown) if shown else Held()

    def _release(self, text: str, pending: int) -> str:
        """What is held and ``text``, except for the last ``pending`` characters, which are held from now on."""
        self._held.append(text)
        self._held_length += len(text)
        parts: list[str] = []
        # Token by token, since a long stop string is held in many.
        while self._held_length > pending:
            part = self._held.popleft()
            excess = self._held_length - pending
            if len(part) > excess:
                self._held.appendleft(part[excess:])
                part = part[:excess]
            parts.append(part)
            self._held_length -= len(part)
        return "".join(parts)

    def _end(self, text: str) -> StopOutput:
        """A stop token: all that is held back, and ``text``, unless a stop string ends in it."""
        out = self._more(text)
        if self._stopped:
            return out
        self._stopped = True
        shown = (out.text if isinstance(out, Text) else "") + self._release("", 0)
        return StoppedWithText(shown) if shown else Stopped()


def _strings(values: Iterable[str], name: str) -> frozenset[str]:
    if isinstance(values, str):
        raise ConstrainError(f"{name} must be several strings, as in [{values!r}], not one")
    strings = frozenset(checked_texts(values, name))
    if "" in strings:
        raise ConstrainError(f"{name}: every stop string needs at least one character")
    return strings
