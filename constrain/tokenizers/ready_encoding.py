"""An :class:`Encoding` whose lists are known from the start, as other libraries return them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from constrain.errors import TokenizerError
from constrain.tokenizers.base import Encoding, EncodingSource


def ready_encoding(
    ids: Sequence[int],
    tokens: Sequence[str],
    offsets: Sequence[tuple[int, int]] | Callable[[], Sequence[tuple[int, int]]],
    special_tokens_mask: Sequence[int],
) -> Encoding:
    """The encoding with these lists, all of one length; ``offsets`` may be worked out when asked for."""
    return Encoding(list(ids), _Lists(list(tokens), offsets, list(special_tokens_mask)))


class _Lists(EncodingSource):
    def __init__(
        self,
        tokens: list[str],
        offsets: Sequence[tuple[int, int]] | Callable[[], Sequence[tuple[int, int]]],
        special_tokens_mask: list[int],
    ) -> None:
        self._tokens = tokens
        self._offsets = offsets
        self._special_tokens_mask = special_tokens_mask

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return self._tokens

    def offsets(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        return list(self._offsets() if callable(self._offsets) else self._offsets)

    def special_tokens_mask(self, ids: Sequence[int]) -> list[int]:
        return self._special_tokens_mask


def offsets_of_bytes(text: str, lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Character spans of consecutive tokens of so many bytes each, which together are ``text`` in UTF-8.

    A character that is spread over several tokens belongs to each of them.  A token without bytes has
    an empty span.

    Raises :class:`TokenizerError` if the tokens are more or fewer bytes than the text.
    """
    # characters[i]: how many characters begin in the first i bytes.
    characters = [0]
    for byte in text.encode("utf-8"):
        characters.append(characters[-1] + ((byte & 0xC0) != 0x80))
    if sum(lengths) != len(characters) - 1:
        raise TokenizerError("the tokens are not the text byte for byte (a normalizer?), so they have no offsets")
    spans: list[tuple[int, int]] = []
    begin = 0
    for length in lengths:
        end = begin + length
        first = characters[begin + 1] - 1 if length else characters[begin]
        spans.append((first, characters[end]))
        begin = end
    return spans
