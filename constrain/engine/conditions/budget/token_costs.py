"""What each token would leave to be finished, kept per state: the mask of a state under any budget."""

from __future__ import annotations

from heapq import heappush
from typing import Any

import numpy as np

from constrain.engine.conditions.budget.bounds import Bounds
from constrain.engine.conditions.budget.expression_costs import NEVER
from constrain.engine.conditions.budget.key_costs import key_costs_of
from constrain.engine.conditions.budget.known_completions import tokens_from
from constrain.engine.conditions.budget.masks import (
    ALL,
    CROSSINGS_ONLY,
    allow_only,
    cost_below,
    cost_tokens,
    forbid_tokens,
    group_tokens,
)
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.mask_memo import places_at
from constrain.engine.parser.companions import NO_COMPANION, unpack
from constrain.engine.parser.configurations import push_token
from constrain.engine.storage.schemas import OPEN_NODES, ROOTS, SEARCH_WAYS, TOKEN_COSTS
from constrain.engine.storage.statuses import IN_GROUPS, NO_GROUPS, STOPPED
from constrain.engine.traveller import Traveller
from constrain.engine.vocabulary.bitmasks import Bitmask, allow, forbid

Int32Array = np.ndarray[Any, np.dtype[np.int32]]

# All are dropped when there are more tokens than this in all of a compiled grammar's: 16 MB.
_MOST_TOKENS = 2_000_000

# Larger counts are not taken for the usual case.
_MOST_USUAL = 4095

_ROOM = 64


