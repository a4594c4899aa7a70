"""Budgets: how a matcher keeps within a number of tokens.

A token is allowed if the text after it can be finished in the tokens that are then left.  That is so if
the completion that budget/completions.py knows there is short enough.  Two cases need more:

* The only completion that fits was found by a search (budget/search.py).  Then the matcher keeps it as its *plan*,
  and the next token of the plan is allowed beside what is allowed anyway.
* The vocabulary is small.  Then the search is asked about every token that would be refused.

All kernels run under the lock of the compiled grammar.
"""

from __future__ import annotations

import operator
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from constrain.engine.conditions.budget import completions, costs
from constrain.engine.conditions.budget import search as completion_search
from constrain.engine.conditions.budget.completions import CHAIN_LIMIT
from constrain.engine.conditions.budget.completions_with_keys import without_repeated_keys
from constrain.engine.conditions.budget.expression_costs import NEVER
from constrain.engine.conditions.budget.known_completions import completion, fewest_tokens, place_after, tokens_from
from constrain.engine.conditions.budget.masks import allow_only
from constrain.engine.conditions.budget.token_costs import TokenCosts
from constrain.engine.conditions.unique_keys.unique_keys import DistinctKeys
from constrain.engine.history import Place, Traveller
from constrain.engine.parser.configurations import ENDED
from constrain.engine.storage.header import KEY_ENDED
from constrain.engine.storage.schemas import (
    AFTER_COSTS,
    BYTE_COSTS,
    CLASS_COSTS,
    COST_RESULT,
    COST_STACK,
    EARLEY_SET_COSTS,
    EXPRESSION_COSTS,
    PATH_WAYS,
    REST_COSTS,
    STATE_COSTS,
    SYMBOLS,
    TOKEN_WEIGHTS,
    UP_COSTS,
)
from constrain.engine.storage.statuses import REPEATED_KEY, STOPPED, halves
from constrain.engine.vocabulary.bitmasks import Bitmask, allow, is_allowed
from constrain.engine.vocabulary.vocabulary import NORMAL, Vocabulary
from constrain.errors import ConstrainError

if TYPE_CHECKING:
    from constrain.engine.compiled_grammar import CompiledGrammar
    from constrain.engine.matcher import Matcher

# Trie nodes that a search for a shorter completion may look at: at the start of a text some 10 ms; for a token of a
# small vocabulary, one with a trie of at most so many nodes, less than one.
_EFFORT = 400_000
_SMALL, _SMALL_EFFORT = 2_000, 20_000

# And where each step may mean that rules are made.
_EFFORT_WITH_RULES = 2_000

# Tokens that keys of a completion may need to differ, more or less.
_ROOM_FOR_KEYS = 64

# Tokens that it takes at most to make a key another one, and several of them that an object needs.
_RESERVE, _RESERVE_OF_NEEDED = 2, 8

# What the bytes cost in the tokens of each vocabulary.
_bytes: weakref.WeakKeyDictionary[Vocabulary, Any] = weakref.WeakKeyDictionary()

# Room for the first masks of most grammars.
_ROOM = {
    EXPRESSION_COSTS: 4096,
    EARLEY_SET_COSTS: 256,
    UP_COSTS: 4096,
    AFTER_COSTS: 2048,
    STATE_COSTS: 2048,
}

# The shortest completion of the start, of each compiled grammar that was asked for it; None if there is none.
_starts: weakref.WeakKeyDictionary[CompiledGrammar, list[int] | None] = weakref.WeakKeyDictionary()

_NO_TOKENS = np.empty(0, np.int32)

# Something that holds from a number of steps on, and what held before.
_Since = tuple[int, Any, Any]


class Account(NamedTuple):
    """Where a matcher stands with its budget: a value that is replaced as a whole, never changed."""

    left: int
    """How many more tokens there may be."""
    plans: _Since | None = None
    """Plans by the step from which they hold: tokens, or none where none is needed."""
    byte_steps: _Since | None = None
    """Steps of bytes, which may be any number of tokens."""

    def plan(self, steps: int) -> list[int] | None:
        """What is left of the plan after so many steps; None where none is needed."""
        if self.plans is None or not self.plans[1]:
            return None
        return self.plans[1][steps - self.plans[0] :]  # type: ignore[no-any-return]

    def planned(self, steps: int) -> int:
        """The next token of the plan, or -1."""
        if self.plans is None:
            return -1
        place = steps - self.plans[0]
        return self.plans[1][place] if place < len(self.plans[1]) else -1

    def with_plan(self, steps: int, plan: list[int]) -> Account:
        """The same with a plan from a step on, in place of what was planned from that step on."""
        plans = self.plans
        while plans is not None and plans[0] >= steps:
            plans = plans[2]
        if not plan and (plans is None or not plans[1]):
            return self if plans is self.plans else self._replace(plans=plans)
        return self._replace(plans=(steps, plan, plans))

    def spend(self, tokens: int) -> Account:
        """The same with so many tokens less."""
        return self._replace(left=self.left - tokens)

    def before(self, steps: int, count: int) -> Account:
        """The account as it was after so many steps, behind which ``count`` more have taken tokens."""
        left, plans, byte_steps = self.left + count, self.plans, self.byte_steps
        while byte_steps is not None and byte_steps[0] >= steps:
            left += byte_steps[1] - 1
            byte_steps = byte_steps[2]
        while plans is not None and plans[0] > steps:
            plans = plans[2]
        return Account(left, plans, byte_steps)


