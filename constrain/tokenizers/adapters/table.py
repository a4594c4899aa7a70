"""What the adapters have in common: the bytes and the spelling of every token, asked for once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property

from constrain.errors import TokenizerError
from constrain.tokenizers.arguments import LARGEST_ID, checked_ids, checked_text
from constrain.tokenizers.base import Encoding, Tokenizer
from constrain.tokenizers.special_text import Disallowed, Special
from constrain.tokenizers.special_tokens import WELL_KNOWN_EOS, SpecialTokens


class TableTokenizer(Tokenizer):
    """A tokenizer that knows each token by id; encoding is left to the library that is adapted.

    Parameters
    ----------
    data : sequence of bytes or None
        The bytes that each token adds to a text that has begun; ``None`` for special and missing ones.
    spellings : sequence of str or None
        Each token as its vocabulary writes it; ``None`` where the id has no token.
    special_ids, eos_ids : ids
    roles : SpecialTokens
        The rest of ``special_ids`` becomes ``additional``.
    """

    def __init__(
        self,
        data: Sequence[bytes | None],
        spellings: Sequence[str | None],
        special_ids: Iterable[int],
        roles: SpecialTokens,
        eos_ids: Iterable[int],
    ) -> None:
        self._data = list(data)
        self._spellings = list(spellings)
        self.vocab_size = len(self._data)
        named = roles.roles()
        self.special_ids = frozenset(special_ids) | frozenset(named.values())
        for token_id in self.special_ids:
            self._check_id(token_id)
            self._data[token_id] = None
        self.special_tokens = SpecialTokens(
            additional=tuple(sorted(self.special_ids - frozenset(named.values()))), **named
        )
        self.eos_ids = tuple(sorted(set(checked_ids(eos_ids))))
        for token_id in self.eos_ids:
            self._check_id(token_id)

    @cached_property
    def _ids(self) -> dict[str, int]:
        # Of equal spellings the first id counts.
        return {text: i for i, text in reversed(list(enumerate(self._spellings))) if text is not None}

    def encode(
        self,
        text: str,
        add_special_tokens: bool = False,
        *,
        special: Special = None,
        disallowed: Disallowed = "text",
    ) -> Encoding:
        reading = self._reading(text, special, disallowed)
        if reading is None:
            return self._encode_as_usual(text, add_special_tokens)
        return self.read_text(text, add_special_tokens, reading)

    @abstractmethod
    def _encode_as_usual(self, text: str, add_special_tokens: bool) -> Encoding:
        """The encoding with the special tokens that the library reads unasked."""

    def tokens_as_bytes(self) -> list[bytes | None]:
        return list(self._data)

    def token_bytes(self, token_id: int) -> bytes | None:
        self._check_id(token_id)
        return self._data[token_id]

    def token_to_id(self, token: str) -> int | None:
        return self._ids.get(checked_text(token, "a token"))

    def id_to_token(self, token_id: int) -> str | None:
        self._check_id(token_id)
        return self._spellings[token_id]

    def decode_bytes(self, ids: Iterable[int], skip_special_tokens: bool = True) -> bytes:
        parts: list[bytes] = []
        begun, first = False, True
        for token_id in checked_ids(ids):
            if skip_special_tokens and token_id in self.special_ids:
                continue
            data = self._output_bytes(token_id, skip_special_tokens)
            if not begun:
                data = self._at_start(token_id, data, first)
                begun, first = bool(data), False
            parts.append(data)
        return b"".join(parts)

    def _at_start(self, token_id: int, data: bytes, first: bool) -> bytes:
        """What a token adds to a text that is empty so far; ``first`` if there is no token before it."""
        return data


def check_size(size: int) -> None:
    """Raise :class:`TokenizerError` for a number of ids that nobody has, before a list of that length is made."""
    if size - 1 > LARGEST_ID:
        raise TokenizerError(f"the vocabulary has ids up to {size - 1}; at most {LARGEST_ID} is supported")


def well_known_eos(spellings: Sequence[str | None]) -> list[int]:
    """The ids of the tokens whose names are known to end a text."""
    return [i for i, text in enumerate(spellings) if text in WELL_KNOWN_EOS]
