"""Budgets: how a matcher keeps within a number of tokens.

A token is allowed if the text after it can be finished in the tokens that are then left.  That is so if
the completion that completions.py knows there is short enough.  Two cases need more:

* The only completion that fits was found by a search (completion_search.py).  Then the matcher keeps it as its *plan*,
  and the next token of the plan is allowed beside what is allowed anyway.
* The vocabulary is small.  Then the search is asked about every token that would be refused.

All kernels run under the lock of the compiled grammar.
"""

from __future__ import annotations

import operator
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from constrain.engine import completion_search, completions, costs
from constrain.engine.bitmask import Bitmask, allow, is_allowed
from constrain.engine.budget_masks import allow_only
from constrain.engine.completion_keys import without_repeated_keys
from constrain.engine.distinct_keys import DistinctKeys
from constrain.engine.history import Place, Traveller
from constrain.engine.known_completions import completion, fewest_tokens, tokens_from
from constrain.engine.node_costs import NEVER
from constrain.engine.states import ENDED
from constrain.engine.statuses import REPEATED_KEY, halves
from constrain.engine.tables import (
    AFTER_COSTS,
    BYTE_COSTS,
    COST_RESULT,
    COST_STACK,
    KEY_ENDED,
    NODE_COSTS,
    PATH_RECORDS,
    REST_COSTS,
    ROW_COSTS,
    STATE_COSTS,
    SYMBOLS,
    UP_COSTS,
)
from constrain.engine.token_costs import TokenCosts
from constrain.engine.vocabulary import NORMAL, Vocabulary
from constrain.errors import ConstrainError

if TYPE_CHECKING:
    from constrain.engine.compiled import CompiledGrammar
    from constrain.engine.matcher import Matcher

# Trie nodes that a search for a shorter completion may look at: at the start of a text some 10 ms; for a token of a
# small vocabulary, one with a trie of at most so many nodes, less than one.
_EFFORT = 400_000
_SMALL, _SMALL_EFFORT = 2_000, 20_000

# Tokens that keys of a completion may need to differ, more or less.
_ROOM_FOR_KEYS = 64

# Tokens that it takes at most to make a key another one, and several of them that an object needs.
_RESERVE, _RESERVE_OF_NEEDED = 2, 8

# What the bytes cost in the tokens of each vocabulary.
_bytes: weakref.WeakKeyDictionary[Vocabulary, Any] = weakref.WeakKeyDictionary()

# Room for the first masks of most grammars.
_ROOM = {NODE_COSTS: 5 * 4096, ROW_COSTS: 2 * 256, UP_COSTS: 4096, AFTER_COSTS: 2048, STATE_COSTS: 5 * 2048}

# The shortest completion of the start, of each compiled grammar that was asked for it; None if there is none.
_starts: weakref.WeakKeyDictionary[CompiledGrammar, list[int] | None] = weakref.WeakKeyDictionary()

_NO_TOKENS = np.empty(0, np.int32)

# Something that holds from a number of steps on, and what held before.
_Since = tuple[int, Any, Any]


def prepare(compiled: CompiledGrammar) -> None:
    """Work out what does not depend on the text, once per compiled grammar.  The caller holds the lock."""
    if not compiled.supports_budget:
        raise ConstrainError(
            "max_tokens and completions are not supported for a grammar whose rules are made as a text comes to them "
            "(objects in any order of keys, uniqueItems over free values)"
        )
    if _make_tables not in compiled.table_makers:
        _make_tables(compiled)
        compiled.table_makers.append(_make_tables)


def _make_tables(compiled: CompiledGrammar) -> None:
    tables = compiled._tables
    tables.link()
    tables.reserve(COST_STACK, 1024)
    tables.allocate(COST_RESULT, 3)
    # A kernel that runs out of room begins again.
    for slot, size in _ROOM.items():
        tables.reserve(slot, size)
    known = _bytes.get(compiled.vocabulary)
    tables.put(BYTE_COSTS, np.zeros(completions.BYTE_COST_FIELDS, np.int32) if known is None else known)
    if known is None:
        completions.cost_bytes(tables.ctx)
        _bytes[compiled.vocabulary] = tables.get(BYTE_COSTS).copy()
    tables.put(REST_COSTS, np.zeros(len(tables.array(SYMBOLS)), np.int32))
    compiled._run(costs.cost_grammar)