def prepare(compiled: CompiledGrammar) -> None:
    """Work out what does not depend on the text, once per compiled grammar.  The caller holds the lock."""
    if _make_tables not in compiled.table_makers:
        _make_tables(compiled)
        compiled.table_makers.append(_make_tables)


def _make_tables(compiled: CompiledGrammar) -> None:
    tables = compiled._tables
    tables.link()
    tables.reserve(COST_STACK, 1024)
    tables.allocate(COST_RESULT, 1)
    # A kernel that runs out of room begins again.
    for slot, size in _ROOM.items():
        tables.reserve(slot, size)
    known = _bytes.get(compiled.vocabulary)
    tables.put(CLASS_COSTS, np.zeros(256, np.int32))
    if known is None:
        tables.allocate(BYTE_COSTS, 256, 256)
        tables.allocate(TOKEN_WEIGHTS, 1, 1)
        completions.cost_bytes(tables.ctx)
        _bytes[compiled.vocabulary] = [(slot, tables.get(slot).copy()) for slot in (BYTE_COSTS, TOKEN_WEIGHTS)]
    else:
        for slot, values in known:
            tables.put(slot, values)
    if compiled._unfolded is not None:
        compiled._unfolded.work_out_costs()
        return
    tables.put(REST_COSTS, np.zeros(tables.used(SYMBOLS), np.int32))
    compiled._run(costs.cost_grammar)


def search(compiled: CompiledGrammar, place: Place, most: int, effort: int = _EFFORT) -> list[int] | None:
    """The shortest completion that can be found of at most ``most`` tokens, or None.  The caller holds the lock."""
    if compiled.ir.make_unfolding is not None:
        effort = min(effort, _EFFORT_WITH_RULES)
    found = np.zeros(3, np.int32)
    compiled.run_at(place, completion_search.search_completion, min(most, completion_search.MOST), effort, found)
    count, _proven, way = found.tolist()
    if count == NEVER:
        return None
    ways = compiled._tables.get(PATH_WAYS)
    tokens = []
    while way >= 0:
        before, token = int(ways[way]["before"]), int(ways[way]["step"])
        if before >= 0:
            tokens.append(token)
        way = before
    tokens.reverse()
    return tokens + completion(compiled, place_after(compiled, place, tokens))


def push(compiled: CompiledGrammar, place: Place, token: int) -> tuple[int, int]:
    """(state, tokens that finish the text) after a token; (0, 0) if it is refused.  The caller holds the lock."""
    result = compiled.run_at(place, completions.push_and_count, token)
    if result == STOPPED:
        there = place_after(compiled, place, [token])
        count = tokens_from(compiled, there) if there._state else 0
        return there._state, count
    return halves(result)


def start_completion(compiled: CompiledGrammar) -> list[int] | None:
    """The shortest text that a search finds, as tokens; None if it finds none.  The caller holds the lock."""
    if compiled not in _starts:
        found = search(compiled, Traveller(compiled, compiled.start_state, None), completion_search.MOST)
        if found is not None and compiled.has_distinct_keys:
            # The search does not know of keys that come again.
            keys = DistinctKeys(compiled.quote_tokens(), compiled.limited_keys, -1).at(compiled.recognizer()).copy()
            keys.read(b"".join([compiled.vocabulary.tokens[token] for token in found]))
            found = None if keys.status == REPEATED_KEY else found
        _starts[compiled] = found
    return _starts[compiled]


def shortest_completion(matcher: Matcher, budget: Budget | None) -> list[int]:
    """The shortest completion known of a matcher's text, of those that its budget allows."""
    compiled = matcher.compiled
    with compiled.lock:
        prepare(compiled)
        count = tokens_from(compiled, matcher)
        found: list[int] | None = None
        distinct = _without_repeated_keys(matcher)
        if distinct is not None:
            return distinct
        if budget is not None:
            found = budget.account.plan(matcher._steps)
        elif matcher._steps == 0:
            found = start_completion(compiled)
        elif count == NEVER:
            found = search(compiled, matcher, completion_search.MOST)
        if found is not None and len(found) <= count:
            return list(found)
        if count == NEVER:
            raise ConstrainError("no way to complete the text was found in the tokens of the vocabulary")
        return completion(compiled, matcher)


