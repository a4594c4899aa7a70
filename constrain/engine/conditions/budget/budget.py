"""The condition that a text can be completed in so many tokens: what all budgets have in common.

A token is allowed if the text behind it can be finished in the tokens that are then left, as far as is known.  What is
known, is up to the kind of grammar: rule_budget.py for rules, stack_budget.py for what an LALR parser reads.
"""

from __future__ import annotations

import operator

import numpy as np

from constrain.engine.conditions.budget.account import Account
from constrain.engine.conditions.budget.cost_tables import prepare
from constrain.engine.conditions.budget.known_completions import fewest_tokens
from constrain.engine.conditions.budget.masks import allow_only
from constrain.engine.conditions.budget.token_costs import TokenCosts
from constrain.engine.conditions.protocol import Walk
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.parser.companions import NO_COMPANION, NOTE_BITS
from constrain.engine.vocabulary.bitmasks import Bitmask, allow
from constrain.errors import ConstrainError, GrammarError

_NEVER_ENOUGH = 1 << 62

_NO_TOKENS = np.empty(0, np.int32)

NOTE = NOTE_BITS + 1 >> 1
"""What a budget notes of every place."""


class Budget:
    """The condition (conditions/protocol.py) that a text can be completed in so many tokens.

    Parameters
    ----------
    cursor : Walk
        At the start of the grammar, under the lock of which this is made.
    most : int
        How many tokens there may be.

    Attributes
    ----------
    account : Account
        How many more there may be, and the plans.  All that a step changes, in one place, so that a step can be undone.
        Steps about which nobody asked the budget have not been paid for: see :meth:`settle`.

    Raises
    ------
    ConstrainError
        If that is not a number of tokens, or too few for any text that is known.
    """

    asks_always = True
    note = NOTE
    companion = NO_COMPANION
    _costs: TokenCosts

    def __init__(self, cursor: Walk, most: int) -> None:
        try:
            self.most = operator.index(most)
        except TypeError:
            raise ConstrainError(f"max_tokens must be an integer, not {most!r}") from None
        if self.most < 0:
            raise ConstrainError(f"max_tokens must be at least 0, not {self.most}")
        self.account = Account(self.most)
        # What the next step counts as, if it is one of bytes.
        self._price = 0
        prepare(cursor.compiled)
        self._begin(cursor)

    def _begin(self, cursor: Walk) -> None:
        """Set ``_costs``, and make a plan where one is needed at the start."""
        raise NotImplementedError

    def _token_account(self, cursor: Walk, token: int, behind: Place, most: int) -> Account | None:
        """The account with the plan behind a token, which leaves ``most``; None if the budget does not allow it."""
        raise NotImplementedError

    def _bytes_account(self, cursor: Walk, data: bytes, behind: Place, most: int) -> Account | None:
        """The same for bytes, which may be the next tokens of the plan."""
        raise NotImplementedError

    def _restrict(self, cursor: Walk, account: Account, out: Bitmask, index: int) -> Account:
        """Make a mask that of the tokens that are allowed beside the next one of the plan.

        There is a token left.  Returns the account, with a plan if one was needed.
        """
        raise NotImplementedError

    def restrict(self, cursor: Walk, out: Bitmask, index: int) -> None:
        """Make a mask that of the tokens that are allowed by :meth:`push` too."""
        account = self.settle(cursor._steps)
        if account.left == 0:
            allow_only(cursor.compiled.ctx, cursor._state, out, index, _NO_TOKENS)
            _check_left(cursor, out, index)
            return
        account = self._restrict(cursor, account, out, index)
        planned = account.planned(cursor._steps)
        if planned >= 0:
            allow(out[index], planned)
        compiled = cursor.compiled
        if compiled.spelled_ids and compiled.accepts(cursor):
            # The grammar may name an end token too, and what follows it there may be too long.
            for token in compiled.vocabulary.eos_ids:
                allow(out[index], token)
        _check_left(cursor, out, index)
        self.account = account

    def copy(self) -> Budget:
        """One that goes its own way from here on."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def settle(self, steps: int) -> Account:
        """The account after so many steps, all of which are paid for now."""
        if self.account.steps < steps:
            self.account = self.account.at(steps)
        return self.account

    def is_ample(self, compiled: GrammarTables, state: int, steps: int) -> bool:
        """Whether all that the grammar allows next is allowed by the budget too, for sure, so that nobody need ask it.

        So neither :meth:`restrict` nor :meth:`push` has anything to do, and the next step can be paid for later.  False
        where it is not known, which it is once a mask was asked for there.  The caller holds the lock.

        Parameters
        ----------
        compiled : GrammarTables
        state : int
            The state that is reached after ``steps`` steps of the text.
        steps : int
        """
        costs, (left, plans, byte_steps, settled) = self._costs, self.account
        keys = costs.key_costs
        return (
            left + settled - steps >= costs.enough.get(state, _NEVER_ENOUGH)
            and plans is None
            and costs.generation == compiled.generation
            and (keys is None or (steps <= keys.ample_steps and (byte_steps is None or keys.is_ample_behind_bytes)))
        )

    def can_pay(self, cursor: Walk, data: bytes, tokens: int | None) -> bool:
        """Let the next step, some bytes, count as so many tokens, or as the fewest that spell them; False if too many.

        Raises
        ------
        ConstrainError
            If that is not a number of tokens.
        """
        if tokens is None:
            found = fewest_tokens(cursor.compiled, data)
            if found is None:
                return False
            tokens = len(found)
        elif type(tokens) is not int or tokens < 0:
            raise ConstrainError(f"tokens must be a number of tokens, not {tokens!r}")
        self._price = tokens
        return tokens <= self.settle(cursor._steps).left

    def push(self, cursor: Walk, step: int | bytes, behind: Place, _word: int) -> bool:
        """Spend what a step takes; False if the text could not be completed behind it."""
        price = self._price if isinstance(step, bytes) else 1
        left = self.settle(cursor._steps).left - price
        if left < 0:
            return False
        account = (
            self._bytes_account(cursor, step, behind, left)
            if isinstance(step, bytes)
            else self._token_account(cursor, step, behind, left)
        )
        if account is None:
            return False
        account = account.spend(price)
        if isinstance(step, bytes):
            account = account._replace(byte_steps=(cursor._steps, price, account.byte_steps))
        self.account = account
        return True

    def _rest_of_plan(self, cursor: Walk, account: Account, data: bytes) -> list[int] | None:
        """What follows in the plan behind some bytes that its next tokens spell; None if they do not."""
        plan = account.plan(cursor._steps)
        if not plan:
            return None
        tokens = cursor.compiled.vocabulary.tokens
        count = length = 0
        while length < len(data) and count < len(plan):
            length += len(tokens[plan[count]])
            count += 1
        is_spelled = length == len(data) and b"".join([tokens[token] for token in plan[:count]]) == data
        return plan[count:] if is_spelled else None

    def rewind(self, steps: int) -> None:
        """Have back what the steps behind the first ``steps`` took."""
        if steps < self.account.steps:
            self.account = self.account.at(steps)


def left_nothing(cursor: Walk) -> bool:
    """Whether a hook has left nothing where a text was counted on, so that a budget may not be kept."""
    unfolded = cursor.compiled.unfolded
    return unfolded is not None and unfolded.has_left_nothing


def _check_left(cursor: Walk, out: Bitmask, index: int) -> None:
    if left_nothing(cursor) and not out[index].any():
        raise nothing_within()


def nothing_within() -> GrammarError:
    return GrammarError("narrow leaves nothing that could follow within max_tokens: other ways on take more tokens")


def too_few(most: int, count: int) -> ConstrainError:
    return ConstrainError(
        f"max_tokens is {most}, but the shortest text of the grammar that is known takes {count} tokens"
    )
