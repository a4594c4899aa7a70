"""Accepting a token with each sequence of a batch, in one call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from constrain.engine.compiled_grammar import CompiledGrammar
from constrain.engine.cursor import Saved
from constrain.engine.masks.batches import check_matchers, hold_locks
from constrain.engine.masks.known_batches import push_tokens
from constrain.engine.matcher import Matcher
from constrain.engine.parser.companions import NO_COMPANION, STATE_BITS, WITHOUT_QUESTION, WORD_SHIFT
from constrain.engine.parser.configurations import ENDED
from constrain.errors import ConstrainError

_NO_COMPANION_AT: int = NO_COMPANION.__array_interface__["data"][0]


def accept_token_batch(matchers: Sequence[Matcher], token_ids: Sequence[int]) -> list[bool]:
    """Let each matcher go on with its token; as :meth:`Matcher.accept_token` for each of them.

    Parameters
    ----------
    matchers : sequence of Matcher
        Different ones, of one grammar or of several, for vocabularies of one size.
    token_ids : sequence of int
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
    sequences = list(matchers)
    check_matchers(sequences)
    ids = token_ids.tolist() if isinstance(token_ids, np.ndarray) else list(token_ids)
    if len(ids) != len(sequences):
        raise ConstrainError(f"there are {len(ids)} tokens for {len(sequences)} matchers")
    if len(set(map(id, sequences))) < len(sequences):
        raise ConstrainError("a matcher is in the batch twice")
    tokens = [
        token if type(token) is int and 0 <= token < matcher._size else matcher._checked_token(token)
        for matcher, token in zip(sequences, ids, strict=True)
    ]
    before = [(matcher._state == ENDED, matcher._parent, matcher._steps) for matcher in sequences]
    taken = [False] * len(sequences)
    try:
        grammars = [matcher.compiled for matcher in sequences]
        for position in hold_locks(grammars, lambda busy: _take_together(sequences, tokens, taken, busy)):
            taken[position] = sequences[position].accept_token(tokens[position])
    except BaseException:
        for matcher, saved in zip(sequences, before, strict=True):
            matcher._restore(Saved(*saved, matcher._conditions))
        raise
    return taken


def _take_together(
    matchers: list[Matcher], tokens: list[int], taken: list[bool], busy: set[CompiledGrammar]
) -> list[int]:
    """Take the steps about which nobody has to be asked, under the locks of all grammars but busy ones; the others."""
    chosen: list[int] = []
    others: list[int] = []
    for position, matcher in enumerate(matchers):
        # Text, and no end before or now; what _asks_always says is true of budgets and the like.
        is_plain = matcher._state > 0 and not matcher._kinds[tokens[position]] and not matcher._asks_always
        (chosen if is_plain and matcher.compiled not in busy else others).append(position)
    if not chosen:
        return others
    batch = [matchers[position] for position in chosen]
    results = np.empty(len(chosen), np.int64)
    push_tokens(
        np.array([matcher.compiled.context_address for matcher in batch], np.int64),
        np.array([matcher._state for matcher in batch], np.int64),
        np.array([tokens[position] for position in chosen], np.int64),
        np.array([_address(matcher) for matcher in batch], np.int64),
        results,
    )
    for position, matcher, result in zip(chosen, batch, results.tolist(), strict=True):
        if result <= 0 or result >= WITHOUT_QUESTION:
            if result:
                if matcher._companion is not NO_COMPANION:
                    # It may have read the token, which is taken by itself now.
                    matcher._rewind()
                others.append(position)
            continue
        # As in Matcher.accept_token.
        link = (matcher.compiled.generation, matcher._state, tokens[position], matcher._parent)
        matcher._young.append(link)
        matcher._parent, matcher._state, matcher._steps = link, result & STATE_BITS, matcher._steps + 1
        if matcher._companion is not NO_COMPANION:
            matcher._note = result >> WORD_SHIFT
        taken[position] = True
    return others


def _address(matcher: Matcher) -> int:
    companion = matcher._companion
    if companion is NO_COMPANION:
        return _NO_COMPANION_AT
    return int(companion.__array_interface__["data"][0])