def _without_repeated_keys(matcher: Matcher) -> list[int] | None:
    """A completion in which no key comes again, if that is not so for the known one.  The caller holds the lock."""
    compiled = matcher.compiled
    if matcher._keys is None and not compiled.ir.needs_distinct_keys:
        return None
    keys = matcher._keys or DistinctKeys(compiled.quote_tokens(), compiled.limited_keys, -1)
    return without_repeated_keys(compiled, matcher, keys.at(matcher))


class Budget:
    """What a matcher knows about its budget.

    Parameters
    ----------
    matcher : Matcher
        At the start of the grammar.
    most : int
        How many tokens there may be.

    Attributes
    ----------
    account : Account
        How many more there may be, and the plans.  All that a step changes, in one place, so that a step can be undone.

    Raises
    ------
    ConstrainError
        If that is not a number of tokens, or too few for any text that is known.
    """

    def __init__(self, matcher: Matcher, most: int) -> None:
        try:
            self.most = operator.index(most)
        except TypeError:
            raise ConstrainError(f"max_tokens must be an integer, not {most!r}") from None
        if self.most < 0:
            raise ConstrainError(f"max_tokens must be at least 0, not {self.most}")
        self.account = Account(self.most)
        compiled = matcher.compiled
        self._costs = TokenCosts.shared(compiled)
        # The search does not know of keys that come again, and takes too long where it has rules made.
        self._is_small = (
            len(compiled.vocabulary.trie.node) <= _SMALL
            and not compiled.has_distinct_keys
            and compiled.ir.make_unfolding is None
        )
        with compiled.lock:
            prepare(compiled)
            if self.follows_keys(compiled):
                matcher._follow_keys()
            count = tokens_from(compiled, matcher)
            plan = _without_repeated_keys(matcher)
            if plan is not None and len(plan) > self.most:
                raise ConstrainError(
                    f"max_tokens is {self.most}, but the shortest text of the grammar that is known takes "
                    f"{len(plan)} tokens"
                )
            if count > self.most and plan is None:
                found = start_completion(compiled)
                if CHAIN_LIMIT < count < NEVER and count - CHAIN_LIMIT < self.most:
                    # The end of it is cut into tokens after all.
                    known = completion(compiled, matcher)
                    found = known if found is None or len(known) < len(found) else found
                count = count if found is None else min(count, len(found))
                if count == NEVER:
                    raise ConstrainError("no text of the grammar was found that the tokens of the vocabulary can spell")
                if found is None or len(found) > self.most:
                    raise ConstrainError(
                        f"max_tokens is {self.most}, but the shortest text of the grammar that is known takes "
                        f"{count} tokens"
                    )
                self.account = Account(self.most, (0, found, None))
        self._start = self.account

    @staticmethod
    def follows_keys(compiled: CompiledGrammar) -> bool:
        """Whether keys matter to what is left from the first token on: they may run out, or several are needed."""
        return compiled.ir.needs_distinct_keys or bool(compiled.ir.limited_keys)

    def copy(self) -> Budget:
        """One that goes its own way from here on."""
        twin = Budget.__new__(Budget)
        twin.__dict__.update(self.__dict__)
        return twin

    @property
    def left(self) -> int:
        """How many more tokens there may be."""
        return self.account.left

    def after(self, matcher: Matcher, token: int) -> Account | None:
        """The account after a token; None if the budget does not allow it.  The caller has the lock.

        Nothing changes; the caller puts the account in place when the step is taken.
        """
        account = self.account
        if account.left == 0:
            return None
        compiled, steps, most = matcher.compiled, matcher._steps, account.left - 1
        state, count = push(compiled, matcher, token)
        if state == 0:
            return None
        if count <= most and (matcher._keys is None or count <= self._most_of_known(matcher, account, most, count)):
            return account.with_plan(steps + 1, []).spend(1)
        account = self._planned(matcher, account)
        if token == account.planned(steps):
            return account.spend(1)
        found = self._search_small(compiled, place_after(compiled, matcher, [token]), most)
        return None if found is None else account.with_plan(steps + 1, found).spend(1)

    def _planned(self, matcher: Matcher, account: Account) -> Account:
        """The account with a plan, if one is needed: where keys must not come again and no plan was made so far."""
        steps = matcher._steps
        plan = account.plan(steps)
        if matcher._keys is None or plan or tokens_from(matcher.compiled, matcher) == NEVER:
            return account
        plan = _without_repeated_keys(matcher) or completion(matcher.compiled, matcher)
        return account.with_plan(steps, plan)

    def _most_of_known(self, matcher: Matcher, account: Account, most: int, highest: int) -> int:
        """The longest completion by the rules alone that leaves room for keys to be different; at most ``most``.

        Every token that does not follow the plan is held to it, in masks as by themselves; ``highest`` is the longest
        that is asked about.  A completion needs more by what the plan does, by as much again as it is longer than the
        one of this place (it then needs more keys), and by some tokens for a key that a token leads into.
        """
        if most >= 2 * highest + _ROOM_FOR_KEYS:
            return most
        here = tokens_from(matcher.compiled, matcher)
        if here == NEVER:
            return most
        plan = self._planned(matcher, account).plan(matcher._steps)
        needs_several = matcher.compiled.ir.needs_distinct_keys
        reserve = _RESERVE_OF_NEEDED if needs_several else _RESERVE
        enough = most - reserve - max(len(plan or ()) - here, 0)
        if needs_several and enough > here:
            enough = (enough + here) // 2
        return max(enough, (most - _ROOM_FOR_KEYS) // 2, 0)

    def _search_small(self, compiled: CompiledGrammar, place: Place, most: int) -> list[int] | None:
        """A completion of a place after a token, if the vocabulary is small enough to look for one each time."""
        return search(compiled, place, most, _SMALL_EFFORT) if self._is_small else None

    def push_bytes(self, matcher: Matcher, data: bytes, tokens: int | None) -> bool:
        """Go on with some bytes as one step, which counts as so many tokens, or as the fewest that spell them."""
        compiled = matcher.compiled
        account = self.account
        with compiled.lock:
            if tokens is None:
                found = fewest_tokens(compiled, data)
                if found is None:
                    return False
                tokens = len(found)
            elif type(tokens) is not int or tokens < 0:
                raise ConstrainError(f"tokens must be a number of tokens, not {tokens!r}")
            if tokens > account.left:
                return False
            left = account.left - tokens
            place = Traveller(compiled, matcher._state, matcher._parent)
            place.read(data)
            if place._state == 0:
                return False
            if (place.key_ended >= KEY_ENDED or matcher._keys is not None) and not matcher._read_keys(
                data, place._state | place.key_ended
            ):
                return False
            plan: list[int] = []
            if tokens_from(compiled, place) > left:
                searched = None if compiled.has_distinct_keys else search(compiled, place, left)
                if searched is None:
                    matcher._go_back_with_keys()
                    return False
                plan = searched
            steps = matcher._steps
            self.account = (
                account.with_plan(steps + 1, plan)
                .spend(tokens)
                ._replace(byte_steps=(steps, tokens, account.byte_steps))
            )
            matcher._go_to(place._state, data)
            return True

    def roll_back(self, matcher: Matcher, count: int) -> None:
        """Give back what the last ``count`` steps of the matcher, which is still after them, took."""
        if count:
            taken = count - (matcher._state == ENDED)
            self.account = self.account.before(matcher._steps - count, taken)

    def reset(self) -> None:
        """Go back to the start."""
        self.account = self._start

    def fill(self, matcher: Matcher, out: Bitmask, index: int) -> None:
        """Write the mask of the tokens that the matcher may go on with: those :meth:`after` has an account for."""
        compiled, account = matcher.compiled, self.account
        if account.left == 0:
            with compiled.lock:
                allow_only(compiled.ctx, matcher._state, out, index, _NO_TOKENS)
            return
        compiled.write_mask(matcher, out, index)
        most = account.left - 1
        with compiled.lock:
            known = self._costs.of(compiled, matcher, most)
            if matcher._keys is not None:
                enough = self._most_of_known(matcher, account, most, known.highest)
                if enough < most:
                    most = enough
                    known = self._costs.of(compiled, matcher, most)
            if most < known.highest or known.open_nodes:
                if matcher._keys is not None:
                    account = self._planned(matcher, account)
                known.restrict(compiled.ctx, matcher._state, most, out, index)
                if known.open_nodes:
                    self._costs.decide_open(compiled, matcher, known.open_nodes, most, out, index)
                if self._is_small:
                    self._fill_by_search(matcher, account.left - 1, out[index])
        planned = account.planned(matcher._steps)
        if planned >= 0:
            allow(out[index], planned)
        self.account = account

    def _fill_by_search(self, matcher: Matcher, most: int, row: Any) -> None:
        """Allow also the tokens after which a search finds a completion that fits."""
        compiled = matcher.compiled
        for token in np.flatnonzero(compiled.vocabulary.kinds == NORMAL).tolist():
            if is_allowed(row, token):
                continue
            there = place_after(compiled, matcher, [token])
            if there._state and self._search_small(compiled, there, most) is not None:
                allow(row, token)
