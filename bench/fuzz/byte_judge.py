"""From judges of characters to judges of tokens: bytes of UTF-8, of which a token may hold a part of a character."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

import constrain
from bench.fuzz.characters import characters, is_whole


class Judge(Protocol):
    """Judges texts by their characters' classes.  Places are hashable."""

    def start(self) -> Any:
        """The place before the text; None if there is no text at all."""

    def step(self, place: Any, which: int) -> Any:
        """The place after a character of a class; None if no text goes on like that."""

    def accepts(self, place: Any) -> bool:
        """Whether the text may end here."""


class ByteJudge:
    """Says what follows bytes; a place is (the judge's place, the bytes of a character that has begun)."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._after: dict[tuple[Any, int], Any] = {}
        self.start: tuple[Any, bytes] = (judge.start(), b"")

    def _step(self, place: Any, which: int) -> Any:
        key = place, which
        if key not in self._after:
            self._after[key] = self._judge.step(place, which)
        return self._after[key]

    def read(self, place: tuple[Any, bytes], data: bytes) -> tuple[Any, bytes] | None:
        """The place after some bytes; None if no text goes on like that."""
        here, begun = place
        for index in range(len(data)):
            begun += data[index : index + 1]
            classes = characters().begun(begun)
            if classes is None:
                return None
            if is_whole(begun):
                (which,) = classes
                here = self._step(here, which)
                if here is None:
                    return None
                begun = b""
            elif all(self._step(here, which) is None for which in classes):
                return None
        return here, begun

    def accepts(self, place: tuple[Any, bytes]) -> bool:
        return not place[1] and self._judge.accepts(place[0])

    def mask(self, place: tuple[Any, bytes], vocabulary: constrain.Vocabulary) -> Any:
        """bool[size]: the tokens that the contract of a mask allows."""
        found = np.zeros(vocabulary.size, bool)
        ends, special = set(vocabulary.eos_ids), set(vocabulary.special_ids)
        is_end = self.accepts(place)
        for token, data in enumerate(vocabulary.tokens):
            if token in ends:
                found[token] = is_end
            elif token not in special:
                found[token] = self.read(place, data) is not None
        return found


def mask_bits(mask: Any, size: int) -> Any:
    """bool[size]: the first row of a bitmask."""
    return np.unpackbits(mask[0].view(np.uint8), bitorder="little")[:size].astype(bool)


def difference(found: Any, expected: Any, vocabulary: constrain.Vocabulary) -> str:
    """How two masks differ; an empty string if they do not."""
    if np.array_equal(found, expected):
        return ""
    more = [vocabulary.tokens[token] for token in np.flatnonzero(found & ~expected)[:5]]
    less = [vocabulary.tokens[token] for token in np.flatnonzero(expected & ~found)[:5]]
    return f"the mask allows {more} wrongly, and forbids {less} wrongly"


def walk(
    matcher: constrain.Matcher, judge: ByteJudge, choices: Sequence[float], counts: Any, start: bytes = b""
) -> str:
    """Walk through the masks of a matcher, each judged token by token; what is wrong, or an empty string."""
    vocabulary = matcher.compiled.vocabulary
    mask = constrain.allocate_token_bitmask(1, vocabulary.size)
    place: tuple[Any, bytes] | None = judge.start
    text = b""
    for choice in (0.0, *choices):
        assert place is not None
        mask.fill(-1)
        matcher.fill_next_token_bitmask(mask)
        found = mask_bits(mask, vocabulary.size)
        expected = judge.mask(place, vocabulary)
        counts["masks"] += 1
        counts["tokens judged"] += vocabulary.size
        wrong = difference(found, expected, vocabulary)
        if wrong:
            return f"after {text!r}: {wrong}"
        if matcher.is_accepting() != judge.accepts(place):
            return f"after {text!r}: is_accepting() is {matcher.is_accepting()}"
        onward = [int(token) for token in np.flatnonzero(expected) if token not in vocabulary.eos_ids]
        if not onward:
            return ""
        if choice == 0.0:
            continue
        token = onward[int(choice * len(onward)) % len(onward)]
        if not matcher.accept_token(token):
            return f"after {text!r}: token {vocabulary.tokens[token]!r} is in the mask, and refused"
        place = judge.read(place, vocabulary.tokens[token])
        text += vocabulary.tokens[token]
    return ""
