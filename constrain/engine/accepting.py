"""Accepting a token with each sequence of a batch, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.conditions.budget.budget import NOTE
from constrain.engine.cursor import ALWAYS_ASKS_AT, NO_COMPANION_AT, Saved
from constrain.engine.history import BEFORE
from constrain.engine.masks.batches import check_matchers, contexts_of, hold_locks, list_matchers
from constrain.engine.masks.known_batches import push_tokens
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
    grammars = check_matchers(sequences)
    ids = token_ids.tolist() if isinstance(token_ids, np.ndarray) else list(token_ids)
    if len(ids) != len(sequences):
        raise ConstrainError(f"there are {len(ids)} tokens for {len(sequences)} matchers")
    if len(set(sequences)) < len(sequences):
        raise ConstrainError("a matcher is in the batch twice")
    if not sequences:
        return []
    size = sequences[0]._size
    if set(map(type, ids)) != {int} or min(ids) < 0 or max(ids) >= size:
        ids = [sequences[0]._checked_token(token) for token in ids]
    before = [matcher._steps for matcher in sequences]
    try:
        taken, others = hold_locks(grammars, lambda busy: _take_together(sequences, grammars, ids, busy))
        for position in others:
            taken[position] = sequences[position].accept_token(ids[position])
    except BaseException:
        for matcher, steps in zip(sequences, before, strict=True):
            _restore(matcher, steps)
        raise
    return taken


def _restore(matcher: Matcher, steps: int) -> None:
    """Let a matcher be where it was after so many steps; it has taken one more at most."""
    ended, parent = matcher._state == ENDED, matcher._parent
    if matcher._steps > steps:
        assert parent is not None
        ended, parent = False, parent[BEFORE]
    matcher._restore(Saved(ended, parent, steps, matcher._conditions))


def _take_together(
    matchers: list[Matcher], grammars: list[CompiledGrammar], tokens: list[int], busy: set[CompiledGrammar]
) -> tuple[list[bool], list[int]]:
    """Take the steps about which nobody has to be asked, under the locks of all grammars but busy ones.

    Returns which have been taken, and the positions of those that have to be taken one by one.
    """
    count = len(matchers)
    states = [matcher._state for matcher in matchers]
    companions = [matcher._companion_at for matcher in matchers]
    kinds = [matcher._kinds[token] for matcher, token in zip(matchers, tokens, strict=True)]
    # In place of the state of one that is to be asked: none is known there.
    if any(kinds):
        # The token is not one of text.
        states = [LOST if kind else state for kind, state in zip(kinds, states, strict=True)]
    if ALWAYS_ASKS_AT in companions:
        for position, matcher in enumerate(matchers):
            if matcher._asking and grammars[position] not in busy:
                if matcher._is_unasked():
                    companions[position] = matcher._unasked_companion_at
                else:
                    states[position] = LOST
    results = np.empty(count, np.int64)
    companions_at = np.fromiter(companions, np.int64, count)
    push_tokens(
        contexts_of(grammars, busy),
        np.fromiter(states, np.int64, count),
        np.fromiter(tokens, np.int64, count),
        companions_at,
        results,
    )
    is_taken = (results > 0) & (results < WITHOUT_QUESTION)
    taken: list[bool] = is_taken.tolist()
    # As in Matcher.accept_token, for all of them at once.
    generations = [grammar.generation for grammar in grammars]
    links = list(zip(generations, states, tokens, [matcher._parent for matcher in matchers], strict=True))
    untrack(links)
    steps = zip(matchers, links, (results & STATE_BITS).tolist(), strict=True)
    for matcher, link, state in compress(steps, taken):
        matcher._parent, matcher._state, matcher._steps = link, state, matcher._steps + 1
    for position in np.flatnonzero(is_taken & (companions_at != NO_COMPANION_AT)).tolist():
        matcher = matchers[position]
        matcher._note = int(results[position]) >> WORD_SHIFT | matcher._note & NOTE
    others = []
    for position in np.flatnonzero(~is_taken).tolist():
        matcher, result = matchers[position], results[position]
        if result:
            others.append(position)
            if matcher._unasked_companion is not NO_COMPANION and result != NO_STATE:
                # It may have read the token, which is taken by itself now.
                matcher._rewind()
    return taken, others
