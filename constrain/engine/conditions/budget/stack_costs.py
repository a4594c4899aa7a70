"""What it costs to finish the stacks of an LALR parser, in bytes of terminals; for ``lexing="longest"``.

It is an estimate that leads a search (stack_completions.py): the parser is taken to reduce whenever some terminal lets
it, and no lexer reads on over the end of a terminal.  All else is exact, so a stack is rarely dearer than estimated.

A parser state on top of a stack is *closed* by a rule: terminals are read, and the rule's right side, of which the
state is the last symbol or an earlier one, is reduced.  Closing costs do not depend on the stack below.  They are found
by Dijkstra's algorithm over rules that combine two costs (Knuth, 1977): if a state ``s`` is followed by ``r`` for some
cost, and ``r`` is closed by a rule that takes ``k`` symbols for another, then ``s`` is closed by the rule, with
``k - 1`` symbols left, for the sum; and where none is left, ``s`` is followed by the state of the rule's left side.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import NamedTuple

from constrain.grammar.parse_table import ParseTable


class Closing(NamedTuple):
    """How a state on top of a stack is closed: so many symbols are taken from the stack, and one is put there."""

    symbols: int
    left: int


def closing_costs(table: ParseTable, terminal_costs: list[int]) -> list[dict[Closing, int]]:
    """The costs of closing each state of a parser, in each way.

    Parameters
    ----------
    table : ParseTable
    terminal_costs : list of int
        By column: what its terminal costs at least.
    """
    closings: list[dict[Closing, int]] = [{} for _ in table.contexts]
    # By state: those that it follows, with what it costs to come from there.
    before: defaultdict[int, dict[int, int]] = defaultdict(dict)
    # An entry is (cost, state, state behind it or -1, how it is closed).
    todo: list[tuple[int, int, int, Closing]] = []
    none = Closing(0, 0)

    def offer(cost: int, state: int, closing: Closing) -> None:
        if closing.symbols:
            heapq.heappush(todo, (cost, state, -1, closing))
        else:
            heapq.heappush(todo, (cost, state, table.goto(state, closing.left), none))

    columns = table.columns
    for state in range(len(closings)):
        row = table.actions[state * columns : (state + 1) * columns]
        for rule in {-1 - action for action in row if action < 0}:
            left, length = table.rules[rule]
            offer(0, state, Closing(length, left))
        for column, action in enumerate(row[:-1]):
            if action > 0:
                heapq.heappush(todo, (terminal_costs[column], state, action - 1, none))
    while todo:
        cost, state, behind, closing = heapq.heappop(todo)
        if behind < 0:
            if closing in closings[state]:
                continue
            closings[state][closing] = cost
            for other, paid in before[state].items():
                offer(paid + cost, other, closing._replace(symbols=closing.symbols - 1))
        elif state not in before[behind]:
            before[behind][state] = cost
            for each, paid in closings[behind].items():
                offer(paid + cost, state, each._replace(symbols=each.symbols - 1))
    return closings
