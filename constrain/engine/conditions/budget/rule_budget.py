"""Budgets of texts that are read by rules: all but those that an LALR parser reads (stack_budget.py).

A token is allowed if the completion that budget/completions.py knows behind it is short enough.  Two cases need more:

* The only completion that fits was found by a search (budget/search.py).  Then the matcher keeps it as its *plan*,
  and the next token of the plan is allowed beside what is allowed anyway.
* The vocabulary is small.  Then the search is asked about every token that would be refused.

All kernels run under the lock of the compiled grammar.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from constrain.engine.conditions.budget import search as completion_search
from constrain.engine.conditions.budget.account import Account, Since
from constrain.engine.conditions.budget.budget import Budget, left_nothing, nothing_within, too_few
from constrain.engine.conditions.budget.completions import CHAIN_LIMIT
from constrain.engine.conditions.budget.completions_with_keys import rest_with_keys, without_repeated_keys
from constrain.engine.conditions.budget.cost_tables import prepare
from constrain.engine.conditions.budget.expression_costs import FAR, NEVER
from constrain.engine.conditions.budget.key_costs import TokensLeft
from constrain.engine.conditions.budget.known_completions import (
    NO_COMPLETION,
    NoCompletionError,
    completion_or_none,
    place_after,
    tokens_from,
)
from constrain.engine.conditions.budget.stack_completions import once_more, stack_completions
from constrain.engine.conditions.budget.token_costs import TokenCosts
from constrain.engine.conditions.protocol import Walk, condition_of
from constrain.engine.conditions.unique_keys.unique_keys import UniqueKeys, keys_after
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.parser.rules_on_demand import EnoughRulesError
from constrain.engine.storage import schemas as t
from constrain.engine.storage.statuses import REPEATED_KEY
from constrain.engine.traveller import Traveller
from constrain.engine.vocabulary.bitmasks import Bitmask, allow, is_allowed
from constrain.errors import ConstrainError

# Trie nodes that a search for a shorter completion may look at: at the start of a text some 10 ms; for a token of a
# small vocabulary, one with a trie of at most so many nodes, less than one.
_EFFORT = 400_000
_SMALL, _SMALL_EFFORT = 2_000, 20_000

# And where each step may mean that rules are made; in an object of 300 properties in any order, 300 for each member.
_EFFORT_WITH_RULES = 2_000
_MOST_BRANCHES = 30_000


def search(compiled: GrammarTables, place: Place, most: int, effort: int = _EFFORT) -> list[int] | None:
    """The shortest completion that can be found of at most ``most`` tokens, or None.  The caller holds the lock."""
    most = min(most, completion_search.MOST)
    if compiled.unfolded is None:
        count, way = _searched(compiled, place, most, effort)
    else:
        count, way = _searched_with_rules(compiled, place, most, min(effort, _EFFORT_WITH_RULES))
    if count == NEVER:
        return None
    ways = compiled._tables.get(t.PATH_WAYS)
    tokens = []
    while way >= 0:
        before, token = int(ways[way]["before"]), int(ways[way]["step"])
        if before >= 0:
            tokens.append(token)
        way = before
    tokens.reverse()
    rest = completion_or_none(compiled, place_after(compiled, place, tokens))
    return None if rest is None else tokens + rest


def _searched(compiled: GrammarTables, place: Place, most: int, effort: int) -> tuple[int, int]:
    found = np.zeros(2, np.int32)
    compiled.run_at(place, completion_search.search_completion, most, effort, found)
    count, way = found.tolist()
    return count, way


def _searched_with_rules(compiled: GrammarTables, place: Place, most: int, effort: int) -> tuple[int, int]:
    """The same where the text decides which rules there are: with less effort, where it would make too many."""
    assert compiled.unfolded is not None
    with compiled.unfolded.at_most(_MOST_BRANCHES):
        while effort:
            try:
                return _searched(compiled, place, most, effort)
            except EnoughRulesError:
                effort //= 2
    return NEVER, -1


def start_completion(compiled: GrammarTables) -> list[int] | None:
    """The shortest text that a search finds, as tokens; None if it finds none.  The caller holds the lock."""
    found = search(compiled, Traveller(compiled, compiled.start_state, None), completion_search.MOST)
    if found is not None and compiled.ir.distinct_keys:
        # The search does not know of keys that come again.
        keys = keys_after(compiled, None, b"".join([compiled.vocabulary.tokens[token] for token in found]))
        found = None if keys.status == REPEATED_KEY else found
    return found


def shortest_completion(cursor: Walk) -> list[int]:
    """The shortest completion known of a cursor's text, of those that its budget allows.  The caller holds the lock."""
    compiled = cursor.compiled
    prepare(compiled)
    budget = condition_of(cursor, Budget)
    if compiled.ir.parse_table is not None:
        plan = None if budget is None else budget.account.plan(cursor._steps)
        return list(plan or once_more(lambda: stack_completions(compiled).tokens(cursor)))
    count = tokens_from(compiled, cursor)
    found: list[int] | None = None
    distinct = _without_repeated_keys(cursor)
    if budget is not None:
        found = budget.account.plan(cursor._steps)
    if distinct is not None:
        # What has been planned may be shorter than what is found from here.
        return list(found) if found and len(found) < len(distinct) else distinct
    if budget is None and cursor._steps == 0:
        found = compiled.kept(start_completion)
    if found is not None and len(found) <= count:
        return list(found)
    tokens = completion_or_none(compiled, cursor)
    if tokens is None:
        tokens = found or search(compiled, cursor, completion_search.MOST)
    if tokens is None:
        raise NoCompletionError(NO_COMPLETION)
    if budget is not None and left_nothing(cursor) and len(tokens) > budget.settle(cursor._steps).left:
        raise nothing_within()
    return tokens


