"""Temperatures that a grammar gives to rules: which one the next token is to be drawn with.

Each lexeme that may go on or begin at a place stands in a rule, which is part of others.  The innermost of them that
has a temperature says what the lexeme's is.  Where several lexemes differ the highest counts, as in llguidance.

This is a function of the state, since an Earley set holds all unfinished rules with where they began: from the items
that wait for a lexeme, up through the sets that these began in.  So it is worked out once for each state, in Python,
and only where somebody asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.engine.grammar_tables import GrammarTables
from constrain.engine.history import Place
from constrain.engine.storage import schemas as t
from constrain.engine.waiting import waiting_items

# So many states are remembered.
_MOST_KNOWN = 1 << 16

# The items of an Earley set that wait for a symbol: the rule that each is of, and the Earley set in which that began.
_Waiting = dict[int, list[tuple[int, int]]]


class Temperatures:
    """The temperatures at the states of a compiled grammar; for :meth:`GrammarTables.kept`."""

    def __init__(self, compiled: GrammarTables) -> None:
        self._compiled = compiled
        self._of_rule = dict(compiled.ir.temperatures)
        # What is ignored is no part of the rule that it stands behind.
        self._ignored = frozenset(compiled.ir.ignore)
        self._key: Any = None
        self._known: dict[int, float | None] = {}

    def at(self, place: Place) -> float | None:
        """That of a place, which has a state; None if no rule there has one.  The caller holds the lock."""
        compiled = self._compiled
        # States have other numbers in other tables.
        key = compiled.generation, id(compiled._tables)
        if key != self._key or len(self._known) >= _MOST_KNOWN:
            self._key, self._known = key, {}
        state = place._state
        if state not in self._known:
            self._known[state] = self._work_out(state)
        return self._known[state]

    def _work_out(self, state: int) -> float | None:
        get = self._compiled._tables.get
        record = get(t.STATES)[state]
        waiting: dict[int, _Waiting] = {}
        todo: list[tuple[int, int]] = []
        for earley_set, lexer_state in get(t.CONFIGURATIONS)[record["offset"] :][: record["count"]].tolist():
            lex = get(t.LEXER_STATES)[lexer_state]
            members = get(t.LEXER_MEMBERS)[lex["offset"] :][: 2 * lex["count"]].reshape(-1, 2)
            here = waiting.setdefault(earley_set, {}) or self._waiting(earley_set)
            waiting[earley_set] = here
            for lexeme, expression in members.tolist():
                if lexeme not in self._ignored and np.any(get(t.SUMMARY_SETS)[get(t.FIRST_BYTES)[expression]]):
                    todo += here.get(~lexeme, ())
        found: float | None = None
        seen = set(todo)
        while todo:
            rule, began = todo.pop()
            own = self._of_rule.get(rule)
            if own is not None:
                found = own if found is None else max(found, own)
                continue
            if began not in waiting:
                waiting[began] = self._waiting(began)
            for above in waiting[began].get(rule, ()):
                if above not in seen:
                    seen.add(above)
                    todo.append(above)
        return found

    def _waiting(self, earley_set: int) -> _Waiting:
        """What an Earley set waits for: by symbol, the rule of each item and the Earley set in which it began."""
        tables = self._compiled._tables
        left = tables.get(t.DOT_LEFT)
        return {
            symbol: [(int(left[dot]), origin) for dot, origin in items]
            for symbol, items in waiting_items(tables, earley_set).items()
        }
