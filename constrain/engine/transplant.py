"""Compaction: what is alive of a compiled grammar's tables, planted into new ones.

collect.py forgets rows and states, which belong to texts.  Expressions and lexer states are far fewer, and keep their
numbers while a kernel runs; but some patterns have more of them than memory holds, of which a text needs one at a time.
Between two calls of kernels they can be given up too.  The tables are begun anew, and what the places of the grammar
are at is made there once more, by the functions that intern it: the expressions of their lexer states, the rows that
they are in and the rows that those began in, and their states.

Not for grammars whose rules are made while texts are read: their rows name rules that new tables do not have.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import int64

from constrain.engine.jit import njit_entry
from constrain.engine.lexer import LEX_COUNT, LEX_OFFSET
from constrain.engine.nodes import (
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
from constrain.engine.rows import ROW_ACCEPTS, ROW_COUNT, ROW_OFFSET
from constrain.engine.states import STATE_ACCEPTS, STATE_COUNT, STATE_OFFSET, intern_state, reset_work
from constrain.engine.tables import (
    CTX,
    F_LEXER_STATE,
    F_ROW,
    FAIL,
    KERNEL,
    LEX,
    LEX_POOL,
    NODES,
    POOL,
    ROW_ITEMS,
    ROWS,
    STATE_KEYS,
    STATE_WORK,
    STATES,
    THREADS,
    TMP,
    Tables,
    far_call,
    i32,
    i64,
    room,
    set_used,
)

_LEXER_STATE, _ROW, _STATE = range(3)


@njit_entry(int64(CTX, int64, int64, int64[::1]))
def plant(ctx, kind, accepts, parts):
    """Intern a lexer state of the pairs ``parts``, a row of such items, or a state of such threads; or FAIL and such.

    The pairs are one number each, ``first << 32 | second``.
    """
    reset_work(ctx)
    count = int64(len(parts))
    if kind == _LEXER_STATE:
        if not room(ctx, TMP, 2 * count):
            return int64(FAIL)
        for i in range(count):
            i32(ctx, TMP)[2 * i] = parts[i] >> 32
            i32(ctx, TMP)[2 * i + 1] = parts[i] & 0x7FFFFFFF
        set_used(ctx, TMP, 2 * count)
        return far_call(ctx, F_LEXER_STATE, 0, count)
    slot = int64(KERNEL if kind == _ROW else STATE_WORK)
    if not room(ctx, slot, count):
        return int64(FAIL)
    for i in range(count):
        i64(ctx, slot)[i] = parts[i]
    if kind == _ROW:
        return far_call(ctx, F_ROW, count, accepts)
    return intern_state(ctx, count, accepts)


class _Transplant:
    """From old tables into those that ``run`` runs kernels on; numbers by the old ones."""

    def __init__(self, run: Callable[..., int], old: Tables) -> None:
        self._run = run
        self._old = old
        self._nodes: dict[int, int] = {}
        # The dead lexer state; the row in which a text begins.
        self._lexer_states = {0: 0}
        self._rows = {0: 0}

    def expressions(self, wanted: set[int]) -> None:
        """Make expressions, and those that they consist of."""
        nodes, pool = self._old.get(NODES).reshape(-1, 4), self._old.get(POOL)
        parts: dict[int, list[int]] = {}
        todo = list(wanted)
        while todo:
            node = todo.pop()
            if node in parts:
                continue
            kind, a, b, _ = nodes[node].tolist()
            kind &= 255
            inner: list[int] = []
            if kind in (UNION, INTERSECT):
                inner = pool[a : a + b].tolist()
            elif kind == CONCAT:
                inner = [a, b]
            elif kind in (NOT, REPEAT):
                inner = [a]
            parts[node] = inner
            todo += inner
        # A part has a lower number than the whole.
        order = sorted(parts)
        registers = {node: register for register, node in enumerate(order)}
        code: list[int] = []
        for node in order:
            head, a, b, c = nodes[node].tolist()
            code += [~registers[part] for part in parts[node]]
            count = len(parts[node])
            code += {
                EMPTY: (OP_EMPTY,),
                EPSILON: (OP_LITERAL, 0, 0),
                ALL: (OP_EMPTY, OP_NOT),
                LITERAL: (OP_LITERAL, a, b),
                SET: (OP_SET, a),
                CONCAT: (OP_CONCAT, count),
                UNION: (OP_UNION, count),
                INTERSECT: (OP_FIT if head & FITS_FLAG else OP_INTERSECT, count),
                NOT: (OP_NOT,),
                REPEAT: (OP_REPEAT, b, c),
            }[head & 255]
            code += [OP_STORE, registers[node]]
        made = np.zeros(len(order) + 1, np.int32)
        self._run(build_nodes, np.array(code, np.int32), made)
        self._nodes = dict(zip(order, made.tolist(), strict=False))

    def members(self, lexer_state: int) -> list[list[int]]:
        """The pairs (lexeme, expression) of a lexer state."""
        record = self._old.array(LEX)[4 * lexer_state : 4 * lexer_state + 4]
        return self._pairs(LEX_POOL, record[LEX_OFFSET], record[LEX_COUNT], 1)

    def threads(self, state: int) -> list[list[int]]:
        """The pairs (row, lexer state) of a state."""
        record = self._old.array(STATES)[3 * state : 3 * state + 3]
        return self._pairs(THREADS, record[STATE_OFFSET], record[STATE_COUNT], 2)

    def items(self, row: int) -> list[list[int]]:
        """The pairs (dot, origin) of a row."""
        record = self._old.array(ROWS)[5 * row : 5 * row + 5]
        return self._pairs(ROW_ITEMS, record[ROW_OFFSET], record[ROW_COUNT], 2)

    def _pairs(self, slot: int, offset: int, count: int, each: int) -> list[list[int]]:
        """Pairs of a pool, whose offsets count ``each`` numbers."""
        begin = int(offset) * each
        pairs: list[list[int]] = self._old.array(slot)[begin : begin + 2 * int(count)].reshape(-1, 2).tolist()
        return pairs

    def lexer_states(self, wanted: set[int]) -> None:
        """Make lexer states, of expressions that have been made."""
        for state in wanted - {0}:
            parts = [(lexeme, self._nodes[node]) for lexeme, node in self.members(state)]
            self._lexer_states[state] = self._plant(_LEXER_STATE, 0, parts)

    def rows(self, wanted: set[int]) -> None:
        """Make rows, and those that they began in."""
        todo = list(wanted)
        found = set(self._rows)
        while todo:
            row = todo.pop()
            if row not in found:
                found.add(row)
                todo += [origin for _, origin in self.items(row)]
        # An origin is an older row.
        for row in sorted(found - set(self._rows)):
            parts = [(dot, self._rows[origin]) for dot, origin in self.items(row)]
            self._rows[row] = self._plant(_ROW, int(self._old.array(ROWS)[5 * row + ROW_ACCEPTS]), parts)

    def state(self, state: int) -> int:
        """Make a state, of rows and lexer states that have been made."""
        parts = [(self._rows[row], self._lexer_states[lexer_state]) for row, lexer_state in self.threads(state)]
        return self._plant(_STATE, int(self._old.array(STATES)[3 * state + STATE_ACCEPTS]), parts)

    def _plant(self, kind: int, accepts: int, parts: list[tuple[int, int]]) -> int:
        return self._run(plant, kind, accepts, np.array([first << 32 | second for first, second in parts], np.int64))


def transplant(run: Callable[..., int], old: Tables, new: Tables, states: list[int]) -> dict[int, int]:
    """Make states of old tables in new ones; their new numbers.

    Parameters
    ----------
    run : callable
        Runs a kernel on the new tables.
    old, new : Tables
        Of the same grammar, which does not unfold rules; the new ones with its start.
    states : list of int
        Of the old tables.
    """
    way = _Transplant(run, old)
    threads = [thread for state in states for thread in way.threads(state)]
    lexer_states = {lexer_state for _, lexer_state in threads}
    way.expressions({node for lexer_state in lexer_states for _, node in way.members(lexer_state)})
    way.lexer_states(lexer_states)
    way.rows({row for row, _ in threads})
    numbers = {}
    for state in states:
        number = numbers[state] = way.state(state)
        new.array(STATE_KEYS)[number] = old.array(STATE_KEYS)[state]
    return numbers
