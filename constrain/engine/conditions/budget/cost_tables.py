"""The tables that budgets need of a grammar: what bytes, lexemes and rules cost."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from constrain.engine.conditions.budget import completions, costs
from constrain.engine.conditions.budget.costs_on_demand import UnfoldedCosts
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.storage import schemas as t
from constrain.engine.vocabulary.vocabulary import Vocabulary

# What the bytes cost in the tokens of each vocabulary.
_bytes: weakref.WeakKeyDictionary[Vocabulary, Any] = weakref.WeakKeyDictionary()

# Room for the first masks of most grammars.
_ROOM = {
    t.EXPRESSION_COSTS: 4096,
    t.EARLEY_SET_COSTS: 256,
    t.UP_COSTS: 4096,
    t.AFTER_COSTS: 2048,
    t.STATE_COSTS: 2048,
}


def prepare(compiled: GrammarTables) -> None:
    """Work out what does not depend on the text, once per compiled grammar.  The caller holds the lock."""
    compiled.extend_tables(_make_tables)


def _make_tables(compiled: GrammarTables) -> None:
    tables = compiled._tables
    tables.link()
    tables.reserve(t.COST_STACK, 1024)
    tables.allocate(t.COST_RESULT, 1)
    # A kernel that runs out of room begins again.
    for slot, size in _ROOM.items():
        tables.reserve(slot, size)
    known = _bytes.get(compiled.vocabulary)
    tables.put(t.CLASS_COSTS, np.zeros(256, np.int32))
    if known is None:
        tables.allocate(t.BYTE_COSTS, 256, 256)
        tables.allocate(t.TOKEN_WEIGHTS, 1, 1)
        completions.cost_bytes(tables.ctx)
        _bytes[compiled.vocabulary] = [(slot, tables.get(slot).copy()) for slot in (t.BYTE_COSTS, t.TOKEN_WEIGHTS)]
    else:
        for slot, values in known:
            tables.put(slot, values)
    rules = compiled.unfolded
    if rules is not None:
        # From now on for each rule that is made too.
        on_demand = UnfoldedCosts(tables, compiled._run, rules.unfolding, rules.symbols, rules.add_new)
        on_demand.begin()
        rules.when_added = on_demand.catch_up
        return
    if compiled.ir.parse_table is not None:
        # The rules of an LALR parser are not those of Earley sets: stack_completions.py.
        compiled._run(costs.begin_costs)
        return
    tables.put(t.REST_COSTS, np.zeros(tables.used(t.SYMBOLS), np.int32))
    compiled._run(costs.cost_grammar)
