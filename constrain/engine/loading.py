"""How a grammar is loaded into tables: lexemes, byte classes, rules."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from constrain.engine.automata import expressions as nodes
from constrain.engine.automata import programs as program
from constrain.engine.automata.prelude import Stock
from constrain.engine.parser.earley_sets import LEXEME_MARKS
from constrain.engine.parser.rules_on_demand import UnfoldedRules
from constrain.engine.storage.header import N_IGNORE
from constrain.engine.storage.schemas import (
    BRANCHES,
    BYTE_SETS,
    CHILDREN,
    DOT_LEFT,
    END_LENGTHS,
    EXPRESSION_BUCKETS,
    EXPRESSION_HASHES,
    EXPRESSION_PRINTS,
    EXPRESSIONS,
    FIRST_BYTES,
    IGNORED,
    LAST_BYTES,
    LEXEMES,
    LITERAL_BYTES,
    LIVENESS,
    NECESSARY_BYTES,
    NEW_EXPRESSIONS,
    NULLABLE,
    NULLABLE_REST,
    PREDICTED,
    RULE_STARTS,
    RULES,
    SHORTEST_LENGTHS,
    SYMBOLS,
)
from constrain.engine.storage.tables import Tables
from constrain.grammar.ir import GrammarIR

Int32Array = np.ndarray[Any, np.dtype[np.int32]]
Run = Callable[..., int]

# Tables of expressions, with the elements that each takes.
_NODE_TABLES = {
    EXPRESSIONS: 4,
    EXPRESSION_PRINTS: 2,
    FIRST_BYTES: 4,
    LAST_BYTES: 4,
    NECESSARY_BYTES: 4,
    SHORTEST_LENGTHS: 1,
    END_LENGTHS: 1,
    LIVENESS: 1,
    EXPRESSION_HASHES: 1,
}


def load_grammar(tables: Tables, run: Run, ir: GrammarIR, stock: Stock | None) -> UnfoldedRules | None:
    """Fill new tables with a grammar; what makes its further rules, if it has such.

    Parameters
    ----------
    tables : Tables
        With what is in ``stock``, and nothing else.
    run : callable
        Runs a kernel on them and makes room as it asks.
    ir : GrammarIR
    stock : Stock, optional
        Expressions that were made beforehand.

    Raises
    ------
    ConstrainError
        The grammar's own error (``ir.make_error``) if its language is empty.
    """
    lexemes = program.LexemeProgram(ir.lexemes, None if stock is None else stock.program)
    if lexemes.counts:
        # Two seconds to compile, and few grammars need it.
        import constrain.engine.masks.fast.counted_masks  # noqa: F401 (called through a pointer)

        tables.link()
    registers = np.zeros(lexemes.registers + 1, np.int32)
    if stock is not None:
        registers[: lexemes.first] = stock.registers
    _load_lexemes(tables, run, ir, lexemes, registers)
    productive = _load_rules(tables, ir)
    if ir.ignore:
        consumes = tables.get(LEXEMES)[2::3]
        ignored = sorted({index for index in ir.ignore if consumes[index]})
        tables.put(IGNORED, np.array(ignored, np.int32))
        tables.ctx[N_IGNORE] = len(ignored)
    if ir.make_unfolding is None:
        return None
    return UnfoldedRules(ir, tables, run, lexemes, registers, productive)


def _load_lexemes(
    tables: Tables, run: Run, ir: GrammarIR, lexemes: program.LexemeProgram, registers: Int32Array
) -> None:
    tables.put(LITERAL_BYTES, lexemes.literals)
    tables.put(BYTE_SETS, lexemes.sets)
    n_nodes = tables.used(EXPRESSION_HASHES) + 2 * len(lexemes.code) // 3
    if n_nodes > NEW_EXPRESSIONS:
        # A kernel that runs out of room begins again, which would be some sixty times for a large grammar.
        for slot, each in _NODE_TABLES.items():
            tables.reserve(slot, each * n_nodes)
        tables.reserve(EXPRESSION_BUCKETS, 2 * n_nodes)
        tables.reserve(CHILDREN, n_nodes // 4)
    run(nodes.build_nodes, lexemes.code, registers)
    n_lexemes = len(ir.lexemes)
    roots = registers[lexemes.first : lexemes.first + n_lexemes]
    program.make_byte_classes(tables.ctx, roots, ir.makes_lexemes)
    tables.allocate(LEXEMES, 3 * n_lexemes, 3 * n_lexemes)
    run(program.describe_lexemes, roots, 0)
    for bit, marked in zip(LEXEME_MARKS, ir.marks, strict=True):
        tables.get(LEXEMES)[2::3][list(marked)] |= bit


def _load_rules(tables: Tables, ir: GrammarIR) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Load the rules; which nonterminals derive something."""
    left, offsets, symbols = program.rule_arrays(ir)
    unfolded = program.as_int32(array("i", ir.unfolded))
    tables.allocate(BRANCHES, 4 * len(unfolded))
    n_rules = len(ir.nonterminal_names)
    n_dots = len(symbols) + len(left) + 2
    for slot, size in (
        (SYMBOLS, n_dots),
        (DOT_LEFT, n_dots),
        (NULLABLE_REST, n_dots),
        (RULES, n_rules + 2),
        (RULE_STARTS, len(left) + 1),
        (NULLABLE, n_rules + 1),
        (PREDICTED, n_rules + 1),
    ):
        tables.allocate(slot, size)
    productive = np.zeros(n_rules, np.uint8)
    if not program.flatten_rules(tables.ctx, left, offsets, symbols, productive, ir.start, unfolded):
        records = tables.get(LEXEMES).reshape(-1, 3)
        usable = [bool(nullable or consumes) for _, nullable, consumes in records.tolist()]
        reason, place = program.explain_empty(ir, productive, usable)
        raise ir.make_error(f"the grammar matches no text: {reason}", place)
    return productive
