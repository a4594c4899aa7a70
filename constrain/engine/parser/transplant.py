"""Compaction: what is alive of a compiled grammar's tables, planted into new ones.

compaction.py forgets rows and states, which belong to texts.  Expressions and lexer states are far fewer, and keep
their numbers while a kernel runs; but some patterns have more of them than memory holds, of which a text needs one at a
time. Between two calls of kernels they can be given up too.  The tables are begun anew, and what the places of the
grammar are at is made there once more, by the functions that intern it: the expressions of their lexer states, the rows
that they are in and the rows that those began in, and their states.

Not for grammars whose rules are made while texts are read: their rows name rules that new tables do not have.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import int64

from constrain.engine.automata.expressions import (
    ALL,
    CONCAT,
    EMPTY,
    EPSILON,
    FITS_FLAG,
    INTERSECT,
    LITERAL,
    NOT,
    OP_CONCAT,
    OP_EMPTY,
    OP_FIT,
    OP_INTERSECT,
    OP_LITERAL,
    OP_NOT,
    OP_REPEAT,
    OP_SET,
    OP_STORE,
    OP_UNION,
    REPEAT,
    SET,
    UNION,
    build_nodes,
)
from constrain.engine.automata.lexer_states import LEX_COUNT, LEX_OFFSET
from constrain.engine.parser.configurations import STATE_ACCEPTS, STATE_COUNT, STATE_OFFSET, intern_state, reset_work
from constrain.engine.parser.earley_sets import ROW_ACCEPTS, ROW_COUNT, ROW_OFFSET
from constrain.engine.storage.access import i64, room, set_used
from constrain.engine.storage.header import CTX
from constrain.engine.storage.jit import njit_entry
from constrain.engine.storage.links import F_LEXER_STATE, F_ROW, far_call
from constrain.engine.storage.schemas import (
    CHILDREN,
    CONFIGURATIONS,
    EARLEY_ITEMS,
    EARLEY_SETS,
    EXPRESSIONS,
    KERNEL_ITEMS,
    LEXER_MEMBERS,
    LEXER_STATES,
    STATE_MARKS,
    STATE_WORK,
    STATES,
    WORK_STACK,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL
from constrain.engine.storage.tables import Tables, TablesFullError

_LEXER_STATE, _ROW, _STATE = range(3)

_MOST_PARTS = 100_000
"""Expressions of more parts are not moved, which takes Python some microseconds and hundreds of bytes for each."""


@njit_entry(int64(CTX, int64, int64, int64[::1]))
def plant(ctx, kind, accepts, parts):
    """Intern a lexer state of the pairs ``parts``, a row of such items, or a state of such threads; or FAIL and such.

    The pairs are one number each, ``first << 32 | second``.
    """
    reset_work(ctx)
    count = int64(len(parts))
    if kind == _LEXER_STATE:
        if not room(ctx, WORK_STACK, 2 * count):
            return int64(FAIL)
        for i in range(count):
            work_stack(ctx)[2 * i] = parts[i] >> 32
            work_stack(ctx)[2 * i + 1] = parts[i] & 0x7FFFFFFF
        set_used(ctx, WORK_STACK, 2 * count)
        return far_call(ctx, F_LEXER_STATE, 0, count)
    slot = int64(KERNEL_ITEMS if kind == _ROW else STATE_WORK)
    if not room(ctx, slot, count):
        return int64(FAIL)
    for i in range(count):
        i64(ctx, slot)[i] = parts[i]
    if kind == _ROW:
        return far_call(ctx, F_ROW, count, accepts)
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
        threads = [thread for state in states for thread in self._threads(state)]
        self._alive_rows = {row for row, _ in threads}
        self._alive_lexer_states = {lexer_state for _, lexer_state in threads}
        self._nodes: dict[int, int] = {}
        # The dead lexer state; the row in which a text begins.
        self._lexer_states = {0: 0}
        self._rows = {0: 0}
        self._parts = self._find_parts()

    def _find_parts(self) -> dict[int, list[int]]:
        """The expressions of the lexer states, and all that they consist of, each with its parts."""
        nodes, pool = self._old.get(EXPRESSIONS).reshape(-1, 4), self._old.get(CHILDREN)
        parts: dict[int, list[int]] = {}
        size = 0
        todo = [node for lexer_state in self._alive_lexer_states for _, node in self._members(lexer_state)]
        while todo:
            node = todo.pop()
            if node in parts:
                continue
            kind, a, b, _ = nodes[node].tolist()
            kind &= 255
            size += b if kind in (UNION, INTERSECT) else 1
            if size > _MOST_PARTS:
                raise TablesFullError("what is alive is too much to be moved")
            inner: list[int] = []
            if kind in (UNION, INTERSECT):
                inner = pool[a : a + b].tolist()
            elif kind == CONCAT:
                inner = [a, b]
            elif kind in (NOT, REPEAT):
                inner = [a]
            parts[node] = inner
            todo += inner
        return parts

    def plant(self, run: Callable[..., int], new: Tables) -> dict[int, int]:
        """Make the states in new tables of the same grammar, on which ``run`` runs kernels; their new numbers."""
        self._make_expressions(run)
        self._make_lexer_states(run)
        self._make_rows(run)
        numbers = {}
        for state in self._states:
            accepts = int(self._old.array(STATES)[3 * state + STATE_ACCEPTS])
            parts = [(self._rows[row], self._lexer_states[lexer_state]) for row, lexer_state in self._threads(state)]
            number = numbers[state] = _plant(run, _STATE, accepts, parts)
            new.array(STATE_MARKS)[number] = self._old.array(STATE_MARKS)[state]
        return numbers

    def _make_expressions(self, run: Callable[..., int]) -> None:
        nodes = self._old.get(EXPRESSIONS).reshape(-1, 4)
        # A part has a lower number than the whole.
        order = sorted(self._parts)
        registers = {node: register for register, node in enumerate(order)}
        code: list[int] = []
        for node in order:
            head, a, b, c = nodes[node].tolist()
            parts = self._parts[node]
            code += [~registers[part] for part in parts]
            code += {
                EMPTY: (OP_EMPTY,),
                EPSILON: (OP_LITERAL, 0, 0),
                ALL: (OP_EMPTY, OP_NOT),
                LITERAL: (OP_LITERAL, a, b),
                SET: (OP_SET, a),
                CONCAT: (OP_CONCAT, len(parts)),
                UNION: (OP_UNION, len(parts)),
                INTERSECT: (OP_FIT if head & FITS_FLAG else OP_INTERSECT, len(parts)),
                NOT: (OP_NOT,),
                REPEAT: (OP_REPEAT, b, c),
            }[head & 255]
            code += [OP_STORE, registers[node]]
        made = np.zeros(len(order) + 1, np.int32)
        run(build_nodes, np.array(code, np.int32), made)
        self._nodes = dict(zip(order, made.tolist(), strict=False))

    def _members(self, lexer_state: int) -> list[list[int]]:
        """The pairs (lexeme, expression) of a lexer state."""
        record = self._old.array(LEXER_STATES)[4 * lexer_state : 4 * lexer_state + 4]
        return self._pairs(LEXER_MEMBERS, record[LEX_OFFSET], record[LEX_COUNT], 1)

    def _threads(self, state: int) -> list[list[int]]:
        """The pairs (row, lexer state) of a state."""
        record = self._old.array(STATES)[3 * state : 3 * state + 3]
        return self._pairs(CONFIGURATIONS, record[STATE_OFFSET], record[STATE_COUNT], 2)

    def _items(self, row: int) -> list[list[int]]:
        """The pairs (dot, origin) of a row."""
        record = self._old.array(EARLEY_SETS)[5 * row : 5 * row + 5]
        return self._pairs(EARLEY_ITEMS, record[ROW_OFFSET], record[ROW_COUNT], 2)

    def _pairs(self, slot: int, offset: int, count: int, each: int) -> list[list[int]]:
        """Pairs of a pool, whose offsets count ``each`` numbers."""
        begin = int(offset) * each
        pairs: list[list[int]] = self._old.array(slot)[begin : begin + 2 * int(count)].reshape(-1, 2).tolist()
        return pairs

    def _make_lexer_states(self, run: Callable[..., int]) -> None:
        for state in self._alive_lexer_states - {0}:
            parts = [(lexeme, self._nodes[node]) for lexeme, node in self._members(state)]
            self._lexer_states[state] = _plant(run, _LEXER_STATE, 0, parts)

    def _make_rows(self, run: Callable[..., int]) -> None:
        """Make the rows, and those that they began in."""
        todo = list(self._alive_rows)
        found = set(self._rows)
        while todo:
            row = todo.pop()
            if row not in found:
                found.add(row)
                todo += [origin for _, origin in self._items(row)]
        # An origin is an older row.
        for row in sorted(found - set(self._rows)):
            parts = [(dot, self._rows[origin]) for dot, origin in self._items(row)]
            self._rows[row] = _plant(run, _ROW, int(self._old.array(EARLEY_SETS)[5 * row + ROW_ACCEPTS]), parts)


def _plant(run: Callable[..., int], kind: int, accepts: int, parts: list[tuple[int, int]]) -> int:
    return run(plant, kind, accepts, np.array([first << 32 | second for first, second in parts], np.int64))
