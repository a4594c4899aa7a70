"""Accepting a token with each sequence of a batch, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.conditions.budget.budget import NOTE
from constrain.engine.cursor import ALWAYS_ASKS_AT, NO_COMPANION_AT, Saved
from constrain.engine.history import BEFORE
from constrain.engine.masks.batches import hold_locks
from constrain.engine.masks.known_batches import push_tokens
from constrain.engine.masks.members import Int64Array, Members, list_matchers, members_of
from constrain.engine.matcher import Matcher
from constrain.engine.parser.companions import NO_COMPANION, STATE_BITS, WITHOUT_QUESTION, WORD_SHIFT
from constrain.engine.parser.configurations import ENDED, LOST
from constrain.engine.storage.statuses import NO_STATE
from constrain.errors import ConstrainError
from constrain.kernels.untracking import untrack


def accept_token_batch(matchers: Sequence[Matcher], token_ids: Sequence[int] | NDArray[np.integer]) -> list[bool]:
    """Let each matcher go on with its token; as :meth:`Matcher.accept_token` for each of them.

    Parameters
    ----------
    matchers : sequence of Matcher
        Different ones, of one grammar or of several, for vocabularies of one size.
    token_ids : sequence of int, or int[n]
        A token for each of them.

    Returns
    -------
    list of bool
        For each matcher whether its token was allowed; one whose token is not stays where it is.

    Raises
    ------
    ConstrainError
        If an id is out of range, a matcher is there twice, or there is not one token for each.
    LimitError
        As for one matcher.

    Notes
    -----
    After any exception all matchers are where they were.  None of them may be used by another thread meanwhile; their
    compiled grammars may.
    """
    sequences = list_matchers(matchers)
    members = members_of(sequences)
    try:
        ids = list(token_ids.tolist() if isinstance(token_ids, np.ndarray) else token_ids)
    except TypeError:
        raise ConstrainError(f"token_ids must be a list of token ids, not {token_ids!r}") from None
    if len(ids) != len(sequences):
        raise ConstrainError(f"there are {len(ids)} tokens for {len(sequences)} matchers")
    if not members.are_distinct:
        raise ConstrainError("a matcher is in the batch twice")
    if not sequences:
        return []
    tokens = _checked(ids, sequences[0])
    before = [matcher._steps for matcher in sequences]
    try:
        taken, others = hold_locks(members.distinct, lambda busy: _take_together(sequences, members, tokens, busy))
        for position in others:
            taken[position] = sequences[position].accept_token(int(tokens[position]))
    except BaseException:
        for matcher, steps in zip(sequences, before, strict=True):
            _restore(matcher, steps)
        raise
    return taken


def _checked(ids: list[Any], matcher: Matcher) -> Int64Array:
    """Some tokens as int64[n].  Raises ConstrainError if one is no integer, or out of range."""
    try:
        tokens = np.array(ids)
    except ValueError:
        tokens = np.empty(0)
    # Negative ones are large without a sign.
    if tokens.dtype != np.int64 or tokens.ndim != 1 or tokens.view(np.uint64).max() >= matcher._size:
        tokens = np.array([matcher._checked_token(token) for token in ids], np.int64)
    return tokens


def _restore(matcher: Matcher, steps: int) -> None:
    """Let a matcher be where it was after so many steps; it has taken one more at most."""
    ended, parent = matcher._state == ENDED, matcher._parent
    if matcher._steps > steps:
        assert parent is not None
        ended, parent = False, parent[BEFORE]
    matcher._restore(Saved(ended, parent, steps, matcher._conditions))


def _take_together(
    matchers: list[Matcher], members: Members, tokens: Int64Array, busy: set[CompiledGrammar]
) -> tuple[list[bool], list[int]]:
    """Take the steps about which nobody has to be asked, under the locks of all grammars but busy ones.

    Returns which have been taken, and the positions of those that have to be taken one by one.
    """
    count = len(matchers)
    states = [matcher._state for matcher in matchers]
    companions = [matcher._companion_at for matcher in matchers]
    # In place of the state of one that is to be asked: none is known there.
    for position in _not_of_text(matchers, members, tokens):
        states[position] = LOST
    if ALWAYS_ASKS_AT in companions:
        for position, matcher in enumerate(matchers):
            if matcher._asking and members.grammars[position] not in busy:
                if matcher._is_unasked():
                    companions[position] = matcher._unasked_companion_at
                else:
                    states[position] = LOST
    results = np.empty(count, np.int64)
    companions_at = np.fromiter(companions, np.int64, count)
    push_tokens(members.contexts(busy), np.fromiter(states, np.int64, count), tokens, companions_at, results)
    is_taken = (results > 0) & (results < WITHOUT_QUESTION)
    taken: list[bool] = is_taken.tolist()
    # As in Matcher.accept_token, for all of them at once.
    generations = [grammar.generation for grammar in members.grammars]
    links = list(zip(generations, states, tokens.tolist(), [matcher._parent for matcher in matchers], strict=True))
    untrack(links)
    steps = zip(matchers, links, (results & STATE_BITS).tolist(), strict=True)
    for matcher, link, state in compress(steps, taken):
        matcher._parent, matcher._state, matcher._steps = link, state, matcher._steps + 1
    noting = np.flatnonzero(is_taken & (companions_at != NO_COMPANION_AT))
    for position, note in zip(noting.tolist(), (results[noting] >> WORD_SHIFT).tolist(), strict=True):
        matcher = matchers[position]
        matcher._note = note | matcher._note & NOTE
    others = []
    for position in np.flatnonzero(~is_taken).tolist():
        matcher, result = matchers[position], results[position]
        if result:
            others.append(position)
            if matcher._unasked_companion is not NO_COMPANION and result != NO_STATE:
                # It may have read the token, which is taken by itself now.
                matcher._rewind()
    return taken, others


def _not_of_text(matchers: list[Matcher], members: Members, tokens: Int64Array) -> list[int]:
    """The positions of tokens that are not text.  About stop tokens of a matcher its conditions are asked."""
    if members.kinds is not None:
        found: list[int] = np.flatnonzero(members.kinds[tokens]).tolist()
        return found
    return [position for position, token in enumerate(tokens.tolist()) if matchers[position]._kinds[token]]
