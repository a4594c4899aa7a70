"""Texts that are not generated, however they are cut into tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from constrain.errors import ConstrainError
from constrain.sampling.chain.logit_bias import without
from constrain.sampling.chain.step import Candidates, Situation, Step


class BadTexts(Step):
    """Tokens that would complete one of some texts are ruled out, unless nothing else is allowed.

    It looks no further ahead: where a grammar has only one way to go on, the text is written after all.  A text that
    must never be there belongs into the grammar.

    Parameters
    ----------
    texts : iterable of bytes
    tokens : sequence of bytes or None
        The bytes of each token; None for what adds no text.
    """

    def __init__(self, texts: Iterable[bytes], tokens: Sequence[bytes | None]) -> None:
        self._tokens = tokens
        self._texts = list(texts)
        if b"" in self._texts:
            raise ConstrainError("bad_texts: a text without bytes")
        self._longest = max(map(len, self._texts), default=0)
        # For each text and each of its beginnings: the tokens that complete it where that beginning is there.
        self._completing = [
            [
                frozenset(
                    token for token, data in enumerate(tokens) if data is not None and _completes(data, text, done)
                )
                for done in range(len(text))
            ]
            for text in self._texts
        ]

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        end = self._end_of(situation.history.tolist())
        refused: set[int] = set()
        for text, completing in zip(self._texts, self._completing, strict=True):
            for done, tokens in enumerate(completing):
                if end.endswith(text[:done]):
                    refused |= tokens
        return without(candidates, frozenset(refused)) if refused else candidates

    def _end_of(self, history: list[int]) -> bytes:
        """The end of the text so far, long enough for the beginning of any of the texts."""
        end = b""
        for token in reversed(history):
            if len(end) >= self._longest - 1:
                break
            end = (self._tokens[token] or b"" if 0 <= token < len(self._tokens) else b"") + end
        return end


def _completes(data: bytes, text: bytes, done: int) -> bool:
    """Whether a token behind the first ``done`` bytes of a text makes the whole of it."""
    return data.startswith(text[done:]) if done else text in data