def search(compiled: CompiledGrammar, place: Place, most: int, effort: int = _EFFORT) -> list[int] | None:
    """The shortest completion that can be found of at most ``most`` tokens, or None.  The caller holds the lock."""
    found = np.zeros(3, np.int32)
    compiled.run_at(place, completion_search.search_completion, min(most, completion_search.MOST), effort, found)
    count, _proven, record = found.tolist()
    if count == NEVER:
        return None
    records = compiled._tables.get(PATH_RECORDS).reshape(-1, 4)
    end = Traveller(compiled, int(records[record][0]), None)
    tokens = []
    while record >= 0:
        _, _, before, token = records[record].tolist()
        if before >= 0:
            tokens.append(token)
        record = before
    return tokens[::-1] + completion(compiled, end)


def push(compiled: CompiledGrammar, place: Place, token: int) -> tuple[int, int]:
    """(state, tokens that finish the text) after a token; (0, 0) if it is refused.  The caller holds the lock."""
    return halves(compiled.run_at(place, completions.push_and_count, token))


def start_completion(compiled: CompiledGrammar) -> list[int] | None:
    """The shortest text that a search finds, as tokens; None if it finds none.  The caller holds the lock."""
    if compiled not in _starts:
        _starts[compiled] = search(compiled, Traveller(compiled, compiled.start_state, None), completion_search.MOST)
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
            found = budget.plan(matcher._steps)
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


