"""The rules and lexemes of a compiled grammar that are made while texts are read."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from constrain.engine.automata.lexemes import LEXEME_MARK, describe_lexemes
from constrain.engine.automata.operations import build_expressions
from constrain.engine.automata.programs import LexemeProgram, as_int32
from constrain.engine.parser.configurations import IS_HARD, IS_OPEN, IS_UNSURE
from constrain.engine.parser.rules import BRANCH, END, add_branch, new_branches, share_rules
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import NEVER_OPEN
from constrain.engine.storage.tables import Tables
from constrain.grammar import ir as ir_module
from constrain.grammar.ir import GrammarIR, NothingLeftError
from constrain.grammar.languages.regular import Regular

assert (IS_OPEN, IS_HARD, IS_UNSURE) == (ir_module.OPEN, ir_module.HARD, ir_module.UNSURE)

Int32Array = np.ndarray[Any, np.dtype[np.int32]]


class _Run(Protocol):
    def __call__(self, kernel: Callable[..., int], *args: Any) -> int: ...


def _nothing() -> None:
    pass


class EnoughRulesError(Exception):
    """A kernel came upon rules beyond those that may be made for it (:meth:`UnfoldedRules.at_most`)."""


class UnfoldedRules:
    """Asks a grammar's :class:`~constrain.grammar.ir.Unfolding` for rules and adds them to the tables.

    Parameters
    ----------
    ir : GrammarIR
        A grammar that unfolds rules, the rest of which is in ``tables``.
    tables : Tables
    run : callable
        Runs a kernel and makes room as it asks.
    lexemes : LexemeProgram
    registers : int32[n]
        As the lexemes of the grammar left them.
    productive : uint8[n_nonterminals]
        Which nonterminals derive something.
    longest_behind : callable (int) -> int
        As in :class:`constrain.grammar.ir.UnfoldingMaker`.
    """

    def __init__(
        self,
        ir: GrammarIR,
        tables: Tables,
        run: _Run,
        lexemes: LexemeProgram,
        registers: Int32Array,
        productive: np.ndarray[Any, np.dtype[np.uint8]],
        longest_behind: Callable[[int], int],
    ) -> None:
        assert ir.make_unfolding is not None
        if tables.get(t.NULLABLE)[list(ir.unfolded)].any():
            raise ValueError("what is unfolded must not derive the empty string")
        self._tables = tables
        self._run = run
        self._has_marks = bool(ir.distinct_keys)
        self._lexemes = lexemes
        self._registers = registers
        self._counts = [len(ir.unfolded), 0, 0]
        self.symbols = ir.unfolded
        records = tables.get(t.LEXEMES)
        usable = ((records["is_nullable"] != 0) | (records["consumes"] != 0)).tolist()
        derives = productive.tolist()
        self.unfolding = ir.make_unfolding(
            lambda symbol: bool(derives[symbol] if symbol >= 0 else usable[~symbol]), longest_behind
        )
        tables.ctx[NEVER_OPEN] = self.unfolding.decided_by == ir_module.BY_RULES
        self._most_branches = sys.maxsize
        # Called when rules were added.
        self.when_added: Callable[[], None] = _nothing
        # Whether what follows was once said to be nothing: what a way on costs may then be more than was known.
        self.has_left_nothing = False
        # The dots that stand for branches alone.
        self._dots: dict[tuple[int, int], int] = {}
        self.add_new()

    @contextmanager
    def at_most(self, branches: int) -> Iterator[None]:
        """In here rules are made as long as no more branches than these have come from them, and some at the end.

        What needs others ends with an :class:`EnoughRulesError`, as if it had not run.
        """
        before = self._most_branches
        self._most_branches = min(before, len(self.unfolding.kinds) + branches)
        try:
            yield
        finally:
            self._most_branches = before

    def unfold(self) -> None:
        """Make the rules of the branches that a kernel came upon."""
        if len(self.unfolding.kinds) > self._most_branches:
            raise EnoughRulesError
        for branch in dict.fromkeys(self._tables.get(t.UNMADE_BRANCHES).tolist()):
            hard = self.unfolding.kinds[branch] & IS_HARD
            rights = [] if hard else self.unfolding.unfold(branch)
            self.add_new()
            if isinstance(rights, int):
                if self._run(share_rules, branch, rights):
                    raise ValueError("a branch is said to go on like one that has not been asked for")
                continue
            flat = array("i")
            for right in rights:
                flat.extend(right)
                flat.append(END)
            self._run(add_branch, branch, as_int32(flat))
        self.when_added()

    def lexeme(self, number: int) -> tuple[str, Regular]:
        """The name and the language of a lexeme that was made, of which ``number`` were made before."""
        return self.unfolding.lexeme_names[number], self.unfolding.lexemes[number]

    def close(
        self, dots: list[int], text: Callable[[int], bytes]
    ) -> tuple[Int32Array, Int32Array, NothingLeftError | None]:
        """What takes the place of dots at open branches after a text; -1 for those that nothing does.

        The last of the three is what to raise if nothing else can follow either.
        """
        others = []
        nothing_left = None
        for dot in dots:
            branch = int(self._tables.array(t.SYMBOLS)[dot]) - BRANCH
            left = int(self._tables.array(t.DOT_LEFT)[dot])
            try:
                closed = self.unfolding.close(branch, text)
            except NothingLeftError as error:
                nothing_left = error
                self.has_left_nothing = True
                closed = -1
            self.add_new()
            others.append(-1 if closed < 0 else self._dot(left, closed))
        self.when_added()
        return np.array(dots, np.int32), np.array(others, np.int32), nothing_left

    def _dot(self, left: int, branch: int) -> int:
        dot = self._dots.get((left, branch))
        if dot is None:
            dot = self._dots[left, branch] = self._tables.used(t.SYMBOLS)
            self._add_dots(left, branch)
        return dot

    def _add_dots(self, left: int, branch: int) -> None:
        tables = self._tables
        tables.append(t.SYMBOLS, np.array([BRANCH + branch, END], np.int32))
        tables.append(t.DOT_LEFT, np.array([left, left], np.int32))
        tables.append(t.NULLABLE_REST, np.array([0, 1], np.uint8))

    def add_new(self) -> None:
        """Add the lexemes, branches and nonterminals that the unfolding has made since it was looked at."""
        unfolding, tables = self.unfolding, self._tables
        n_branches, n_lexemes, n_nonterminals = self._counts
        self._counts = [len(unfolding.lefts), len(unfolding.lexemes), len(unfolding.nonterminals)]
        if len(unfolding.lexemes) > n_lexemes:
            first = self._lexemes.extend(unfolding.lexemes[n_lexemes:])
            self._lexemes.put_data(tables)
            needed = self._lexemes.registers + 64
            if needed > len(self._registers):
                registers = np.zeros(2 * needed, np.int32)
                registers[: len(self._registers)] = self._registers
                self._registers = registers
            self._run(build_expressions, self._lexemes.code, self._registers)
            count = len(unfolding.lexemes) - n_lexemes
            place = tables.used(t.LEXEMES)
            tables.append(t.LEXEMES, np.zeros(count, t.ELEMENTS[t.LEXEMES]))
            self._run(describe_lexemes, self._registers[first : first + count].copy(), place)
            if self._has_marks:
                marked = [
                    place + number - n_lexemes
                    for number in range(n_lexemes, n_lexemes + count)
                    if number in unfolding.marked
                ]
                tables.get(t.LEXEMES)["consumes"][marked] |= LEXEME_MARK
        if len(unfolding.lefts) > n_branches:
            lefts, kinds = (array("i", each[n_branches:]) for each in (unfolding.lefts, unfolding.kinds))
            self._run(new_branches, as_int32(lefts), as_int32(kinds))
        for branch in unfolding.nonterminals[n_nonterminals:]:
            symbol = tables.used(t.NULLABLE)
            tables.append(t.RULE_STARTS, np.array([tables.used(t.SYMBOLS)], np.int32))
            tables.append(t.RULES, np.array([tables.used(t.RULE_STARTS)], np.int32))
            tables.append(t.NULLABLE, np.zeros(1, np.uint8))
            tables.append(t.PREDICTED, np.zeros(1, np.int32))
            self._add_dots(symbol, branch)