def _kept(compiled: GrammarTables, count: int, least: int) -> tuple[Int32Array, Int32Array, int]:
    """Of the first ``count`` tokens in TOKEN_COSTS those that need more than ``least``; for ALL, all but the usual.

    Returns them, their counts, and what the others need at most.
    """
    listed = compiled._tables.array(TOKEN_COSTS)[:count]
    counts = listed["count"]
    usual = least
    if least == ALL:
        usual = int(np.bincount(np.minimum(counts, _MOST_USUAL), minlength=1).argmax())
        usual = NEVER if usual == _MOST_USUAL else usual
    kept = listed[counts > usual if least > ALL else counts != usual]
    return kept["token"], kept["count"], usual


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
    open_nodes : list of int
        Trie nodes: what tokens at and below them need, depends on the text.

    Attributes
    ----------
    highest : int
        From this budget on the mask is the one without a budget.
    """

    def __init__(
        self, tokens: Int32Array, counts: Int32Array, usual: int, valid_from: int, open_nodes: list[int]
    ) -> None:
        self.valid_from, self.usual = valid_from, usual
        self.open_nodes = open_nodes
        self._tokens, self._counts = tokens, counts
        self.highest = usual
        self.size = len(counts) + len(open_nodes) + 16
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


class TokenCosts:
    """Those of all states of a compiled grammar that were asked for.

    Attributes
    ----------
    enough : dict of int
        For states of which this can be said: with so many tokens left, any next token that the grammar allows is
        allowed by a budget, whatever the text is.
    generation : int
        That of the compiled grammar whose states these are.
    key_costs : KeyCosts, optional
        For a grammar with keys that must differ.
    """

    def __init__(self, compiled: GrammarTables) -> None:
        self.key_costs = key_costs_of(compiled)
        self._states: dict[int, StateCosts] = {}
        self.enough: dict[int, int] = {}
        self.generation = compiled.generation
        self._tables_made = compiled.tables_made
        self._size = 0
        # By lexer state, whose number is good as long as the tables are the same: tokens that are not of the largest
        # group, their groups, the largest group, and a token of each group.  None where tokens cannot be grouped.
        self._groups: dict[int, tuple[Int32Array, Int32Array, int, Int32Array] | None] = {}
        self._needed = np.zeros(1, np.int64)
        self._bounds: Bounds | None = None
        ir = compiled.ir
        # Bounds know of rules and of text: of no keys that differ, no limits, and no tokens that stand for themselves.
        beyond = (self.key_costs, ir.make_unfolding, ir.parse_table, *ir.token_limits, *compiled.spelled_ids)
        self._has_no_bounds = any(each is not None for each in beyond)

    def of(self, compiled: GrammarTables, place: Place, most: int) -> StateCosts:
        """What is known for a budget of ``most`` after the next token.

        The caller holds the lock.
        """
        # No text takes more, and a kernel takes no number of any size.
        most = min(most, NEVER)
        if self.generation != compiled.generation:
            self._clear(compiled)
        found = self._states.get(place._state)
        if found is not None and most >= found.valid_from:
            return found
        # Lexer masks may have to be made.
        compiled.share_scratch()
        new = self._new(compiled, place, most, found is not None)
        if self._size > _MOST_TOKENS:
            self._groups.clear()
        if self.generation != compiled.generation or self._size > _MOST_TOKENS:
            self._clear(compiled)
        elif found is not None:
            self._size -= found.size
        self._size += new.size
        self._states[place._state] = new
        if not new.open_nodes:
            self.enough[place._state] = 1 + max(self._ample(compiled, new), new.valid_from)
        return new

    def is_surely_enough(self, compiled: GrammarTables, place: Place, most: int, row: Any) -> bool:
        """Whether a budget of ``most`` after the next token is enough for all of a mask, as far as bounds.py tells.

        It is asked where masks are made by cores: to look at each token takes far longer there.  The caller holds the
        lock.
        """
        if self.generation != compiled.generation:
            self._clear(compiled)
        state = place._state
        if self._has_no_bounds or state in self._states or not compiled._tables.used(ROOTS):
            return False
        if self._bounds is None:
            self._bounds = Bounds(compiled)
        most = min(most, NEVER - 1)
        if most < self._bounds.least:
            return False
        bound = self._bounds.behind_any_token(compiled, state, row)
        if bound > most:
            return False
        self.enough[state] = 1 + bound
        return True

    def _new(self, compiled: GrammarTables, place: Place, most: int, is_known: bool) -> StateCosts:
        """The costs of the tokens of a state, for a budget of ``most`` and above at least.

        ``is_known``: whether they are known for larger ones.
        """
        count = IN_GROUPS if is_known else compiled.run_at(place, cost_tokens, most, self._needed)
        if count == IN_GROUPS:
            # Too many are near the limit: everything is looked at, for as many budgets as there are tokens to come.
            new = self._by_groups(compiled, place, most)
            if new is not None:
                return new
            count = compiled.run_at(place, cost_tokens, ALL, self._needed)
        # Most tokens in a string leave the same behind, or are known to leave little enough.
        least = int(self._needed[0])
        tokens, counts, usual = _kept(compiled, count, least)
        return StateCosts(tokens, counts, usual, max(least, 0), compiled._tables.get(OPEN_NODES).tolist())

    def _ample(self, compiled: GrammarTables, new: StateCosts) -> int:
        """What is enough for all tokens of a state, whatever the text is."""
        # Twice as many and some more: rules that depend on the text leave room for one more difference.
        ample = 2 * new.highest + _ROOM
        return ample if self.key_costs is None else max(ample, self.key_costs.ample(compiled, new.highest))

    def _by_groups(self, compiled: GrammarTables, place: Place, most: int) -> StateCosts | None:
        """The costs of the tokens of a state by the lexer states that they lead to; None if that cannot be done."""
        tables = compiled._tables
        lexer_state = compiled.only_lexer_state(place)
        if lexer_state is None:
            return None
        if lexer_state not in self._groups:
            count = compiled._run(group_tokens, lexer_state)
            if count == NO_GROUPS:
                self._groups[lexer_state] = None
            else:
                tokens, groups, usual = _kept(compiled, count, ALL)
                examples = tables.get(SEARCH_WAYS)["step"].copy()
                self._size += len(tokens) + len(examples)
                self._groups[lexer_state] = tokens, groups, usual, examples
        found = self._groups[lexer_state]
        if found is None:
            return None
        tokens, groups, usual_group, examples = found
        ends = np.empty(len(examples), np.int32)
        for group, token in enumerate(examples.tolist()):
            result = compiled.run_at(place, push_token, token, NO_COMPANION)
            if result == STOPPED:
                return None
            link = compiled.generation, place._state, token, place._parent
            ends[group] = tokens_from(compiled, Traveller(compiled, unpack(result)[0], link))
        count = compiled.run_at(place, cost_tokens, CROSSINGS_ONLY - max(most, 0), self._needed)
        crossing = tables.array(TOKEN_COSTS)[:count]
        usual = int(ends[usual_group]) if len(ends) else 0
        listed = np.concatenate((tokens, crossing["token"]))
        counts = np.concatenate((ends[groups], crossing["count"]))
        others = counts != usual
        valid_from = max(int(self._needed[0]), 0)
        return StateCosts(listed[others], counts[others], usual, valid_from, tables.get(OPEN_NODES).tolist())

    def decide_open(
        self, compiled: GrammarTables, place: Place, nodes: list[int], most: int, out: Bitmask, index: int
    ) -> None:
        """Allow those tokens at and below trie nodes that leave no more than ``most``, after the text as it is.

        Row ``index`` of ``out`` is as it is with others decided.
        """
        trie, todo = compiled.vocabulary.trie, sorted(nodes)
        for node, ahead in places_at(compiled, place, todo):
            for first in trie.token[node : node + int(trie.size[node])].tolist():
                for token in trie.same_as(first):
                    forbid(out[index], token)
            if ahead._state == 0:
                continue
            n = compiled.run_at(ahead, cost_below, node)
            listed = compiled._tables.array(TOKEN_COSTS)[:n]
            for token in listed["token"][listed["count"] <= most].tolist():
                allow(out[index], token)
            # Further ones are decided with what is known of the text by then.
            for further in compiled._tables.get(OPEN_NODES).tolist():
                heappush(todo, further)

    def _clear(self, compiled: GrammarTables) -> None:
        self._states.clear()
        self.enough.clear()
        if self._tables_made != compiled.tables_made:
            self._groups.clear()
            self._bounds = None
        if self._bounds is not None:
            self._bounds.forget_sets()
        self._size = 0
        self.generation, self._tables_made = compiled.generation, compiled.tables_made
