"""A tokenizer without a file, for the tests of whoever builds on this library."""

from __future__ import annotations

from collections.abc import Sequence

from constrain.errors import TokenizerError
from constrain.tokenizers.arguments import checked_text, utf8_of
from constrain.tokenizers.base import Encoding, Tokenizer
from constrain.tokenizers.ready_encoding import offsets_of_bytes, ready_encoding
from constrain.tokenizers.special_text import Disallowed, Reading, Special, cut_at_tokens
from constrain.tokenizers.special_tokens import SpecialTokens

_WORDS = (" the", " and", "ing", "Hello", " world", "{", "}", '":', '", "', "true", "false", "null", "  ", "\n")
_SPECIAL = ("<s>", "</s>", "<pad>", "<tool>")


class MockTokenizer(Tokenizer):
    """All bytes, some longer tokens, and special tokens behind them; encodes by longest match.

    Parameters
    ----------
    tokens : sequence of bytes, optional
        Tokens by id, each once.  By default the 256 bytes, then a few English words and pieces of JSON.
    special_tokens : sequence of str
        Their ids follow.  ``<s>`` begins a text (``add_special_tokens=True``), ``</s>`` ends one, ``<unk>``,
        ``<pad>``, ``<sep>``, ``<cls>`` and ``<mask>`` have their roles; others are additional.

    Raises
    ------
    TokenizerError
        A token is empty or there twice.  When encoding: a byte has no token.
    """

    def __init__(self, tokens: Sequence[bytes] | None = None, special_tokens: Sequence[str] = _SPECIAL) -> None:
        if tokens is None:
            tokens = [bytes((byte,)) for byte in range(256)] + [word.encode() for word in _WORDS if len(word) > 1]
        self._tokens = tuple(tokens)
        self._special = {name: len(self._tokens) + i for i, name in enumerate(special_tokens)}
        self._ids = {token: i for i, token in enumerate(self._tokens)}
        if len(self._ids) != len(self._tokens) or len(self._special) != len(special_tokens):
            raise TokenizerError("a token is there twice")
        if b"" in self._ids or "" in self._special:
            raise TokenizerError("a token is empty")
        self._longest = max(map(len, self._tokens), default=0)
        self.vocab_size = len(self._tokens) + len(self._special)
        self.special_ids = frozenset(self._special.values())
        roles = {"<s>": "bos", "</s>": "eos", "<unk>": "unk", "<pad>": "pad", "<sep>": "sep"}
        roles |= {"<cls>": "cls", "<mask>": "mask"}
        named = {role: self._special[name] for name, role in roles.items() if name in self._special}
        others = tuple(token_id for name, token_id in self._special.items() if name not in roles)
        self.special_tokens = SpecialTokens(additional=others, **named)
        self.eos_ids = (named["eos"],) if "eos" in named else ()

    def tokens_as_bytes(self) -> list[bytes | None]:
        return [*self._tokens, *[None] * len(self._special)]

    def token_bytes(self, token_id: int) -> bytes | None:
        self._check_id(token_id)
        return self._tokens[token_id] if token_id < len(self._tokens) else None

    def token_to_id(self, token: str) -> int | None:
        """Tokens are written as text; bytes that are not UTF-8 as surrogates (``"surrogateescape"``)."""
        found = self._special.get(checked_text(token, "a token"))
        if found is not None:
            return found
        try:
            return self._ids.get(token.encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError:  # a surrogate that stands for no byte
            return None

    def id_to_token(self, token_id: int) -> str | None:
        self._check_id(token_id)
        if token_id < len(self._tokens):
            return self._tokens[token_id].decode("utf-8", "surrogateescape")
        return list(self._special)[token_id - len(self._tokens)]

    def encode(
        self,
        text: str,
        add_special_tokens: bool = False,
        *,
        special: Special = None,
        disallowed: Disallowed = "text",
    ) -> Encoding:
        return self.read_text(text, add_special_tokens, self._reading(text, special, disallowed) or Reading())

    def read_text(self, text: str, add_special_tokens: bool, reading: Reading) -> Encoding:
        utf8_of(text)
        ids: list[int] = []
        lengths: list[int] = []
        for begin, end, token_id in cut_at_tokens(text, reading, self._special):
            if token_id is None:
                self._encode_plain(text[begin:end], ids, lengths)
            else:
                ids.append(token_id)
                lengths.append(len(text[begin:end].encode("utf-8")))
        offsets, mask = offsets_of_bytes(text, lengths), [0] * len(ids)
        if add_special_tokens and self.special_tokens.bos is not None:
            ids, offsets, mask = [self.special_tokens.bos, *ids], [(0, 0), *offsets], [1, *mask]
        return ready_encoding(ids, [self.id_to_token(i) or "" for i in ids], offsets, mask)

    def _encode_plain(self, text: str, ids: list[int], lengths: list[int]) -> None:
        data = text.encode("utf-8")
        place = 0
        while place < len(data):
            for length in range(min(self._longest, len(data) - place), 0, -1):
                token_id = self._ids.get(data[place : place + length])
                if token_id is not None:
                    ids.append(token_id)
                    lengths.append(length)
                    place += length
                    break
            else:
                raise TokenizerError(f"the vocabulary has no token for the byte 0x{data[place]:02X}")
