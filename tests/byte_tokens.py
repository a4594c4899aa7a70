"""A vocabulary of the 256 bytes, and which texts a grammar allows as a whole."""

from __future__ import annotations

import constrain

BYTES = constrain.Vocabulary([*(bytes((byte,)) for byte in range(256)), b"</s>"], eos_ids=[256])


def fits(compiled: constrain.CompiledGrammar, text: str) -> bool:
    """Whether the text is one of the grammar, from its begin to its end."""
    matcher = constrain.Matcher(compiled)
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def language_of(compiled: constrain.CompiledGrammar, alphabet: str, length: int) -> set[str]:
    """The texts of a grammar over an alphabet of ASCII, up to a length."""
    place = compiled.recognizer()
    found: set[str] = set()

    def visit(prefix: str) -> None:
        if place.is_accepting():
            found.add(prefix)
        for char in alphabet if len(prefix) < length else "":
            if place.try_push_byte(ord(char)):
                visit(prefix + char)
                place.pop_bytes(1)

    visit("")
    return found
