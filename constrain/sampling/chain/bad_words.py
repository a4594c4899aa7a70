"""Sequences of tokens that are not generated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from constrain.arguments import check_integer
from constrain.errors import ConstrainError
from constrain.sampling.chain.logit_bias import without
from constrain.sampling.chain.step import Candidates, Situation, Step


class BadWords(Step):
    """The last token of each word is ruled out where the tokens before it are there.

    A word that can be spelled by other tokens may still come about by those.  transformers has it as
    ``NoBadWordsLogitsProcessor``.
    """

    def __init__(self, words: Iterable[Sequence[int]]) -> None:
        words = list(words) if isinstance(words, Iterable) else [words]
        for word in words:
            if not isinstance(word, Iterable):
                raise ConstrainError(f"bad_words: a word must be a sequence of token ids, not {word!r}")
        self._words = [tuple(check_integer("bad_words: a token", token) for token in word) for word in words]
        if () in self._words:
            raise ConstrainError("bad_words: a word without tokens")

    def apply(self, candidates: Candidates, situation: Situation) -> Candidates:
        longest = max(map(len, self._words), default=1)
        end = tuple(situation.history[len(situation.history) - longest + 1 :].tolist() if longest > 1 else ())
        if longest > 1 and len(situation.history) < longest - 1:
            end = tuple(situation.history.tolist())
        refused = {word[-1] for word in self._words if len(word) == 1 or end[len(end) - len(word) + 1 :] == word[:-1]}
        return without(candidates, frozenset(refused)) if refused else candidates
