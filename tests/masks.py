"""What masks allow, and what they must allow: each token tried byte by byte."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import constrain


def mask_of(matcher: constrain.Matcher) -> set[int]:
    """The tokens that a matcher allows."""
    mask = constrain.allocate_token_bitmask(1, matcher.compiled.vocabulary.size)
    matcher.fill_next_token_bitmask(mask)
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())


def by_trying(compiled: constrain.CompiledGrammar, prefix: bytes) -> set[int]:
    """Brute force behind a text: every token byte by byte, from a recognizer that has seen no mask."""
    recognizer, vocabulary = compiled.recognizer(), compiled.vocabulary
    for byte in prefix:
        assert recognizer.try_push_byte(byte)
    found = tokens_from(recognizer, vocabulary.tokens) - set(vocabulary.eos_ids)
    return found | set(vocabulary.eos_ids) if recognizer.is_accepting() else found


def tokens_from(recognizer: constrain.Recognizer, tokens: Sequence[bytes]) -> set[int]:
    """Which tokens may come where a recognizer stands, each tried byte by byte."""
    found = set()
    for token, data in enumerate(tokens):
        read = 0
        while read < len(data) and recognizer.try_push_byte(data[read]):
            read += 1
        if read == len(data):
            found.add(token)
        recognizer.pop_bytes(read)
    return found
