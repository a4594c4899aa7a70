"""Expressions that many grammars share, made once: a grammar begins with a copy of them.

Any JSON string, any number, each ASCII character in its spellings: they would be half of the work of compiling a small
schema.  A front-end names them (:attr:`constrain.grammar.ir.GrammarIR.stock`); by identity the parts of a lexeme are
found among them.  What a grammar does not use costs it no more than the copy, since byte classes are made of the
expressions that its lexemes lead to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from constrain.engine.automata import fingerprints
from constrain.engine.automata.operations import build_expressions
from constrain.engine.automata.programs import Int32Array, LexemeProgram
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import BUDGET, LONGEST
from constrain.engine.storage.statuses import FAIL
from constrain.engine.storage.tables import Tables
from constrain.errors import LimitError
from constrain.forking import call_in_child
from constrain.grammar.languages.regular import Regular

PreludeMaker = Callable[[], tuple[Regular, ...]]

_SLOTS = *t.EXPRESSION_TABLES, t.CHILDREN, t.LITERAL_BYTES, t.BYTE_SETS, t.SUMMARY_SETS, t.SUMMARY_SET_HASHES
_BUCKETS = t.EXPRESSION_BUCKETS, t.SUMMARY_SET_BUCKETS

# Front-ends times lengths of the longest token that are remembered at a time.
_PRELUDES_KEPT = 8
_LIMIT_BYTES = 1 << 26
_WORK = 1_000_000


class Prelude:
    """Some expressions in tables, to be copied into the tables of a grammar.

    Parameters
    ----------
    expressions : tuple of Regular
    longest : int
        Bytes of the longest token: fingerprints of expressions depend on it.

    Attributes
    ----------
    program : LexemeProgram
        What made the expressions; the program of a grammar goes on from it.
    registers : int32[program.registers]
        As it left them.
    snapshot : Snapshot
        The tables that a grammar begins with.
    """

    def __init__(self, expressions: tuple[Regular, ...], longest: int) -> None:
        # Their parts are known by identity as long as they live.
        self._expressions = expressions
        self.program = LexemeProgram(expressions)
        self.registers: Int32Array = np.zeros(self.program.registers, np.int32)
        tables = Tables(_LIMIT_BYTES)
        tables.ctx[LONGEST], tables.ctx[BUDGET] = longest, _WORK
        self.program.put_data(tables)
        while (result := build_expressions(tables.ctx, self.program.code, self.registers)) == FAIL:
            tables.grow()
        if result != 0:
            raise LimitError("the expressions that grammars share are too large")
        # Once here, and not in every grammar.
        while fingerprints.print_expressions(tables.ctx) == FAIL:
            tables.grow()
        self.snapshot = tables.snapshot(_SLOTS, _BUCKETS)


_lock = threading.Lock()
_preludes: OrderedDict[tuple[PreludeMaker, int], Prelude] = OrderedDict()


@call_in_child
def _renew_lock() -> None:
    global _lock, _preludes
    if _lock.locked():
        _preludes = OrderedDict()
    _lock = threading.Lock()


def prelude_for(make: PreludeMaker, longest: int) -> Prelude:
    """The prelude of a front-end's expressions for tokens of at most ``longest`` bytes."""
    key = make, longest
    with _lock:
        prelude = _preludes.get(key)
        if prelude is None:
            prelude = _preludes[key] = Prelude(make(), longest)
            if len(_preludes) > _PRELUDES_KEPT:
                _preludes.popitem(last=False)
    return prelude
