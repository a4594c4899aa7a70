"""Transplants: what is alive of a compiled grammar's tables, planted into new ones.

compaction.py forgets Earley sets and states, which belong to texts.  Expressions and lexer states are far fewer, and
keep their numbers while a kernel runs; but some patterns have more of them than memory holds, of which a text needs one
at a time.  Between two calls of kernels they can be given up too.  The tables are begun anew, and what the places of
the grammar are at is made there once more, by the functions that intern it: the expressions of their lexer states, the
Earley sets that they are in and those that these began in, and their states.

Not for grammars whose rules are made while texts are read: their Earley sets name rules that new tables do not have.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from constrain.engine.automata import expressions as e
from constrain.engine.automata import operations as op
from constrain.engine.parser.configurations import intern_state, reset_work
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i64, room, set_used
from constrain.engine.storage.header import CTX
from constrain.engine.storage.jit import njit_entry
from constrain.engine.storage.links import F_EARLEY_SET, F_LEXER_STATE, far_call
from constrain.engine.storage.statuses import FAIL
from constrain.engine.storage.tables import Tables, TablesFullError
from constrain.kernels.language import int64

LEXER_STATE, EARLEY_SET, STATE = range(3)
"""What is planted."""

_MOST_PARTS = 100_000
"""Expressions of more parts are not moved, which takes Python some microseconds and hundreds of bytes for each."""


@njit_entry(int64(CTX, int64, int64, int64[::1]))
def plant(ctx, kind, accepts, parts):
    """Intern a lexer state, an Earley set or a state of the pairs ``parts``; returns its number, or FAIL and its like.

    The pairs are one number each, ``first << 32 | second``.
    """
    reset_work(ctx)
    count = int64(len(parts))
    if kind == LEXER_STATE:
        if not room(ctx, t.WORK_STACK, 2 * count):
            return int64(FAIL)
        for i in range(count):
            t.work_stack(ctx)[2 * i] = parts[i] >> 32
            t.work_stack(ctx)[2 * i + 1] = parts[i] & 0x7FFFFFFF
        set_used(ctx, t.WORK_STACK, 2 * count)
        return far_call(ctx, F_LEXER_STATE, 0, count)
    slot = int64(t.KERNEL_ITEMS if kind == EARLEY_SET else t.STATE_WORK)
    if not room(ctx, slot, count):
        return int64(FAIL)
    for i in range(count):
        i64(ctx, slot)[i] = parts[i]
    if kind == EARLEY_SET:
        return far_call(ctx, F_EARLEY_SET, count, accepts)
    return intern_state(ctx, count, accepts)


class Transplant:
    """What some states of old tables are made of, to be made in new ones.

    Parameters
    ----------
    old : Tables
        Of a grammar that does not unfold rules.
    states : list of int

    Raises
    ------
    TablesFullError
        If that is too much.
    """

    def __init__(self, old: Tables, states: list[int]) -> None:
        self._old = old
        self._states = states
        configurations = [configuration for state in states for configuration in self._configurations(state)]
        self._alive_sets = {earley_set for earley_set, _ in configurations}
        self._alive_lexer_states = {lexer_state for _, lexer_state in configurations}
        self._expressions: dict[int, int] = {}
        self._lexer_states = {0: 0}  # the dead one
        self._sets = np.zeros(old.used(t.EARLEY_SETS), np.int64)
        self._parts = self._find_parts()

    def _find_parts(self) -> dict[int, list[int]]:
        """The expressions of the lexer states, and all that they consist of, each with its parts."""
        records, pool = self._old.get(t.EXPRESSIONS), self._old.get(t.CHILDREN)
        parts: dict[int, list[int]] = {}
        size = 0
        todo = [expression for lexer_state in self._alive_lexer_states for _, expression in self._members(lexer_state)]
        while todo:
            expression = todo.pop()
            if expression in parts:
                continue
            kind, _, a, b, _ = records[expression].tolist()
            size += b if kind in (e.UNION, e.INTERSECT) else 1
            if size > _MOST_PARTS:
                raise TablesFullError("what is alive is too much to be moved")
            inner: list[int] = []
            if kind in (e.UNION, e.INTERSECT):
                inner = pool[a : a + b].tolist()
            elif kind == e.CONCAT:
                inner = [a, b]
            elif kind in (e.NOT, e.REPEAT):
                inner = [a]
            parts[expression] = inner
            todo += inner
        return parts

    def plant(self, run: Callable[..., int], new: Tables) -> dict[int, int]:
        """Make the states in new tables of the same grammar, on which ``run`` runs kernels; their new numbers."""
        self._make_expressions(run)
        self._make_lexer_states(run)
        self._make_sets(run)
        numbers = {}
        for state in self._states:
            accepts = int(self._old.array(t.STATES)[state]["accepts"])
            parts = [
                int(self._sets[earley_set]) << 32 | self._lexer_states[lexer_state]
                for earley_set, lexer_state in self._configurations(state)
            ]
            number = numbers[state] = run(plant, STATE, accepts, np.array(parts, np.int64))
            new.array(t.STATE_MARKS)[number] = self._old.array(t.STATE_MARKS)[state]
        return numbers

    def _make_expressions(self, run: Callable[..., int]) -> None:
        records = self._old.get(t.EXPRESSIONS)
        # A part has a lower number than the whole.
        order = sorted(self._parts)
        registers = {expression: register for register, expression in enumerate(order)}
        code: list[int] = []
        for expression in order:
            kind, head, a, b, c = records[expression].tolist()
            parts = self._parts[expression]
            code += [~registers[part] for part in parts]
            code += {
                e.EMPTY: (op.OP_EMPTY,),
                e.EPSILON: (op.OP_LITERAL, 0, 0),
                e.ALL: (op.OP_EMPTY, op.OP_NOT),
                e.LITERAL: (op.OP_LITERAL, a, b),
                e.SET: (op.OP_SET, a),
                e.CONCAT: (op.OP_CONCAT, len(parts)),
                e.UNION: (op.OP_UNION, len(parts)),
                e.INTERSECT: (op.OP_FIT if head & e.FITS_FLAG else op.OP_INTERSECT, len(parts)),
                e.NOT: (op.OP_NOT,),
                e.REPEAT: (op.OP_COUNT if head & e.COUNTS_FLAG else op.OP_REPEAT, b, c),
                e.QUOTATION: (op.OP_QUOTATION, a, b, c),
            }[kind]
            code += [op.OP_STORE, registers[expression]]
        made = np.zeros(len(order) + 1, np.int32)
        run(op.build_expressions, np.array(code, np.int32), made)
        self._expressions = dict(zip(order, made.tolist(), strict=False))

    def _members(self, lexer_state: int) -> list[list[int]]:
        """The pairs (lexeme, expression) of a lexer state."""
        record = self._old.array(t.LEXER_STATES)[lexer_state]
        members = self._old.array(t.LEXER_MEMBERS)[record["offset"] :][: 2 * record["count"]]
        pairs: list[list[int]] = members.reshape(-1, 2).tolist()
        return pairs

    def _configurations(self, state: int) -> list[tuple[int, int]]:
        """The pairs (Earley set, lexer state) of a state."""
        record = self._old.array(t.STATES)[state]
        pairs: list[tuple[int, int]] = self._old.array(t.CONFIGURATIONS)[record["offset"] :][: record["count"]].tolist()
        return pairs

    def _make_lexer_states(self, run: Callable[..., int]) -> None:
        for state in self._alive_lexer_states - {0}:
            parts = [lexeme << 32 | self._expressions[expression] for lexeme, expression in self._members(state)]
            self._lexer_states[state] = run(plant, LEXER_STATE, 0, np.array(parts, np.int64))

    def _make_sets(self, run: Callable[..., int]) -> None:
        """Make the Earley sets, and those that they began in.

        In an ambiguous grammar the items are as many as the square of the text's length.
        """
        items = self._old.array(t.EARLEY_ITEMS)
        records = self._old.get(t.EARLEY_SETS)
        begins, ends, accepts = records["offset"], records["offset"] + records["count"], records["accepts"]
        alive = np.zeros(len(records), np.bool_)
        alive[list(self._alive_sets)] = True
        # An origin is an older Earley set.
        for earley_set in range(len(records) - 1, 0, -1):
            if alive[earley_set]:
                alive[items["origin"][begins[earley_set] : ends[earley_set]]] = True
        # That in which a text begins is there.
        for earley_set in (np.flatnonzero(alive[1:]) + 1).tolist():
            own = items[begins[earley_set] : ends[earley_set]]
            parts = own["dot"].astype(np.int64) << 32 | self._sets[own["origin"]]
            self._sets[earley_set] = run(plant, EARLEY_SET, int(accepts[earley_set]), parts)
