"""A vocabulary in which special tokens are spelled: what a grammar with tokens as terminals is compiled against.

In such a *view* a special token has the bytes that a grammar means it by (:func:`constrain.grammar.tokens.spelling`),
and is in the trie.  So kernels need to know nothing of tokens as terminals.  A token that holds the byte 0xFF itself
(a piece of what is no UTF-8) is never allowed there: so no text spells a special token.

A grammar may also name an ordinary token, such as the ``<think>`` of a tokenizer that does not call it special.  In the
view of that grammar the token is spelled like a special one: it is itself, and no longer a piece of text.

In the view of a grammar with gates (constrain/grammar/least_tokens.py) the byte of a gate is in no token but the one
that is nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from constrain.engine.vocabulary.views import kept_view
from constrain.engine.vocabulary.vocabulary import END, NORMAL, SPECIAL, Vocabulary
from constrain.errors import ConstrainError
from constrain.grammar.tokens import GATE, MARK, MARK_BYTE, MOST_ID, spelled_token, spelling


class SpelledVocabulary(Vocabulary):
    """A vocabulary with special tokens that are spelled; made by :func:`spelled_vocabulary`.

    Parameters
    ----------
    plain : Vocabulary
        The one that this is a view of.
    named : iterable of int
        The ordinary tokens that are spelled too.
    has_gates : bool
        Whether the byte of a gate is kept out of texts.

    Attributes
    ----------
    plain : Vocabulary
    spelled_ids : frozenset of int
        All tokens that are spelled: special ones, end tokens, and ``named``.
    """

    def __init__(self, plain: Vocabulary, named: Iterable[int] = (), has_gates: bool = False) -> None:
        self.plain = plain
        self._has_gates = has_gates
        self._named = frozenset(named)
        self.spelled_ids = frozenset(plain.special_ids) | frozenset(plain.eos_ids) | self._named
        if self.spelled_ids and max(self.spelled_ids) > MOST_ID:
            raise ConstrainError(
                f"token {max(self.spelled_ids)} is out of range for a grammar with tokens: ids go to {MOST_ID:,}"
            )
        tokens = list(plain.tokens)
        for token in self.spelled_ids:
            tokens[token] = spelling(token)
        self._set_tokens(tuple(tokens))
        self.eos_ids, self.special_ids = plain.eos_ids, plain.special_ids
        self.names = plain.names
        self.tokenizer = plain.tokenizer
        kinds = plain.kinds.copy()
        kinds[list(self.spelled_ids)] = NORMAL
        texts = [(token, data) for token, data in enumerate(plain.tokens) if token not in self.spelled_ids]
        kinds[[token for token, data in texts if MARK in data or (has_gates and GATE in data and len(data) > 1)]] = (
            SPECIAL
        )
        text_ids = np.flatnonzero(kinds == NORMAL)
        kinds[list(self.eos_ids)] = END
        self._make_tables(kinds, text_ids)

    @cached_property
    def digest(self) -> str:
        """That of the vocabulary itself: the grammar says what is spelled."""
        return self.plain.digest

    def shown(self, token: int) -> bytes:
        return self.plain.shown(token)

    def without_spellings(self, data: bytes) -> bytes:
        plain, pieces = self.plain, []
        while data:
            text, mark, rest = data.partition(MARK_BYTE)
            pieces.append(text)
            token = spelled_token(mark + rest)
            if token is not None and plain.kinds[token] == NORMAL:
                pieces.append(plain.tokens[token])
            data = rest[3:]
        return b"".join(pieces)

    def __reduce__(self) -> Any:
        return SpelledVocabulary, (self.plain, self._named, self._has_gates)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {len(self.spelled_ids):,} spelled>"


def spelled_vocabulary(plain: Vocabulary, named: Iterable[int] = (), *, has_gates: bool = False) -> SpelledVocabulary:
    """The view of a vocabulary in which special tokens and some others are spelled; kept with the vocabulary.

    Raises
    ------
    ConstrainError
        If an id is too large to be spelled (16,777,215 is the largest).
    """
    key = frozenset(named)
    return kept_view(plain, ("spelled", key, has_gates), lambda: SpelledVocabulary(plain, key, has_gates))
