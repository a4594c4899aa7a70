"""The tables that budgets need of a grammar: what bytes, lexemes and rules cost."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from constrain.engine.conditions.budget import costs
from constrain.engine.conditions.budget.costs_on_demand import UnfoldedCosts
from constrain.engine.conditions.budget.expression_costs import MISSING, NEVER
from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.storage import schemas as t
from constrain.engine.vocabulary.vocabulary import Vocabulary

Records = np.ndarray[Any, Any]

# BYTE_COSTS and TOKEN_WEIGHTS of each vocabulary.
_known: weakref.WeakKeyDictionary[Vocabulary, tuple[Records, Records]] = weakref.WeakKeyDictionary()

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
    if compiled.vocabulary not in _known:
        _known[compiled.vocabulary] = _cost_bytes(compiled.vocabulary)
    bytes_, weights = _known[compiled.vocabulary]
    tables.put(t.BYTE_COSTS, bytes_)
    tables.put(t.TOKEN_WEIGHTS, weights)
    preferred = np.zeros(256, np.int32)
    # The last of the bytes of a class that is written is the one with the lowest rank.
    order = np.argsort(-bytes_["rank"])
    preferred[tables.array(t.BYTE_CLASSES)[order]] = order
    tables.put(t.CLASS_COSTS, preferred)
    rules = compiled.unfolded
    if rules is not None:
        # From now on for each rule that is made too.
        on_demand = UnfoldedCosts(compiled, rules)
        on_demand.begin()
        rules.when_added = on_demand.catch_up
        return
    if compiled.ir.parse_table is not None:
        # The rules of an LALR parser are not those of Earley sets: stack_completions.py.
        return
    tables.put(t.REST_COSTS, np.zeros(tables.used(t.SYMBOLS), np.int32))
    compiled._run(costs.cost_grammar)


def _cost_bytes(vocabulary: Vocabulary) -> tuple[Records, Records]:
    """BYTE_COSTS (256 records) and TOKEN_WEIGHTS (one) of a vocabulary.

    Of bytes with equal costs those are preferred, many of which make one token: where a completion has to fill a
    length, it is then a run of them.
    """
    data, tokens = vocabulary.data, vocabulary.trie.in_order
    begins, ends = vocabulary.starts[tokens], vocabulary.starts[tokens + 1]
    bytes_ = np.zeros(256, t.ELEMENTS[t.BYTE_COSTS])
    bytes_["token"] = -1
    single = ends - begins == 1
    bytes_["token"][data[begins[single]]] = tokens[single]
    bytes_["cost"] = np.where(bytes_["token"] < 0, MISSING, 1)
    # How long the longest run of each byte is that is a token: those in which no byte is other than the one before.
    changes = np.cumsum(np.diff(data, prepend=data[:1]) != 0)
    is_run = changes[ends - 1] == changes[begins]
    longest = np.zeros(256, np.int64)
    np.maximum.at(longest, data[begins[is_run]], (ends - begins)[is_run])
    bytes_["rank"][np.lexsort((-longest, bytes_["cost"]))] = np.arange(256)
    weights = np.zeros(1, t.ELEMENTS[t.TOKEN_WEIGHTS])
    weights["has_all_bytes"] = (bytes_["token"] >= 0).all()
    # The dearest token.
    so_far = np.concatenate(([0], np.cumsum(bytes_["cost"][data], dtype=np.int64)))
    weights["heaviest"] = np.clip(so_far[ends] - so_far[begins], 1, NEVER).max(initial=1)
    return bytes_, weights
