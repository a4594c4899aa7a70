"""The decoders of ``tokenizer.json``: what each token adds to the text.

A decoder is a program over the list of tokens.  Those that models have come down to a text for each token,
and to whether one space is left out at the beginning; anything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers.json_parts import flag_of, parts_of, pattern_of, text_of, type_of
from constrain.tokenizers.piece_model import byte_of_token

ToBytes = Callable[[str], bytes]

_CLEANUP = (
    *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m")),
    *((" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")),
)
"""What the clean-up of English text does within one token."""


def read_decoder(entry: Any) -> tuple[ToBytes, bool]:
    """The bytes of a token, and whether a space at the beginning of a text is left out."""
    parts = parts_of(entry, "decoders")
    if not parts:
        return lambda token: f" {token}".encode(), True
    kinds = [type_of(part) for part in parts]
    if kinds == ["WordPiece"]:
        return _word_piece(parts[0]), True
    if kinds == ["Metaspace"]:
        marker = text_of(parts[0], "replacement")
        prefix = parts[0].get("prepend_scheme", "always") != "never" and flag_of(parts[0], "add_prefix_space", True)
        return lambda token: token.replace(marker, " ").encode(), prefix
    return _sequence(parts, kinds)


def _word_piece(entry: dict[str, Any]) -> ToBytes:
    prefix, cleanup = text_of(entry, "prefix"), flag_of(entry, "cleanup", True)

    def to_bytes(token: str) -> bytes:
        text = token.removeprefix(prefix) if prefix and token.startswith(prefix) else f" {token}"
        if cleanup:
            for old, new in _CLEANUP:
                text = text.replace(old, new)
        return text.encode()

    return to_bytes


def _sequence(parts: list[Any], kinds: list[str]) -> tuple[ToBytes, bool]:
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
        for old, new in replacements:
            token = token.replace(old, new) if old else token
        return token.encode()

    return to_bytes, strip
