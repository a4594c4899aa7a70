"""What each token would leave to be finished, kept per state: the mask of a state under any budget."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from constrain.engine.bitmask import Bitmask
from constrain.engine.budget_masks import NO_SPLIT, allow_only, cost_tokens, drop_usual, forbid_tokens
from constrain.engine.cursor import Place
from constrain.engine.tables import TOKEN_COSTS

if TYPE_CHECKING:
    from constrain.engine.compiled import CompiledGrammar

Int32Array = np.ndarray[Any, np.dtype[np.int32]]

# All are dropped when there are more tokens than this in all of a compiled grammar's: 16 MB.
_MOST_TOKENS = 2_000_000

_ALL = -1
_NONE = np.empty(0, np.int32)


class StateCosts:
    """The tokens of one state with what they leave to be finished, but for those that are the usual case.

    Parameters
    ----------
    tokens, counts : int32[n]
        Tokens, and how many tokens finish the text after each.
    usual : int
        What the tokens that are not listed need, at most.
    valid_from : int
        The least budget (without the token itself) for which this is enough to tell the mask.

    Attributes
    ----------
    highest : int
        From this budget on the mask is the one without a budget.
    """

    def __init__(self, tokens: Int32Array, counts: Int32Array, usual: int, valid_from: int) -> None:
        self.valid_from, self.usual = valid_from, usual
        self._tokens, self._counts = tokens, counts
        self.highest = usual
        self.size = len(counts) + 16
        if len(counts):
            order = np.argsort(counts, kind="stable")
            self._tokens, self._counts = tokens[order], counts[order]
            self.highest = max(usual, int(self._counts[-1]))

    def restrict(self, ctx: Any, state: int, most: int, out: Bitmask, index: int) -> None:
        """Make the mask of the state, in row ``index``, that of a budget of ``most``, from which it is valid."""
        place = int(np.searchsorted(self._counts, most, side="right"))
        if most >= self.usual:
            forbid_tokens(out, index, self._tokens[place:])
        else:
            allow_only(ctx, state, out, index, self._tokens[:place])


_of_grammars: weakref.WeakKeyDictionary[CompiledGrammar, TokenCosts] = weakref.WeakKeyDictionary()


class TokenCosts:
    """Those of all states of a compiled grammar that were asked for."""

    def __init__(self) -> None:
        self._states: dict[int, StateCosts] = {}
        self._generation = 0
        self._size = 0
        self._known = np.zeros(5, np.int64)

    @classmethod
    def shared(cls, compiled: CompiledGrammar) -> TokenCosts:
        """The one of a compiled grammar."""
        return _of_grammars.setdefault(compiled, cls())

    def of(self, compiled: CompiledGrammar, place: Place, most: int) -> StateCosts | None:
        """What is known for a budget of ``most`` after the next token; None if the state's mask has to be made first.

        The caller holds the lock.
        """
        if self._generation != compiled.generation:
            self._clear(compiled.generation)
        found = self._states.get(place._state)
        if found is not None and most >= found.valid_from:
            return found
        # The second time around everything is looked at: there may be as many budgets as tokens to come.
        count = compiled.run_at(place, cost_tokens, most if found is None else _ALL, self._known)
        if count == NO_SPLIT:
            return None
        # Most tokens in a string leave the same behind, or are known to leave little enough.
        least = int(self._known[4])
        kept = drop_usual(compiled._ctx, count, least)
        tokens = counts = _NONE
        if kept >> 32:
            listed = compiled._tables.array(TOKEN_COSTS)[: 2 * (kept >> 32)].reshape(-1, 2)
            tokens, counts = listed[:, 0], listed[:, 1]
        new = StateCosts(tokens, counts, kept & 0xFFFFFFFF, max(least, 0))
        if self._generation != compiled.generation or self._size > _MOST_TOKENS:
            self._clear(compiled.generation)
        self._size += new.size - (found.size if found is not None else 0)
        self._states[place._state] = new
        return new

    def _clear(self, generation: int) -> None:
        self._states.clear()
        self._size = 0
        self._generation = generation
