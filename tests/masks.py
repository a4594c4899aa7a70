"""What masks allow, and what they must allow: each token tried byte by byte."""

from __future__ import annotations

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
    result = set(vocabulary.eos_ids) if recognizer.is_accepting() else set()
    for token, data in enumerate(vocabulary.tokens):
        if token in vocabulary.eos_ids:
            continue
        read = 0
        while read < len(data) and recognizer.try_push_byte(data[read]):
            read += 1
        if read == len(data):
            result.add(token)
        recognizer.pop_bytes(read)
    return result
