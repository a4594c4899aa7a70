"""What it costs to finish rules that are made as texts are read: REST_COSTS for dots that come one by one.

For the rules of a grammar costs.py works out the least cost of every symbol at once.  Rules that are made later are
too many for that: instead the grammar's :class:`~constrain.grammar.ir.Unfolding` says of each branch what it costs to
go on from there, given what symbols cost.  What it says need not be the least, but it holds at every step: of the rules
of the branch there is one that costs no more.  So a completion that takes the cheapest rule each time still becomes
shorter with every byte, which is all that budgets rest on.

That does not hold where keys are left out that an object has (text_dependent/object_costs.py): the next one may cost
more than was said.  A completion that leads in a circle then takes another way (completions.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from constrain.engine.conditions.budget import costs
from constrain.engine.conditions.budget.expression_costs import FAR, NEVER
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.parser.rules import BRANCH, END
from constrain.engine.parser.rules_on_demand import UnfoldedRules
from constrain.engine.storage.header import START_NT
from constrain.engine.storage.schemas import LEXEMES, REST_COSTS, RULE_STARTS, RULES, SYMBOLS
from constrain.grammar import ir as ir_module
from constrain.grammar.ir import Symbol

assert (FAR, NEVER) == (ir_module.FAR, ir_module.NEVER)


class UnfoldedCosts:
    """Keeps REST_COSTS of one compiled grammar complete, in which some rules are made on demand."""

    def __init__(self, compiled: GrammarTables, rules: UnfoldedRules) -> None:
        self._tables = compiled._tables
        self._run = compiled._run
        self._unfolding = rules.unfolding
        # Nonterminal ``i`` of these is branch ``i``.
        self._unfolded = rules.symbols
        self._add_new = rules.add_new
        self._lexemes: dict[Symbol, int] = {}
        self._cost_of: Callable[[Symbol], int] = self._new_round()

    def begin(self) -> None:
        """Fill REST_COSTS for all dots that there are.

        Nonterminals that are unfolded may be made of each other, so at first none of them can be finished; then more
        and more can, and at less cost, until nothing changes.  Costs only fall, and there are no fractions of them.
        """
        tables = self._tables
        tables.put(REST_COSTS, np.full(tables.used(SYMBOLS), NEVER, np.int32))
        dots = {}
        for branch, symbol in enumerate(self._unfolded):
            first, end = tables.array(RULES)[symbol : symbol + 2].tolist()
            if first < end:
                dots[branch] = int(tables.array(RULE_STARTS)[first])
        # They come last of the dots that are not made as texts are read.
        if not dots:
            self._run(costs.cost_grammar)
            return
        base = max(dots.values()) + 2
        changes = True
        while changes:
            self._run(costs.cost_grammar)
            self._cost_of = self._new_round()
            changes = False
            for branch, dot in dots.items():
                [cost] = self._unfolding.costs([branch], self._cost_of)
                rest = tables.array(REST_COSTS)
                if cost < rest[dot]:
                    rest[dot], changes = cost, True
        tables.put(REST_COSTS, tables.array(REST_COSTS)[:base].copy())
        self.catch_up()

    def catch_up(self) -> None:
        """Fill REST_COSTS for the dots that were added."""
        tables, cost_of = self._tables, self._cost_of
        self._add_new()
        while tables.used(REST_COSTS) < tables.used(SYMBOLS):
            begin, end = tables.used(REST_COSTS), tables.used(SYMBOLS)
            symbols: list[int] = tables.array(SYMBOLS)[begin:end].tolist()
            branches = [symbol - BRANCH for symbol in symbols if BRANCH <= symbol != END]
            of_branches = self._unfolding.costs(branches, cost_of)
            rest = []
            behind = 0
            for symbol in reversed(symbols):
                if symbol < BRANCH:
                    behind = min(behind + cost_of(symbol), NEVER)
                else:
                    behind = 0 if symbol == END else of_branches.pop()
                rest.append(behind)
            # To ask for costs may have added rules.
            self._add_new()
            tables.append(REST_COSTS, np.array(rest[::-1], np.int32))

    def _new_round(self) -> Callable[[Symbol], int]:
        """A function that says what symbols cost, as far as that is known by now."""
        return _SymbolCosts(self._cost).__getitem__

    def _cost(self, symbol: Symbol) -> int:
        tables = self._tables
        if symbol < 0:
            cost = self._lexemes.get(symbol)
            if cost is None:
                if ~symbol >= tables.used(LEXEMES):
                    self._add_new()
                expression = int(tables.array(LEXEMES)[~symbol]["expression"])
                cost = self._lexemes[symbol] = self._run(costs.expression_cost_of, expression)
            return cost
        made = symbol - int(tables.ctx[START_NT]) - 1
        if made >= 0:
            return self._unfolding.costs([self._unfolding.nonterminals[made]], self._cost_of)[0]
        first, end = tables.array(RULES)[symbol : symbol + 2].tolist()
        starts = tables.array(RULE_STARTS)[first:end]
        return int(tables.array(REST_COSTS)[starts].min()) if len(starts) else NEVER


class _SymbolCosts(dict[Symbol, int]):
    """What symbols cost, each of which is asked for once."""

    def __init__(self, cost: Callable[[Symbol], int]) -> None:
        super().__init__()
        self._cost = cost

    def __missing__(self, symbol: Symbol) -> int:
        cost = self[symbol] = self._cost(symbol)
        return cost
