"""The alphabet in which byte-level vocabularies write bytes as printable characters.

GPT-2's vocabulary file writes each of the 256 bytes as one character: printable Latin-1 stands for
itself, and the others (white space, controls, the soft hyphen) for U+0100 onwards, in order.  That
is why a space looks like "Ġ" there.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise

from constrain.errors import TokenizerError

_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))

CHARACTER_OF_BYTE: str = ""
"""256 characters; byte ``b`` is written as ``CHARACTER_OF_BYTE[b]``."""

_spare = 0x100
for _byte in range(256):
    if _byte in _PRINTABLE:
        CHARACTER_OF_BYTE += chr(_byte)
    else:
        CHARACTER_OF_BYTE += chr(_spare)
        _spare += 1

_TO_LATIN1 = {ord(char): byte for byte, char in enumerate(CHARACTER_OF_BYTE)}
_TO_LATIN1.update({code: 0x20AC for code in range(256) if chr(code) not in CHARACTER_OF_BYTE})


def bytes_to_text(data: bytes) -> str:
    """Write bytes in the alphabet."""
    return data.decode("latin-1").translate(dict(enumerate(CHARACTER_OF_BYTE)))


def text_to_bytes(token: str) -> bytes:
    """Read bytes back; a character outside the alphabet is a :class:`TokenizerError`."""
    try:
        return token.translate(_TO_LATIN1).encode("latin-1")
    except UnicodeEncodeError:
        raise TokenizerError(f"token {token!r} is not written in the byte-level alphabet") from None


def alphabet_bytes(token: str) -> bytes:
    """Read bytes back from a token that is written in the alphabet as a whole; another stands for its own text."""
    try:
        return text_to_bytes(token)
    except TokenizerError:
        return token.encode()


def tokens_as_bytes(tokens: Mapping[int, str]) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """The bytes of tokens by id: first those that are written in the alphabet, then the others.

    The others stand for their own text, and merging bytes never leads to them.

    Raises :class:`TokenizerError` if a token has a lone surrogate, or if no token is written in the alphabet.
    """
    ends = accumulate(map(len, tokens.values()), initial=0)
    try:
        # One translation of everything is ten times as fast as one for each token.
        everything = text_to_bytes("".join(tokens.values()))
        return {i: everything[begin:end] for i, (begin, end) in zip(tokens, pairwise(ends), strict=True)}, {}
    except TokenizerError:
        pass
    known, foreign = {}, {}
    for token_id, token in tokens.items():
        try:
            known[token_id] = text_to_bytes(token)
        except TokenizerError:
            try:
                foreign[token_id] = token.encode()
            except UnicodeEncodeError:
                raise TokenizerError(f"token {token!r} (id {token_id}) has a lone surrogate") from None
    if not known:
        raise TokenizerError("no token of the vocabulary is written in the byte-level alphabet")
    return known, foreign
