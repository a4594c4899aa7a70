"""Completions of texts that a lexer and an LALR parser read (``lexing="longest"``).

What finishes an LALR stack is not a sum over its parts: the lexer may read on over the end of a lexeme, and conflicts
are resolved by what follows.  So a completion is searched for, best first over the recognizer's states: each step is
one of the engine, and what is found is a text of the grammar for certain.  The estimate of what is left (stack_costs.py
and the rest of the lexeme under way) counts more than what was spent.  So the search goes straight to some end, which
is rarely much longer than the shortest one.

The steps are bytes that are tokens of their own, and the text that is found is then spelled with the fewest tokens.
If there is no such text the steps are tokens.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple, TypeVar

import numpy as np

from constrain.engine.conditions.budget import costs
from constrain.engine.conditions.budget.expression_costs import MISSING, NEVER
from constrain.engine.conditions.budget.known_completions import NO_COMPLETION, NoCompletionError, fewest_tokens
from constrain.engine.conditions.budget.stack_costs import Closing, closing_costs
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.mask_memo import write_mask
from constrain.engine.parser import configurations as states
from constrain.engine.parser.companions import STATE_BITS
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import CLASSES
from constrain.engine.traveller import Traveller, push_token
from constrain.engine.vocabulary.bitmasks import ids_in_mask, words_for
from constrain.engine.vocabulary.vocabulary import NORMAL
from constrain.errors import LimitError
from constrain.grammar.parse_table import ParseTable
from constrain.limits import spend

_MOST_STEPS, _STEPS_PER_BYTE = 200_000, 100
"""Steps of the engine that a search may take, and how many more for each byte that it expects to need."""

_WEIGHT = 3
"""How much more the estimate counts than what was spent."""

_FEW_LEXEMES = 8
"""Of at most so many lexemes that are under way it is looked at what the parser makes of each."""

_MOST_ON_TOP = 1_000
"""A parser that reduces empty rules for ever is no way to finish."""

_MOST_KEPT = 200_000
"""All that was found is dropped when it is more states, and configurations, than this."""

_LONGER = 4
"""A way that is known is taken if it has fewer than so many bytes more than expected."""

_Result = TypeVar("_Result")

_UNKNOWN: Final = [-1]

# A stack: the state on top, and the Earley set below it.
_Stack = tuple[int, int]


def stack_completions(compiled: GrammarTables) -> StackCompletions:
    """Those of a grammar, which keep what they found.  The budget's tables are there.  The caller holds the lock."""
    found: StackCompletions = compiled.kept(StackCompletions)
    return found


def _closings(compiled: GrammarTables, table: ParseTable) -> list[dict[Closing, int]]:
    """What all searches of a grammar are led by."""
    # The indents and dedents that come with a line end cost nothing more.
    terminal_costs = [0] * table.columns
    known: dict[int, int] = {}
    expressions = compiled._tables.array(t.LEXEMES)["expression"].tolist()
    for lexeme, role in enumerate(table.lexemes):
        if role.column >= 0:
            cost = compiled._run(costs.expression_cost_of, expressions[2 * lexeme])
            known[role.column] = min(cost, known.get(role.column, NEVER))
    for column, cost in known.items():
        terminal_costs[column] = cost
    return closing_costs(table, terminal_costs)


class SearchLimitError(LimitError):
    """A search took more steps than it may."""


def _too_hard() -> SearchLimitError:
    return SearchLimitError('no completion of the text was found in time: its grammar (lexing="longest") is too hard')


class _NoRoomError(LimitError):
    """Memory ran out, and what is not needed was forgotten: all has other numbers now."""


def once_more(work: Callable[[], _Result]) -> _Result:
    """What ``work`` returns; it begins again if memory ran out, as much is free then.

    Raises LimitError if that was not enough.
    """
    try:
        return work()
    except _NoRoomError:
        return work()


class _Way(NamedTuple):
    """How a state goes on to an end: its next step, the state behind it, and how many steps there are in all."""

    step: int
    there: int
    left: int


_END = _Way(-1, -1, 0)


