"""The completions that budget/completions.py knows, for Python.  The caller holds the lock of the compiled grammar."""

from __future__ import annotations

import numpy as np

from constrain.engine.conditions.budget import completions
from constrain.engine.conditions.budget.expression_costs import FAR, NEVER
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.storage.header import OPEN_AT
from constrain.engine.traveller import Traveller, place_behind
from constrain.errors import ConstrainError

_MOST_FAR_PLACES = 4096
"""So many places may be on the way to the end of a text behind which its cost was not known."""

NO_COMPLETION = "no way to complete the text was found in the tokens of the vocabulary"


class NoCompletionError(ConstrainError):
    """No way to complete a text is known in the tokens of the vocabulary."""


def tokens_from(compiled: GrammarTables, place: Place) -> int:
    """How many tokens the known completion of a place takes; NEVER if there is none.

    FAR or more where only its beginning is known, and that it goes on.
    """
    return compiled.run_at(place, completions.tokens_from)


def completion(compiled: GrammarTables, place: Place) -> list[int]:
    """The tokens of the known completion of a place, which has one.

    They may be fewer than :func:`tokens_from` says: the bytes of a very long completion are counted one by one.

    Raises
    ------
    NoCompletionError
        Behind something that depends on the text there is none after all.
    """
    tokens: list[int] = []
    far = 0
    while True:
        most = tokens_from(compiled, place)
        far += most >= FAR
        # Where it is known, what is left becomes less.
        if most == NEVER or far > _MOST_FAR_PLACES:
            raise NoCompletionError(NO_COMPLETION)
        out = np.empty(most % FAR, np.int32)
        count = compiled.run_at(place, completions.completion, out)
        tokens += out[:count].tolist()
        if not compiled.ctx[OPEN_AT]:
            return tokens
        # From here on it depends on the text as it is by then.
        place = place_after(compiled, place, out[:count].tolist())


def completion_or_none(compiled: GrammarTables, place: Place) -> list[int] | None:
    """As :func:`completion`; None if there is none."""
    try:
        return completion(compiled, place)
    except NoCompletionError:
        return None


def place_after(compiled: GrammarTables, place: Place, tokens: list[int]) -> Traveller:
    """The place after some tokens."""
    return place_behind(compiled, place, b"".join([compiled.vocabulary.tokens[token] for token in tokens]))


def fewest_tokens(compiled: GrammarTables, data: bytes) -> list[int] | None:
    """The fewest tokens that spell some bytes; None if no tokens do."""
    out = np.empty(len(data), np.int32)
    count = int(completions.fewest_tokens(compiled._tables.ctx, np.frombuffer(data, np.uint8), out))
    return None if count == NEVER else out[:count].tolist()


def beginning_tokens(compiled: GrammarTables, data: bytes) -> list[int]:
    """The tokens that some bytes begin with, also those of the same bytes."""
    out = np.empty(len(data), np.int32)
    count = int(completions.beginning_tokens(compiled._tables.ctx, np.frombuffer(data, np.uint8), out))
    trie = compiled.vocabulary.trie
    return [token for first in out[:count].tolist() for token in trie.same_as(first)]
