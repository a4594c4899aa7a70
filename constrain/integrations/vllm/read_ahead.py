"""Masks of drafts for vLLM: all of a step in one call, before its manager asks for them one by one.

The manager of structured outputs goes through each request's drafts: it asks for a mask, gives the grammar the next
draft, and takes all of them back in the end.  How it lays out the rows differs between versions.  So it is left to do
that; its grammars only hand out what was made before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from constrain.engine.masks.drafts import fill_draft_bitmasks
from constrain.engine.matcher import Matcher
from constrain.engine.vocabulary.bitmasks import Bitmask, words_for


class ReadAhead:
    """The masks before and behind the drafts of one request, and how far the manager has gone through them.

    Parameters
    ----------
    tokens : sequence of int
        The drafts.
    legal : int
        How many of them, from the first on, the grammar allows.
    rows : int32[len(tokens) + 1, words]
        The masks, as ``fill_draft_bitmasks`` writes them.
    """

    def __init__(self, tokens: Sequence[int], legal: int, rows: Bitmask) -> None:
        self._tokens, self._legal, self._rows = tokens, legal, rows
        self._at = 0
        # Behind a legal token nothing is allowed only where it ends the text.
        self._ends_at = legal if legal and not rows[legal].any() else -1

    @property
    def mask(self) -> Bitmask:
        """The tokens that may come next: int32[words]."""
        row: Bitmask = self._rows[self._at]
        return row

    @property
    def is_terminated(self) -> bool:
        """Whether a draft has ended the text."""
        return self._at == self._ends_at

    def accept(self, token: int) -> bool:
        """Go on with a draft; False, and nothing changes, if it is not allowed, or not the one that comes next."""
        if self._at >= self._legal or self._tokens[self._at] != token:
            return False
        self._at += 1
        return True

    def rollback(self, count: int) -> None:
        """Take back drafts."""
        self._at -= count


class DraftMasks:
    """The memory of such masks, which is used again and again.

    Parameters
    ----------
    size : int
        How many tokens the vocabulary has.
    """

    def __init__(self, size: int) -> None:
        self._rows = np.zeros((0, words_for(size)), np.int32)

    def read_ahead(self, matchers: Sequence[Matcher], drafts: Sequence[Sequence[int]]) -> list[ReadAhead]:
        """What the drafts of some requests come to; good until the next call.  No matcher moves.

        Raises
        ------
        ConstrainError
            If a token is out of range.
        LimitError
            As for a mask.
        """
        count = len(drafts) + sum(map(len, drafts))
        if count > len(self._rows):
            self._rows = np.zeros((count, self._rows.shape[1]), np.int32)
        legal = fill_draft_bitmasks(matchers, drafts, None, self._rows)
        found, begin = [], 0
        for tokens, number in zip(drafts, legal, strict=True):
            found.append(ReadAhead(tokens, number, self._rows[begin : begin + len(tokens) + 1]))
            begin += len(tokens) + 1
        return found
