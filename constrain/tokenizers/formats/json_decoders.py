"""The decoders of ``tokenizer.json``: what each token adds to the text.

A decoder is a program over the list of tokens.  The decoders of real models come down to three things: a text for
each token, another text for some tokens at the beginning, and whether one space is left out there.  Others are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.byte_alphabet import alphabet_bytes
from constrain.tokenizers.formats.json_parts import flag_of, parts_of, pattern_of, text_of, type_of
from constrain.tokenizers.models.piece_model import byte_of_token

ToBytes = Callable[[str], bytes]


@dataclass(frozen=True)
class PieceDecoder:
    """What a decoder makes of a token.

    Attributes
    ----------
    to_bytes : function of str
        The bytes of a token behind another one.
    strip_leading_space : bool
        A space at the beginning of a text is left out.
    first : function of str, or None
        The bytes of a token at the beginning, where ``to_bytes`` and ``strip_leading_space`` do not give them.
    replacements : tuple of (old, new), or None
        What ``to_bytes`` replaces one after the other, where it does nothing else to a token that names no byte.
    """

    to_bytes: ToBytes
    strip_leading_space: bool
    first: ToBytes | None = None
    replacements: tuple[tuple[str, str], ...] | None = None

    def all_to_bytes(self, tokens: Sequence[str]) -> list[bytes]:
        """:attr:`to_bytes` of each."""
        if self.replacements is None or any(_BETWEEN in part for pair in self.replacements for part in pair):
            return [self.to_bytes(token) for token in tokens]
        joined = _BETWEEN.join(tokens)
        if joined.count(_BETWEEN) >= len(tokens):  # a token has it too
            return [self.to_bytes(token) for token in tokens]
        # One replacement in everything is many times as fast as one in each token.
        joined = _replaced(joined, self.replacements)
        named = [place for place, token in enumerate(tokens) if token[:3] == "<0x"]
        data = joined.encode().split(_BETWEEN.encode())
        for place in named:
            data[place] = self.to_bytes(tokens[place])
        return data

    def first_form(self, token: str) -> bytes | None:
        """The bytes of a token that begins a text; None where ``to_bytes`` and ``strip_leading_space`` give them.

        Only to be called where there is a :attr:`first`.
        """
        assert self.first is not None
        data, first = self.to_bytes(token), self.first(token)
        return None if first == (data.removeprefix(b" ") if self.strip_leading_space else data) else first


_MOST_CHARACTERS = 2**27
"""Of all tokens together; each replacement may double what the one before has made."""


def _replaced(text: str, replacements: Sequence[tuple[str, str]]) -> str:
    for old, new in replacements:
        if old and len(text) + text.count(old) * (len(new) - len(old)) > _MOST_CHARACTERS:
            raise TokenizerError(
                f"decoder Replace: it makes more than {_MOST_CHARACTERS:,} characters of the vocabulary"
            )
        text = text.replace(old, new) if old else text
    return text


_BETWEEN = "\0"
"""What stands between tokens that are joined; hardly any token has it."""

_CLEANUP = (
    *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m")),
    *((" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")),
)
"""What the clean-up of English text does within one token."""


def read_decoder(entry: Any) -> PieceDecoder:
    """What ``entry`` asks for; a decoder that is not supported is a :class:`TokenizerError` that names it."""
    parts = parts_of(entry, "decoders")
    if entry is None:
        return PieceDecoder(lambda token: f" {token}".encode(), True)
    kinds = [type_of(part) for part in parts]
    if kinds == ["ByteLevel"]:
        return PieceDecoder(alphabet_bytes, False)
    if kinds == ["WordPiece"]:
        return _word_piece(parts[0])
    if kinds == ["Metaspace"]:
        marker = text_of(parts[0], "replacement")
        prefix = parts[0].get("prepend_scheme", "always") != "never" and flag_of(parts[0], "add_prefix_space", True)
        # The first token loses all its markers: a text that begins with two blanks loses both.
        first = (lambda token: token.replace(marker, "").encode()) if prefix else None
        return PieceDecoder(lambda token: token.replace(marker, " ").encode(), prefix, first)
    return _sequence(parts, kinds)


def _word_piece(entry: dict[str, Any]) -> PieceDecoder:
    prefix, cleanup = text_of(entry, "prefix"), flag_of(entry, "cleanup", True)

    def clean(text: str) -> bytes:
        for old, new in _CLEANUP if cleanup else ():
            text = text.replace(old, new)
        return text.encode()

    def to_bytes(token: str) -> bytes:
        return clean(token.removeprefix(prefix) if token.startswith(prefix) else f" {token}")

    # The first token keeps its prefix.
    return PieceDecoder(to_bytes, True, clean)


def _sequence(parts: list[Any], kinds: list[str]) -> PieceDecoder:
    replacements: list[tuple[str, str]] = []
    bytes_too = strip = fused = False
    for part, kind in zip(parts, kinds, strict=True):
        if kind == "Replace" and not fused:
            pattern, is_regex = pattern_of(part)
            if is_regex:
                raise TokenizerError("decoder Replace is supported with a string only")
            replacements.append((pattern, text_of(part, "content")))
        elif kind == "ByteFallback" and not fused:
            bytes_too = True
        elif kind == "Fuse":
            fused = True
        elif (
            kind == "Strip" and fused and part.get("content") == " " and (part.get("start"), part.get("stop")) == (1, 0)
        ):
            strip = True
        else:
            raise TokenizerError(
                f"decoder {' + '.join(kinds)} is not supported; supported are ByteLevel, WordPiece, Metaspace and"
                " Replace + ByteFallback + Fuse + Strip of one leading space"
            )

    def to_bytes(token: str) -> bytes:
        byte = byte_of_token(token) if bytes_too else None
        if byte is not None:
            return bytes((byte,))
        return _replaced(token, replacements).encode()

    return PieceDecoder(to_bytes, strip, replacements=tuple(replacements))