def _repeats_keys(matcher: Matcher, tokens: list[int]) -> bool:
    """Whether a key comes again in a completion."""
    assert matcher._keys is not None
    ahead = matcher._keys.at(matcher).copy()
    ahead.read(b"".join([matcher.compiled.vocabulary.tokens[token] for token in tokens]))
    return ahead.status == REPEATED_KEY


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
    left : int
        How many more there may be.

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
        self.left = self.most
        # Plans by the step from which they hold: tokens, or none where none is needed.
        self._plans: _Since | None = None
        # Steps of bytes, which may be any number of tokens.
        self._byte_steps: _Since | None = None
        compiled = matcher.compiled
        self._costs = TokenCosts.shared(compiled)
        # The search does not know of keys that come again.
        self._is_small = len(compiled.vocabulary.trie.node) <= _SMALL and not compiled.has_distinct_keys
        with compiled.lock:
            prepare(compiled)
            if compiled.ir.needs_distinct_keys:
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
                count = count if found is None else min(count, len(found))
                if count == NEVER:
                    raise ConstrainError("no text of the grammar was found that the tokens of the vocabulary can spell")
                if found is None or len(found) > self.most:
                    raise ConstrainError(
                        f"max_tokens is {self.most}, but the shortest text of the grammar that is known takes "
                        f"{count} tokens"
                    )
                self._plans = (0, found, None)
        self._start = self._plans

    def copy(self) -> Budget:
        """One that goes its own way from here on."""
        twin = Budget.__new__(Budget)
        twin.__dict__.update(self.__dict__)
        return twin

    def plan(self, steps: int) -> list[int] | None:
        """What is left of the plan after so many steps; None where none is needed."""
        if self._plans is None or not self._plans[1]:
            return None
        return self._plans[1][steps - self._plans[0] :]  # type: ignore[no-any-return]

    def _planned(self, steps: int) -> int:
        """The next token of the plan, or -1."""
        if self._plans is None:
            return -1
        place = steps - self._plans[0]
        return self._plans[1][place] if place < len(self._plans[1]) else -1

    def push(self, matcher: Matcher, token: int) -> int:
        """The state after a token, which is taken off the budget; 0 if it is not allowed.  The caller has the lock."""
        if self.left == 0:
            return 0
        compiled = matcher.compiled
        state, count = push(compiled, matcher, token)
        if state == 0:
            return 0
        steps = matcher._steps
        if token != self._planned(steps):
            plan: list[int] | None = []
            if matcher._keys is not None and count + _ROOM_FOR_KEYS >= self.left:
                place = Traveller(compiled, state, None)
                plan = without_repeated_keys(compiled, place, matcher._keys.at(matcher)) or []
                state, count = place._state, max(count, len(plan))
            if count > self.left - 1:
                place = Traveller(compiled, state, None)
                plan = self._search_small(compiled, place)
                state = place._state
                if plan is None:
                    return 0
            if plan or self._plans is not None:
                self._plans = (steps + 1, plan, self._plans)
        self.left -= 1
        return state

    def _search_small(self, compiled: CompiledGrammar, place: Place) -> list[int] | None:
        """A completion of a place after a token, if the vocabulary is small enough to look for one each time."""
        return search(compiled, place, self.left - 1, _SMALL_EFFORT) if self._is_small else None

    def push_bytes(self, matcher: Matcher, data: bytes, tokens: int | None) -> bool:
        """Go on with some bytes as one step, which counts as so many tokens, or as the fewest that spell them."""
        compiled = matcher.compiled
        with compiled.lock:
            if tokens is None:
                found = fewest_tokens(compiled, data)
                if found is None:
                    return False
                tokens = len(found)
            elif type(tokens) is not int or tokens < 0:
                raise ConstrainError(f"tokens must be a number of tokens, not {tokens!r}")
            if tokens > self.left:
                return False
            place = Traveller(compiled, matcher._state, None)
            place.read(data)
            if place._state == 0:
                return False
            if (place.key_ended >= KEY_ENDED or matcher._keys is not None) and not matcher._read_keys(
                data, place._state | place.key_ended
            ):
                return False
            plan: list[int] | None = []
            if tokens_from(compiled, place) > self.left - tokens:
                plan = search(compiled, place, self.left - tokens)
                if plan is None:
                    matcher._go_back_with_keys()
                    return False
            steps = matcher._steps
            if plan or self._plans is not None:
                self._plans = (steps + 1, plan, self._plans)
            self._byte_steps = (steps, tokens, self._byte_steps)
            self.left -= tokens
            matcher._go_to(place._state, data)
            return True

    def roll_back(self, matcher: Matcher, count: int) -> None:
        """Give back what the last ``count`` steps of the matcher, which is still after them, took."""
        if count == 0:
            return
        steps = matcher._steps - count
        self.left += count - (matcher._state == ENDED)
        while self._byte_steps is not None and self._byte_steps[0] >= steps:
            self.left += self._byte_steps[1] - 1
            self._byte_steps = self._byte_steps[2]
        while self._plans is not None and self._plans[0] > steps:
            self._plans = self._plans[2]

    def reset(self) -> None:
        """Go back to the start."""
        self.left = self.most
        self._plans = self._start
        self._byte_steps = None

    def fill(self, matcher: Matcher, out: Bitmask, index: int) -> None:
        """Write the mask of the tokens that the matcher may go on with."""
        compiled = matcher.compiled
        if self.left == 0:
            with compiled.lock:
                allow_only(compiled.ctx, matcher._state, out, index, _NO_TOKENS)
            return
        compiled.write_mask(matcher, out, index)
        most = self.left - 1
        with compiled.lock:
            known = self._costs.of(compiled, matcher, most)
            if matcher._keys is not None and most < known.highest + _ROOM_FOR_KEYS:
                most -= self._plan_keys(matcher)
            if most < known.highest:
                known.restrict(compiled.ctx, matcher._state, most, out, index)
                if self._is_small:
                    self._fill_by_search(matcher, out[index])
        planned = self._planned(matcher._steps)
        if planned >= 0:
            allow(out[index], planned)

    def _plan_keys(self, matcher: Matcher) -> int:
        """Make a plan in which no key comes again; returns how many tokens have to be left beside those of completions.

        A token may lead into a key that is there, which then has to go on.
        """
        steps = matcher._steps
        plan = self.plan(steps)
        if not plan or _repeats_keys(matcher, plan):
            if tokens_from(matcher.compiled, matcher) == NEVER:
                return 0
            plan = _without_repeated_keys(matcher) or completion(matcher.compiled, matcher)
            before = self._plans[2] if self._plans is not None and self._plans[0] == steps else self._plans
            self._plans = (steps, plan, before)
        reserve = _RESERVE_OF_NEEDED if matcher.compiled.ir.needs_distinct_keys else _RESERVE
        return max(reserve, len(plan) - tokens_from(matcher.compiled, matcher))

    def _fill_by_search(self, matcher: Matcher, row: Any) -> None:
        """Allow also the tokens after which a search finds a completion that fits."""
        compiled = matcher.compiled
        for token in np.flatnonzero(compiled.vocabulary.kinds == NORMAL).tolist():
            if is_allowed(row, token):
                continue
            state, _ = push(compiled, matcher, token)
            if state and self._search_small(compiled, Traveller(compiled, state, None)) is not None:
                allow(row, token)
