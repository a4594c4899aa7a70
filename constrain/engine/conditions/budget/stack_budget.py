"""Budgets of texts that a lexer and an LALR parser read (``lexing="longest"``).

What is left of such a text is found by a search (stack_completions.py), which takes a millisecond or more.  So it is
asked only where it may matter: while there are twice as many tokens as the search is estimated to find bytes, and some
more, the estimate is believed.  Nearer to the end a token is allowed if the completion that is found behind it fits, or
if it is the next of the plan.
"""

from __future__ import annotations

import numpy as np

from constrain.engine.conditions.budget.account import Account
from constrain.engine.conditions.budget.budget import Budget, too_few
from constrain.engine.conditions.budget.expression_costs import NEVER
from constrain.engine.conditions.budget.known_completions import NoCompletionError
from constrain.engine.conditions.budget.reached_states import reached_states
from constrain.engine.conditions.budget.stack_completions import (
    SearchLimitError,
    StackCompletions,
    once_more,
    stack_completions,
)
from constrain.engine.conditions.budget.token_costs import StateCosts, TokenCosts
from constrain.engine.conditions.protocol import Walk
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.storage.schemas import TOKEN_COSTS
from constrain.engine.traveller import Traveller
from constrain.engine.vocabulary.bitmasks import Bitmask

_EFFORT = 1_000
"""Steps of the engine that looking for a completion behind a token may take."""

_EFFORT_OF_MASK = 200_000
"""Steps that all searches for one mask may take; tokens that are left then are not looked at."""

_MORE = 16
"""How many tokens more than twice the estimate are believed to be enough."""


class StackTokenCosts(TokenCosts):
    """What the tokens of each state leave to be finished, by the states that they lead to."""

    def __init__(self, compiled: GrammarTables) -> None:
        super().__init__(compiled)
        self.completions: StackCompletions = stack_completions(compiled)

    def surely(self, place: Place) -> int:
        """How many tokens are believed to finish a place's text; NEVER if nothing does."""
        estimate = self.completions.estimate(place)
        return NEVER if estimate >= NEVER else 2 * estimate + _MORE

    def completion(self, place: Place, most: int) -> list[int] | None:
        """A completion of a place's text of at most ``most`` tokens, or None if none is found."""
        try:
            found = self.completions.tokens(place, _EFFORT)
        except (NoCompletionError, SearchLimitError):
            return None
        return found if len(found) <= most else None

    def _new(self, compiled: GrammarTables, place: Place, most: int, is_known: bool) -> StateCosts:
        return once_more(lambda: self._costs_at(compiled, place, most))

    def _costs_at(self, compiled: GrammarTables, place: Place, most: int) -> StateCosts:
        last_step = self.completions.steps + _EFFORT_OF_MASK
        with compiled.keeping_numbers():
            count = compiled.run_at(place, reached_states)
            listed = compiled._tables.array(TOKEN_COSTS)[:count].copy()
            reached, firsts, group_of = np.unique(listed["count"], return_index=True, return_inverse=True)
            counts, usual = np.zeros(len(reached), np.int32), 0
            for group, (state, token) in enumerate(
                zip(reached.tolist(), listed["token"][firsts].tolist(), strict=True)
            ):
                behind = Traveller(compiled, state, (compiled.generation, place._state, token, place._parent))
                sure = self.surely(behind)
                if sure <= most:
                    usual = max(usual, sure)
                    continue
                if self.completions.steps >= last_step:
                    # Neither here nor where the token is accepted.
                    self.completions.give_up(behind, _EFFORT)
                found = self.completion(behind, NEVER)
                # With more tokens left the estimate is believed, and nothing is searched for.
                counts[group] = sure if found is None else min(len(found), sure)
        others = counts[group_of] > 0
        return StateCosts(listed["token"][others], counts[group_of][others], usual, usual, [])

    def _ample(self, compiled: GrammarTables, new: StateCosts) -> int:
        return new.highest


class StackBudget(Budget):
    """The budget of a text that an LALR parser reads."""

    _costs: StackTokenCosts

    def _begin(self, cursor: Walk) -> None:
        self._costs = cursor.compiled.kept(StackTokenCosts)
        plan = once_more(lambda: self._costs.completions.tokens(cursor))
        if len(plan) > self.most:
            raise too_few(self.most, len(plan))
        if not self._is_enough(cursor, self.most):
            self.account = self.account.with_plan(0, plan)

    def _is_enough(self, place: Place, most: int) -> bool:
        """Whether so many tokens are believed to finish a place's text."""
        return once_more(lambda: self._costs.surely(place)) <= most

    def _token_account(self, cursor: Walk, token: int, behind: Place, most: int) -> Account | None:
        account, steps = self.account, cursor._steps
        if self._is_enough(behind, most):
            return account.with_plan(steps + 1, [])
        if token == account.planned(steps):
            return account
        found = once_more(lambda: self._costs.completion(behind, most))
        return None if found is None else account.with_plan(steps + 1, found)

    def _bytes_account(self, cursor: Walk, data: bytes, behind: Place, most: int) -> Account | None:
        account, steps = self.account, cursor._steps
        rest = self._rest_of_plan(cursor, account, data)
        if rest is None and not self._is_enough(behind, most):
            rest = once_more(lambda: self._costs.completion(behind, most))
            if rest is None:
                return None
        return account.with_plan(steps + 1, rest or [])

    def _restrict(self, cursor: Walk, account: Account, out: Bitmask, index: int) -> Account:
        known = self._costs.of(cursor.compiled, cursor, account.left - 1)
        if account.left - 1 < known.highest:
            known.restrict(cursor.compiled.ctx, cursor._state, account.left - 1, out, index)
        return account
