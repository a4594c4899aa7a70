"""How a grammar is loaded into tables: lexemes, byte classes, rules."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from constrain.collection import without_collection
from constrain.engine.automata.byte_classes import make_byte_classes
from constrain.engine.automata.lexemes import LEXEME_MARK, OUTSIDE_MARK, describe_lexemes
from constrain.engine.automata.operations import build_expressions
from constrain.engine.automata.prelude import Prelude
from constrain.engine.automata.programs import LexemeProgram, as_int32
from constrain.engine.parser.rules import explain_empty, flatten_rules, rule_arrays
from constrain.engine.parser.rules_on_demand import UnfoldedRules
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import BUDGET, COUNTS_BEGINS, N_IGNORE
from constrain.engine.storage.tables import Tables
from constrain.errors import LimitError
from constrain.grammar.ir import GrammarIR, PlacedName
from constrain.grammar.parse_table import ParseTable

Int32Array = np.ndarray[Any, np.dtype[np.int32]]
Run = Callable[..., int]


class PatternLimitError(LimitError):
    """A pattern takes too long to follow."""


def too_long(where: str = "") -> PatternLimitError:
    """The error for a pattern that takes too long; ``where`` names it."""
    what = f"a pattern (of {where})" if where else "a pattern"
    return PatternLimitError(
        f"{what} takes too long to follow: it counts within counts, or intersects or excludes patterns "
        "with very many states; simplify it",
        where.pointer if isinstance(where, PlacedName) else None,
    )


# Much less than the budget of a call, and more than it takes to look up what is known.
_WORK_OF_A_LEXEME = 100_000

# With so many, garbage would be looked for several times.
_MANY_PRODUCTIONS = 10_000


def load_grammar(
    tables: Tables, run: Run, ir: GrammarIR, stock: Prelude | None, longest_behind: Callable[[int], int]
) -> UnfoldedRules | None:
    """Fill new tables with a grammar; what makes its further rules, if it has such.

    Parameters
    ----------
    tables : Tables
        With what is in ``stock``, and nothing else.
    run : callable
        Runs a kernel on them and makes room as it asks.
    ir : GrammarIR
    stock : Prelude, optional
        Expressions that were made beforehand.
    longest_behind : callable (int) -> int
        As in :class:`constrain.grammar.ir.UnfoldingMaker`.

    Raises
    ------
    ConstrainError
        The grammar's own error (``ir.make_error``) if its language is empty.
    """
    if len(ir.productions) < _MANY_PRODUCTIONS:
        return _load_grammar(tables, run, ir, stock, longest_behind)
    return without_collection(_load_grammar)(tables, run, ir, stock, longest_behind)


def _load_grammar(
    tables: Tables, run: Run, ir: GrammarIR, stock: Prelude | None, longest_behind: Callable[[int], int]
) -> UnfoldedRules | None:
    lexemes = LexemeProgram(ir.lexemes, None if stock is None else stock.program)
    registers = np.zeros(lexemes.registers + 1, np.int32)
    if stock is not None:
        registers[: lexemes.first] = stock.registers
    _load_lexemes(tables, run, ir, lexemes, registers)
    productive = _load_rules(tables, ir)
    if ir.ignore:
        consumes = tables.get(t.LEXEMES)["consumes"]
        ignored = sorted({index for index in ir.ignore if consumes[index]})
        tables.put(t.IGNORED, np.array(ignored, np.int32))
        tables.ctx[N_IGNORE] = len(ignored)
    tables.ctx[COUNTS_BEGINS] = len(ir.token_limits)
    if ir.parse_table is not None:
        _load_parse_table(tables, ir.parse_table)
    if ir.make_unfolding is None:
        return None
    return UnfoldedRules(ir, tables, run, lexemes, registers, productive, longest_behind)


def _load_parse_table(tables: Tables, table: ParseTable) -> None:
    roles = np.array(
        [(lexeme.rank, lexeme.column, lexeme.line) for lexeme in table.lexemes for _ in range(2)], np.int32
    )
    tables.put(t.LEXEME_ROLES, roles)
    contexts = list(table.contexts)
    counts = np.array([len(context) for context in contexts], np.int32)
    firsts = np.cumsum(counts) - counts
    tables.put(t.PARSE_CONTEXTS, np.stack([firsts, counts], axis=1).astype(np.int32))
    tables.put(t.CONTEXT_LEXEMES, np.array([2 * lexeme for context in contexts for lexeme in context], np.int32))
    tables.put(t.PARSE_ACTIONS, np.array(table.actions, np.int32))
    tables.put(t.PARSE_GOTOS, np.array(table.gotos, np.int32))
    tables.put(t.PARSE_RULES, np.array(table.rules, np.int32))
    tables.put(t.PARSE_ENDS, np.array([table.first, table.last, *table.indentation], np.int32))


def _load_lexemes(tables: Tables, run: Run, ir: GrammarIR, lexemes: LexemeProgram, registers: Int32Array) -> None:
    lexemes.put_data(tables)
    n_nodes = tables.used(t.EXPRESSION_HASHES) + 2 * len(lexemes.code) // 3
    if n_nodes > t.NEW_EXPRESSIONS:
        # A kernel that runs out of room begins again, which would be some sixty times for a large grammar.
        for slot in t.EXPRESSION_TABLES:
            tables.reserve(slot, n_nodes)
        tables.reserve(t.EXPRESSION_BUCKETS, 2 * n_nodes)
        tables.reserve(t.CHILDREN, n_nodes // 4)
    run(build_expressions, lexemes.code, registers)
    n_lexemes = len(ir.lexemes)
    roots = registers[lexemes.first : lexemes.first + n_lexemes]
    make_byte_classes(tables.ctx, roots, False)
    tables.make_room(t.LEXEMES, n_lexemes)
    try:
        run(describe_lexemes, roots, 0)
    except PatternLimitError:
        raise too_long(ir.lexeme_names[_first_long(tables, roots)]) from None
    if ir.makes_lexemes:
        # Others may tell any two bytes apart.  Nothing of classes has been kept so far.
        make_byte_classes(tables.ctx, roots, True)
    if ir.distinct_keys:
        tables.get(t.LEXEMES)["consumes"][list(ir.distinct_keys)] |= LEXEME_MARK
    if ir.outside:
        tables.get(t.LEXEMES)["consumes"][list(ir.outside)] |= OUTSIDE_MARK


def _first_long(tables: Tables, roots: Int32Array) -> int:
    """Which lexeme took too long to follow.  What was found out of those before it is known, and costs nothing."""
    for index in range(len(roots) - 1):
        tables.ctx[BUDGET] = _WORK_OF_A_LEXEME
        if describe_lexemes(tables.ctx, roots[index : index + 1], index):
            return index
    return len(roots) - 1


def _load_rules(tables: Tables, ir: GrammarIR) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Load the rules; which nonterminals derive something."""
    left, offsets, symbols = rule_arrays(ir)
    unfolded = as_int32(array("i", ir.unfolded))
    tables.make_room(t.BRANCHES, len(unfolded))
    n_rules = len(ir.nonterminal_names)
    n_dots = len(symbols) + len(left) + 2
    for slot, size in (
        (t.SYMBOLS, n_dots),
        (t.DOT_LEFT, n_dots),
        (t.NULLABLE_REST, n_dots),
        (t.RULES, n_rules + 2),
        (t.RULE_STARTS, len(left) + 1),
        (t.NULLABLE, n_rules + 1),
        (t.PREDICTED, n_rules + 1),
        (t.FOLLOWED, len(ir.lexemes) + n_rules + 1),
    ):
        tables.make_room(slot, size)
    productive = np.zeros(n_rules, np.uint8)
    if not flatten_rules(tables.ctx, left, offsets, symbols, productive, ir.start, unfolded):
        records = tables.get(t.LEXEMES)
        usable = [bool(nullable or consumes) for _, nullable, consumes in records.tolist()]
        reason, place = explain_empty(ir, productive, usable)
        raise ir.make_error(f"the grammar matches no text: {reason}", place)
    return productive
