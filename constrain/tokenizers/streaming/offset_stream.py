"""A stream of text by two offsets into the ids, as serving engines keep it.

The state of :class:`~constrain.tokenizers.streaming.decode_stream.DecodeStream` is bytes; here it is two numbers beside
the ids, which a scheduler can store with a request, send to another process, and set back when tokens are taken back.
The algorithm is that of text-generation-inference and vLLM (``prefix_offset``, ``read_offset``): what the ids from
``prefix_offset`` on decode to, without what those up to ``read_offset`` do, is new.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Iterable

from constrain.errors import TokenizerError
from constrain.tokenizers.arguments import checked_id, checked_ids, checked_tokenizer, listed_ids
from constrain.tokenizers.base import Tokenizer

_REPLACEMENT = "\ufffd"
_LONGEST_CHARACTER = 4


class OffsetDecodeStream:
    """Decodes one sequence of ids, token by token, with the texts of ``DecodeStream``.

    Parameters
    ----------
    tokenizer : Tokenizer
    ids : ids
        What precedes the stream.
    skip_special_tokens : bool
        Special tokens give no text.
    prefix_offset, read_offset : int, optional
        Those of a stream that was interrupted; ``ids`` are then all of its ids.

    Attributes
    ----------
    ids : list of int
        Everything so far.
    prefix_offset, read_offset : int
        The text of ``ids[:read_offset]`` is out, but for a character that is unfinished at its end;
        ``ids[prefix_offset:read_offset]`` are enough of it to know what the next ones add.

    Raises :class:`TokenizerError` for offsets that are not ``0 <= prefix_offset <= read_offset <= len(ids)``.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        ids: Iterable[int] = (),
        skip_special_tokens: bool = True,
        *,
        prefix_offset: int | None = None,
        read_offset: int | None = None,
    ) -> None:
        self._tokenizer: Tokenizer = checked_tokenizer(tokenizer)
        self._skip_special_tokens = skip_special_tokens
        self._skipped = tokenizer.special_ids if skip_special_tokens else frozenset[int]()
        self.ids = checked_ids(ids)
        if (prefix_offset is None) != (read_offset is None):
            raise TokenizerError("prefix_offset= and read_offset= belong together")
        if prefix_offset is None or read_offset is None:
            prefix_offset, read_offset = 0, len(self.ids)
        if not 0 <= prefix_offset <= read_offset <= len(self.ids):
            raise TokenizerError(
                f"prefix_offset={prefix_offset} and read_offset={read_offset} are no offsets into {len(self.ids)} ids"
            )
        self.prefix_offset, self.read_offset = prefix_offset, read_offset

    def step(self, token_id: int) -> str | None:
        """The text that this token completes, or ``None`` if it completes none."""
        token_id = checked_id(token_id)
        self.ids.append(token_id)
        # However many of them come, none is decoded.
        return None if token_id in self._skipped else self._give(False)

    def step_batch(self, ids: Iterable[int]) -> list[str]:
        """:meth:`step` for each id; the texts that there are, in order."""
        return [text for text in map(self.step, listed_ids(ids)) if text is not None]

    def flush(self) -> str | None:
        """The end of the stream: what is held back becomes U+FFFD.  ``None`` if nothing is."""
        return self._give(True)

    def _give(self, is_end: bool) -> str | None:
        prefix, read, count = self.prefix_offset, self.read_offset, len(self.ids)
        whole = self._text(prefix, count)
        unfinished = self._unfinished(prefix, count, whole)
        out = self._text(prefix, read)
        unfinished_then = self._unfinished(prefix, read, out)
        new = whole[len(out) - _width(unfinished_then) : len(whole) - (0 if is_end else _width(unfinished))]
        if not new:
            return None
        self.prefix_offset, self.read_offset = self._next_prefix(len(unfinished_then), whole), count
        if is_end and unfinished:
            self.prefix_offset = count  # or it would be told again
        return new

    def _next_prefix(self, unfinished: int, whole: str) -> int:
        """The last place that is no later than what was out, at which no character is cut.

        ``unfinished``: how many bytes of a character were there at the end of that.  ``whole``: the text from the
        present prefix on.
        """
        end = self.read_offset
        while unfinished > 0:
            end -= 1
            unfinished -= len(self._tokenizer.decode_bytes([self.ids[end]], self._skip_special_tokens))
        # The token that begins the character may also end another.
        is_whole = end == self.read_offset or whole.startswith(self._text(self.prefix_offset, end))
        return end if is_whole else self.prefix_offset

    def _unfinished(self, begin: int, end: int, text: str) -> bytes:
        """The bytes at the end of a text that are the beginning of a character: U+FFFD may also be text, or stand for
        a byte that begins none."""
        if not text.endswith(_REPLACEMENT):
            return b""
        data = self._tokenizer.decode_bytes(self.ids[begin:end], self._skip_special_tokens)[-_LONGEST_CHARACTER:]
        # A cut may leave the end of a character in front, which is as good as any other.
        return data[utf_8_decode(data, "replace", False)[1] :]

    def _text(self, begin: int, end: int) -> str:
        return self._tokenizer.decode(self.ids[begin:end], self._skip_special_tokens)


def _width(unfinished: bytes) -> int:
    """How many characters of a text stand for the beginning of one: U+FFFD mostly, but two for ED A0, a surrogate's."""
    return len(unfinished.decode("utf-8", "replace"))