def _without_repeated_keys(cursor: Walk) -> list[int] | None:
    """A completion in which no key comes again, if that is not so for the known one.  The caller holds the lock."""
    keys = condition_of(cursor, UniqueKeys)
    if keys is None or not (keys.is_followed or cursor.compiled.ir.needs_distinct_keys):
        return None
    return without_repeated_keys(cursor.compiled, cursor, keys.at(cursor))


class RuleBudget(Budget):
    """The budget of a text that is read by rules."""

    def _begin(self, cursor: Walk) -> None:
        compiled = cursor.compiled
        # The search does not know of keys that come again, and takes too long where it has rules made.
        self._is_small = (
            len(compiled.vocabulary.trie.node) <= _SMALL
            and not compiled.ir.distinct_keys
            and compiled.ir.make_unfolding is None
        )
        self._costs = compiled.kept(TokenCosts)
        keys = condition_of(cursor, UniqueKeys)
        if keys is not None and compiled.ir.needs_distinct_keys:
            # They matter to what is left from the first token on.
            keys.follow_from_start()
        plan = _without_repeated_keys(cursor)
        if plan is None:
            self.account = Account(self.most, self._first_plan(cursor))
        elif len(plan) > self.most:
            raise too_few(self.most, len(plan))

    def _first_plan(self, cursor: Walk) -> Since | None:
        """The plan at the start, if the completion that is known does not fit."""
        compiled = cursor.compiled
        count = tokens_from(compiled, cursor)
        if count <= self.most:
            return None
        found = compiled.kept(start_completion)
        is_long = CHAIN_LIMIT < count < NEVER and count - CHAIN_LIMIT < self.most
        if is_long or (compiled.unfolded is not None and count < NEVER):
            # The end of it is cut into tokens after all, and where the text decides it is known what for.
            known = completion_or_none(compiled, cursor)
            found = min(filter(None, (found, known)), key=len, default=None)
        count = count if found is None else min(count, len(found))
        if count == NEVER:
            raise ConstrainError("no text of the grammar was found that the tokens of the vocabulary can spell")
        if found is None or len(found) > self.most:
            raise too_few(self.most, count)
        return 0, found, None

    def _token_account(self, cursor: Walk, token: int, behind: Place, most: int) -> Account | None:
        account, steps = self.account, cursor._steps
        if token == account.planned(steps):
            # Also where the completion that is known would do: what has been planned is allowed to its end.
            return account
        count = tokens_from(cursor.compiled, behind)
        keys, key_costs = condition_of(cursor, UniqueKeys), self._costs.key_costs
        if keys is None or key_costs is None:
            found = [] if count <= most else self._search_small(cursor.compiled, behind, most)
        elif not keys.is_followed:
            left = TokensLeft(cursor, keys, most)
            found = None if count > most else key_costs.rest_behind_first_key(left, token, count)
        elif key_costs.is_sure(cursor.compiled, count, keys.n_keys(cursor), most):
            found = []
        else:
            account = self._planned(cursor, account)
            if token == account.planned(steps):
                return account
            left = TokensLeft(cursor, keys, most, self._more_by_plan(cursor, account))
            found = None if count > most else key_costs.rest_behind(left, token, count)
        return None if found is None else account.with_plan(steps + 1, found)

    def _bytes_account(self, cursor: Walk, data: bytes, behind: Place, most: int) -> Account | None:
        # Where keys must differ, the completion behind the bytes is spelled out: they may be any part of a text, at any
        # price, so the plan of this place says nothing about it.
        account, steps = self._planned(cursor, self.account), cursor._steps
        rest = self._rest_of_plan(cursor, account, data)
        if rest is not None and len(rest) <= most:
            return account.with_plan(steps + 1, rest)
        # They may hold the first keys that must differ.
        compiled, keys = cursor.compiled, condition_of(cursor, UniqueKeys)
        count = tokens_from(compiled, behind)
        found: list[int] | None = None
        if keys is not None and count != NEVER:
            count, found = rest_with_keys(compiled, behind, keys.after(cursor, data))
        elif FAR <= count < NEVER:
            found = completion_or_none(compiled, behind)
            count = NEVER if found is None else len(found)
        elif count > most and not compiled.ir.distinct_keys:
            found = search(compiled, behind, most)
            count = NEVER if found is None else len(found)
        return None if count > most else account.with_plan(steps + 1, found or [])

    def _planned(self, cursor: Walk, account: Account) -> Account:
        """The account with a plan, if one is needed: where keys must not come again and no plan was made so far."""
        steps, keys, key_costs = cursor._steps, condition_of(cursor, UniqueKeys), self._costs.key_costs
        plan = account.plan(steps)
        if keys is None or key_costs is None or not keys.is_followed or plan:
            return account
        if tokens_from(cursor.compiled, cursor) == NEVER:
            return account
        plan = key_costs.rest_at(cursor, keys)
        if plan is None and cursor.compiled.ir.needs_distinct_keys:
            plan = completion_or_none(cursor.compiled, cursor)
        return account if plan is None else account.with_plan(steps, plan)

    def _more_by_plan(self, cursor: Walk, account: Account) -> int:
        """How many tokens more than the completion by the rules alone the plan takes, with which keys differ."""
        plan = account.plan(cursor._steps)
        return 0 if plan is None else max(len(plan) - tokens_from(cursor.compiled, cursor), 0)

    def _search_small(self, compiled: GrammarTables, place: Place, most: int) -> list[int] | None:
        """A completion of a place after a token, if the vocabulary is small enough to look for one each time."""
        return search(compiled, place, most, _SMALL_EFFORT) if self._is_small else None

    def _restrict(self, cursor: Walk, account: Account, out: Bitmask, index: int) -> Account:
        compiled = cursor.compiled
        most = account.left - 1
        if self._costs.is_surely_enough(compiled, cursor, most, out[index]):
            return account
        known = self._costs.of(compiled, cursor, most)
        keys, key_costs = condition_of(cursor, UniqueKeys), self._costs.key_costs
        if keys is None or key_costs is None:
            self._restrict_to(cursor, most, out, index)
            return account
        n_keys = keys.n_keys(cursor) if keys.is_followed else 1
        if not known.open_nodes and key_costs.is_sure(compiled, known.highest, n_keys, most):
            return account
        if not keys.is_followed:
            self._restrict_to(cursor, most, out, index)
            key_costs.restrict_first_key(TokensLeft(cursor, keys, most), out[index])
            return account
        account = self._planned(cursor, account)
        left = TokensLeft(cursor, keys, most, self._more_by_plan(cursor, account))
        key_costs.restrict(left, partial(self._restrict_to, cursor), out, index)
        return account

    def _restrict_to(self, cursor: Walk, most: int, out: Bitmask, index: int) -> None:
        """Make a mask that of the tokens whose known completion takes ``most`` at most."""
        compiled = cursor.compiled
        known = self._costs.of(compiled, cursor, most)
        if most >= known.highest and not known.open_nodes:
            return
        known.restrict(compiled.ctx, cursor._state, most, out, index)
        if known.open_nodes:
            self._costs.decide_open(compiled, cursor, known.open_nodes, most, out, index)
        if self._is_small:
            self._fill_by_search(cursor, most, out[index])

    def _fill_by_search(self, cursor: Walk, most: int, row: Any) -> None:
        """Allow also the tokens after which a search finds a completion that fits."""
        compiled = cursor.compiled
        for token in compiled.vocabulary.text_ids.tolist():
            if is_allowed(row, token):
                continue
            there = place_after(compiled, cursor, [token])
            if there._state and self._search_small(compiled, there, most) is not None:
                allow(row, token)
