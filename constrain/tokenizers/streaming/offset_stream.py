"""A stream of text by two offsets into the ids, as serving engines keep it.

The state of :class:`~constrain.tokenizers.streaming.decode_stream.DecodeStream` is bytes; here it is two numbers beside
the ids, which a scheduler can store with a request, send to another process, and set back when tokens are taken back.
The algorithm is that of text-generation-inference and vLLM (``prefix_offset``, ``read_offset``): what the ids from
``prefix_offset`` on decode to, without what those up to ``read_offset`` do, is new.
"""

from __future__ import annotations

from collections.abc import Iterable

from constrain.errors import TokenizerError
from constrain.tokenizers.arguments import checked_id, checked_ids, listed_ids
from constrain.tokenizers.base import Tokenizer

_REPLACEMENT = "\ufffd"
_LONGEST_CHARACTER = 4


class OffsetDecodeStream:
    """Decodes one sequence of ids, token by token, with the texts of ``DecodeStream`` joined.

    A single text may come a token later than there: what ends with U+FFFD waits until it is known whether more bytes of
    the character follow.

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
        The text of ``ids[:read_offset]`` is out; ``ids[prefix_offset:read_offset]`` are enough of it to know what the
        next ones add.

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
        self._tokenizer = tokenizer
        self._skip_special_tokens = skip_special_tokens
        self.ids = checked_ids(ids)
        if (prefix_offset is None) != (read_offset is None):
            raise TokenizerError("prefix_offset= and read_offset= belong together")
        if prefix_offset is None or read_offset is None:
            prefix_offset, read_offset = 0, self._end_of_characters()
        if not 0 <= prefix_offset <= read_offset <= len(self.ids):
            raise TokenizerError(
                f"prefix_offset={prefix_offset} and read_offset={read_offset} are no offsets into {len(self.ids)} ids"
            )
        self.prefix_offset, self.read_offset = prefix_offset, read_offset

    def step(self, token_id: int) -> str | None:
        """The text that this token completes, or ``None`` if it completes none."""
        self.ids.append(checked_id(token_id))
        return self._give(False)

    def step_batch(self, ids: Iterable[int]) -> list[str]:
        """:meth:`step` for each id; the texts that there are, in order."""
        return [text for text in map(self.step, listed_ids(ids)) if text is not None]

    def flush(self) -> str | None:
        """The end of the stream: what is held back becomes U+FFFD.  ``None`` if nothing is."""
        return self._give(True)

    def _give(self, is_end: bool) -> str | None:
        before = self._text(self.prefix_offset, self.read_offset)
        text = self._text(self.prefix_offset, len(self.ids))
        new = text[len(before) :]
        if not new or (text.endswith(_REPLACEMENT) and not is_end):
            return None
        self.prefix_offset, self.read_offset = self.read_offset, len(self.ids)
        return new

    def _end_of_characters(self) -> int:
        """After how many of the first ids no character is unfinished."""
        for end in range(len(self.ids), max(-1, len(self.ids) - _LONGEST_CHARACTER), -1):
            if not self._text(0, end).endswith(_REPLACEMENT):
                return end
        return len(self.ids)

    def _text(self, begin: int, end: int) -> str:
        return self._tokenizer.decode(self.ids[begin:end], self._skip_special_tokens)