class StackCompletions:
    """The completions of the texts of a grammar.

    What is found is kept until states get other numbers.  A search ends at a state of which a completion is known.

    Attributes
    ----------
    steps : int
        How many steps of the engine all searches took.
    """

    def __init__(self, compiled: GrammarTables) -> None:
        self._compiled = compiled
        assert compiled.ir.parse_table is not None
        self._table = compiled.ir.parse_table
        self._closings = _closings(compiled, self._table)
        self.steps = 0
        self._begin_bytes()
        self._forget()

    def _begin_bytes(self) -> None:
        byte_costs = self._compiled._tables.array(t.BYTE_COSTS)["cost"].tolist()
        class_of = self._compiled._tables.array(t.BYTE_CLASSES).tolist()
        # The bytes of a class all do the same; printable ones are preferred.
        best: dict[int, int] = {}
        for byte in sorted(range(256), key=lambda byte: (not 32 <= byte < 127, byte)):
            if byte_costs[byte] < MISSING:
                best.setdefault(class_of[byte], byte)
        self._bytes = list(best.values())

    def _forget(self) -> None:
        """Drop all that goes by numbers of the engine."""
        self._found: dict[int, list[int] | None] = {}
        # By state: the effort that a search for its completion took in vain.
        self._given_up: dict[int, int] = {}
        # By state, for steps that are bytes and for those that are tokens.
        self._byte_ways: dict[int, _Way] = {}
        self._token_ways: dict[int, _Way] = {}
        # What is left: by state, by configuration, by expression, and behind the terminal of a column at an Earley set.
        self._estimate = cache(self._estimate_state)
        self._estimate_of = cache(self._estimate_configuration)
        self._rest_of = cache(self._find_rest)
        self._behind = cache(self._find_behind)
        # By lexer state.
        self._lexemes_under_way = cache(self._find_lexemes)
        # What is left of a stack.
        self._finished: dict[_Stack, int] = {}
        # By Earley set; stacks that the engine has not made have numbers of their own.
        self._stacks: dict[int, _Stack] = {}
        self._own_numbers: dict[_Stack, int] = {}
        # The last: whoever is interrupted before has all forgotten once more.
        self._generation = self._compiled.generation

    def _check_numbers(self) -> None:
        known = (self._estimate.cache_info().currsize, self._estimate_of.cache_info().currsize, len(self._found))
        if self._generation != self._compiled.generation or sum(known) > _MOST_KEPT:
            self._forget()

    def tokens(self, place: Place, effort: int | None = None) -> list[int]:
        """The tokens of a completion of a place's text; none where it may end.

        Parameters
        ----------
        place : Place
        effort : int
            How many steps of the engine it may take, beside some for each byte that is expected; by default very many.

        Raises
        ------
        NoCompletionError
            If the tokens of the vocabulary spell none.
        SearchLimitError
            If the search would take longer.
        LimitError
            If memory runs out.
        """
        with self._compiled.keeping_numbers():
            self._check_numbers()
            found = self._found.get(place._state, _UNKNOWN)
            if found is _UNKNOWN:
                if effort is not None and self._given_up.get(place._state, 0) >= effort:
                    raise _too_hard()
                most = _MOST_STEPS if effort is None else effort
                try:
                    found = self._search(place, most)
                except SearchLimitError:
                    self._given_up[place._state] = most
                    raise
                self._found[place._state] = found
            if found is None:
                raise NoCompletionError(NO_COMPLETION)
            return found

    def give_up(self, place: Place, effort: int) -> None:
        """Have :meth:`tokens` raise an error for so much effort or less, unless the completion is known."""
        self._given_up.setdefault(place._state, effort)

    def estimate(self, place: Place) -> int:
        """What is left of a place's text, in bytes; NEVER if no lexeme that is under way can end.

        Raises LimitError if memory runs out, as :meth:`tokens` does.
        """
        self._check_numbers()
        return self._estimate(place._state)

    def _search(self, place: Place, effort: int) -> list[int] | None:
        found = self._best_first(place, effort, self._byte_steps, self._byte_ways)
        if found is not None:
            # The next ways are likely to be of the same bytes.
            self._bytes = list(dict.fromkeys((*found, *self._bytes)))
            return fewest_tokens(self._compiled, bytes(found))
        if len(self._bytes) == self._compiled.ctx[CLASSES]:
            return None
        return self._best_first(place, effort, self._token_steps, self._token_ways)

    def _best_first(
        self,
        place: Place,
        effort: int,
        next_steps: Callable[[Traveller], Iterator[tuple[int, int]]],
        known: dict[int, _Way],
    ) -> list[int] | None:
        """The steps to a state in which the text may end; None if none leads there.

        ``next_steps`` gives the steps at a place, and the states that they lead to.  A step that leads nearer to
        the end by the estimate is followed at once; the other steps of its state come later, if they are needed.
        """
        begin = place._state
        at = Traveller(self._compiled, begin, place._parent)
        estimate = self._estimate(begin)
        self._left = effort + _STEPS_PER_BYTE * estimate
        # By state: the step that led there, from where, and how many there were.
        ways: dict[int, tuple[int, int, int]] = {begin: (-1, -1, 0)}
        # By state: the steps that were not tried yet.
        others: dict[int, Iterator[tuple[int, int]]] = {}
        todo = [(estimate, 0, begin)]
        while todo:
            _, spent, here = heapq.heappop(todo)
            spent = -spent
            if ways[here][2] < spent:
                continue
            if here in known or self._accepts(here):
                return self._note_ways(begin, here, ways, known)
            at._state = here
            expected = self._estimate(here)
            steps = others.pop(here, None) or next_steps(at)
            for step, there in steps:
                if there in ways and ways[there][2] <= spent + 1:
                    continue
                estimate = self._estimate(there)
                if estimate == NEVER:
                    continue
                ways[there] = (step, here, spent + 1)
                if there in known and known[there].left < expected + _LONGER:
                    return self._note_ways(begin, there, ways, known)
                # Of equally good ones first the one that is farther on.
                heapq.heappush(todo, (spent + 1 + _WEIGHT * estimate, -spent - 1, there))
                if estimate < expected:
                    others[here] = steps
                    heapq.heappush(todo, (spent + 1 + _WEIGHT * expected, -spent, here))
                    break
        return None

    def _note_ways(
        self, begin: int, end: int, ways: dict[int, tuple[int, int, int]], known: dict[int, _Way]
    ) -> list[int]:
        """Keep the way that was found for all states on it; its steps."""
        rest = known.setdefault(end, _END)
        here = end
        while here != begin:
            step, before, _ = ways[here]
            rest = known[before] = _Way(step, here, rest.left + 1)
            here = before
        steps = []
        while rest.left:
            steps.append(rest.step)
            rest = known[rest.there]
        return steps

    def _byte_steps(self, at: Traveller) -> Iterator[tuple[int, int]]:
        for byte in self._bytes:
            there = self._push_byte(at, byte)
            if there > 0:
                yield byte, there

    def _token_steps(self, at: Traveller) -> Iterator[tuple[int, int]]:
        vocabulary = self._compiled.vocabulary
        mask = np.zeros((1, words_for(vocabulary.size)), np.int32)
        write_mask(self._compiled, at, mask, 0)
        self._check_room()
        for token in ids_in_mask(mask[0]).tolist():
            if vocabulary.kinds[token] == NORMAL:
                self._spend()
                there = push_token(self._compiled, at, token) & STATE_BITS
                self._check_room()
                yield token, there

    def _push_byte(self, at: Traveller, byte: int) -> int:
        self._spend()
        there = self._compiled.run_at(at, states.push_byte, byte)
        self._check_room()
        return there

    def _spend(self) -> None:
        spend()
        self.steps += 1
        self._left -= 1
        if self._left < 0:
            raise _too_hard()

    def _check_room(self) -> None:
        """Raise an error, of which :func:`once_more` knows, if numbers that a search goes by are no longer good.

        Each step may find that memory ended, and have all that is not needed forgotten.
        """
        if self._compiled.generation != self._generation:
            raise _NoRoomError("within the limit on memory (limit_bytes) no completion can be searched for")

    # -- estimates -------------------------------------------------------------------------------

    def _accepts(self, state: int) -> bool:
        return bool(states.accepts(self._compiled.ctx, state))

    def _estimate_state(self, state: int) -> int:
        """What is left in a state, in bytes; NEVER if no lexeme that is under way can end."""
        if self._accepts(state):
            return 0
        tables = self._compiled._tables
        record = tables.array(t.STATES)[state]
        first, count = int(record["offset"]), int(record["count"])
        return min(
            map(self._estimate_of, tables.array(t.CONFIGURATIONS)[first : first + count].tolist()), default=NEVER
        )

    def _estimate_configuration(self, configuration: tuple[int, int]) -> int:
        earley_set, lexer_state = configuration
        under_way = self._lexemes_under_way(lexer_state)
        if len(under_way) > _FEW_LEXEMES:
            return self._to_finish(self._stack_at(earley_set))
        return min((rest + self._behind(earley_set, column) for column, rest in under_way), default=NEVER)

    def _find_lexemes(self, lexer_state: int) -> list[tuple[int, int]]:
        """Their columns of the parser's table, and what is left of each, in bytes, if they are few."""
        tables = self._compiled._tables
        record = tables.array(t.LEXER_STATES)[lexer_state]
        first, end = int(record["offset"]), int(record["offset"] + 2 * record["count"])
        members = tables.array(t.LEXER_MEMBERS)[first:end].tolist()
        # A guard and a lexeme that the parser refuses lead nowhere.
        found = [
            (self._table.lexemes[lexeme // 2].column, expression)
            for lexeme, expression in zip(members[::2], members[1::2], strict=True)
            if self._table.is_read(lexeme)
        ]
        if len(found) <= _FEW_LEXEMES:
            found = [(column, self._rest_of(expression)) for column, expression in found]
        return found

    def _find_rest(self, expression: int) -> int:
        """What is left of a lexeme, in bytes."""
        cost = self._compiled._run(costs.expression_cost_of, expression)
        self._check_room()
        return cost

    def _find_behind(self, earley_set: int, column: int) -> int:
        """What is left behind a terminal that is read at a stack; NEVER if the parser cannot take it."""
        state, below = self._stack_at(earley_set)
        if column < 0:
            return self._to_finish((state, below))
        # The states on top that the parser has put there, above `below`.
        top = [state]
        while True:
            action = self._table.actions[top[-1] * self._table.columns + column]
            if action > 0:
                for each in top:
                    below = self._put(each, below)
                return self._to_finish((action - 1, below))
            if action == 0 or len(top) > _MOST_ON_TOP:
                return NEVER
            left, symbols = self._table.rules[-1 - action]
            for _ in range(symbols):
                if top:
                    top.pop()
                else:
                    below = self._stack_at(below)[1]
            if not top:
                state, below = self._stack_at(below)
                top.append(state)
            top.append(self._table.goto(top[-1], left))

    def _put(self, state: int, below: int) -> int:
        """A number for a stack with a state on top of another: that of no Earley set."""
        key = state, below
        if key not in self._own_numbers:
            number = -1 - len(self._own_numbers)
            # In this order: a number that is known has a stack, also after an interrupt.
            self._stacks[number] = key
            self._own_numbers[key] = number
        return self._own_numbers[key]

    def _stack_at(self, earley_set: int) -> _Stack:
        if earley_set not in self._stacks:
            tables = self._compiled._tables
            item = tables.array(t.EARLEY_ITEMS)[tables.array(t.EARLEY_SETS)[earley_set]["offset"]]
            self._stacks[earley_set] = int(item["dot"]), int(item["origin"])
        return self._stacks[earley_set]

    def _to_finish(self, stack: _Stack) -> int:
        """The least that finishes a stack, by Dijkstra's algorithm over the stacks that closing it leads to."""
        if stack in self._finished:
            return self._finished[stack]
        least = {stack: 0}
        before: dict[_Stack, _Stack] = {}
        todo = [(0, False, stack)]
        while todo:
            spend()
            spent, is_end, here = heapq.heappop(todo)
            if is_end:
                # All that led here are on a cheapest way.
                while True:
                    self._finished[here] = spent - least[here]
                    if here == stack:
                        return spent
                    here = before[here]
            if spent > least[here]:
                continue
            state, below = here
            left = 0 if state == self._table.last else self._finished.get(here)
            if left is not None:
                heapq.heappush(todo, (spent + left, True, here))
                continue
            for (symbols, nonterminal), cost in self._closings[state].items():
                there = self._closed(below, symbols, nonterminal)
                if spent + cost < least.get(there, NEVER):
                    least[there] = spent + cost
                    before[there] = here
                    heapq.heappush(todo, (spent + cost, False, there))
        self._finished[stack] = NEVER
        return NEVER

    def _closed(self, below: int, symbols: int, left: int) -> _Stack:
        """The stack behind a rule that takes the state above ``below`` and ``symbols - 1`` more."""
        for _ in range(symbols - 1):
            below = self._stack_at(below)[1]
        return self._table.goto(self._stack_at(below)[0], left), below
