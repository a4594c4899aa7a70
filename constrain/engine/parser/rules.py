"""Rules: the productions of the IR as dotted symbols, one flat array.

A *dot* is a place in SYMBOLS: before a symbol of a production, or at its END.  What can never be part of a sentence is
removed here: productions that contain a lexeme without strings, or a nonterminal that derives nothing.  So whatever the
recognizer reaches can be completed.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, chain
from typing import Any

import numpy as np

from constrain.engine.automata.programs import I32, Int32Array, as_int32
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, take, u8, used
from constrain.engine.storage.header import CTX, START_NT
from constrain.engine.storage.jit import njit_allocating, njit_entry, njit_inner
from constrain.engine.storage.schemas import rules, symbols
from constrain.engine.storage.statuses import FAIL
from constrain.grammar import ir as ir_module
from constrain.grammar.ir import GrammarIR
from constrain.kernels.language import int64, types, uint8

END = 1 << 30
"""In SYMBOLS: the end of a production.  Other values: a nonterminal (>= 0), ``~lexeme`` (< 0), or BRANCH + a branch."""

BRANCH = 1 << 28
"""The same number as in the IR."""

assert BRANCH == ir_module.BRANCH

# How far a message about an empty grammar is followed into the rules.
_EXPLAIN_DEPTH, _EXPLAIN_WIDTH = 100, 4


@njit_allocating(types.void(I32, I32, I32, uint8[::1], uint8[::1]), inner=True)
def _least_fixpoint(left, offsets, symbols, lexeme_has, has):  # type: ignore[no-untyped-def]
    """Mark the nonterminals with a production all of whose symbols have the property.

    Parameters
    ----------
    left : int32[P]
        Left-hand side of each production.
    offsets, symbols : int32[P + 1], int32[n]
        Right-hand sides.
    lexeme_has : uint8[L]
        Which lexemes have the property.
    has : uint8[N]
        Output, zeroed: which nonterminals have it.  Linear time: a production is looked at once
        per symbol (Dowling and Gallier, 1984).
    """
    n_productions = len(left)
    missing = np.zeros(n_productions, np.int32)
    heads = np.zeros(len(has) + 1, np.int32)
    for p in range(n_productions):
        for i in range(offsets[p], offsets[p + 1]):
            if symbols[i] >= 0:
                heads[symbols[i] + 1] += 1
                missing[p] += 1
            elif not lexeme_has[~symbols[i]]:
                missing[p] = -1 << 30
    for k in range(len(has)):
        heads[k + 1] += heads[k]
    where = np.empty(max(1, heads[len(has)]), np.int32)
    fill = heads.copy()
    for p in range(n_productions):
        for i in range(offsets[p], offsets[p + 1]):
            if symbols[i] >= 0:
                where[fill[symbols[i]]] = p
                fill[symbols[i]] += 1
    queue = np.empty(max(1, len(has)), np.int32)
    n = 0
    for p in range(n_productions):
        if missing[p] == 0 and not has[left[p]]:
            has[left[p]] = 1
            queue[n] = left[p]
            n += 1
    while n > 0:
        n -= 1
        symbol = queue[n]
        for k in range(heads[symbol], heads[symbol + 1]):
            p = where[k]
            missing[p] -= 1
            if missing[p] == 0 and not has[left[p]]:
                has[left[p]] = 1
                queue[n] = left[p]
                n += 1


@njit_inner(types.void(CTX, int64))
def _mark_nullable_rests(ctx, first):  # type: ignore[no-untyped-def]
    """Fill NULLABLE_REST from dot ``first`` on; no branch derives the empty string."""
    all_symbols = symbols(ctx)
    rest = t.nullable_rest(ctx)
    for dot in range(used(ctx, t.SYMBOLS) - 1, first - 1, -1):
        symbol = all_symbols[dot]
        if symbol == END:
            rest[dot] = 1
        elif symbol >= BRANCH:
            rest[dot] = 0
        elif symbol >= 0:
            rest[dot] = rest[dot + 1] and t.nullable(ctx)[symbol]
        else:
            rest[dot] = rest[dot + 1] and t.lexemes(ctx)[~symbol].is_nullable


@njit_allocating(int64(CTX, I32, I32, I32, uint8[::1], int64, I32))
def flatten_rules(ctx, left, offsets, all_symbols, productive, start, unfolded):  # type: ignore[no-untyped-def]
    """Write the productive productions to the rule tables, which are large enough; returns 1 if start is productive.

    Dot 0 begins the added production of the start rule, whose nonterminal is ``len(productive)``.  The rules of
    ``unfolded[i]`` say whether it derives anything; instead of them it gets the one that is branch ``i``, to be made.
    """
    all_lexemes = t.lexemes(ctx)
    n_lexemes = used(ctx, t.LEXEMES)
    n_rules = len(productive)
    has = np.zeros(n_lexemes, np.uint8)
    for i in range(n_lexemes):
        has[i] = all_lexemes[i].is_nullable or all_lexemes[i].consumes
    _least_fixpoint(left, offsets, all_symbols, has, productive)
    if not productive[start]:
        return int64(0)
    all_nullable = u8(ctx, t.NULLABLE)
    for i in range(n_rules + 1):
        all_nullable[i] = 0
    for i in range(n_lexemes):
        has[i] = all_lexemes[i].is_nullable
    _least_fixpoint(left, offsets, all_symbols, has, all_nullable[:n_rules])
    all_nullable[n_rules] = all_nullable[start]
    ctx[START_NT] = n_rules

    out = symbols(ctx)
    all_dot_left = t.dot_left(ctx)
    out[0], out[1] = start, END
    all_dot_left[0] = all_dot_left[1] = n_rules
    all_rules = rules(ctx)
    starts = t.rule_starts(ctx)
    marks = t.predicted(ctx)
    for rule in range(n_rules + 2):
        all_rules[rule] = 0
    for rule in range(n_rules + 1):
        marks[rule] = 0
    keep = np.zeros(len(left), np.uint8)
    branch_of = np.empty(n_rules, np.int32)
    for rule in range(n_rules):
        branch_of[rule] = -1
    all_branches = t.branches(ctx)
    for i in range(len(unfolded)):
        branch_of[unfolded[i]] = i
        all_branches[i] = 0, -1, unfolded[i], 0
    set_used(ctx, t.BRANCHES, len(unfolded))
    for p in range(len(left)):
        if branch_of[left[p]] >= 0:
            continue
        usable = True
        for i in range(offsets[p], offsets[p + 1]):
            symbol = all_symbols[i]
            if symbol >= 0:
                usable = usable and productive[symbol] != 0
            else:
                usable = usable and (all_lexemes[~symbol].is_nullable or all_lexemes[~symbol].consumes)
        if usable:
            keep[p] = 1
            all_rules[left[p] + 1] += 1
    for i in range(len(unfolded)):
        all_rules[unfolded[i] + 1] += productive[unfolded[i]]
    for rule in range(n_rules + 1):
        all_rules[rule + 1] += all_rules[rule]
    fill = np.empty(n_rules + 1, np.int32)
    for rule in range(n_rules + 1):
        fill[rule] = all_rules[rule]
    n = 2
    for p in range(len(left)):
        if keep[p]:
            starts[fill[left[p]]] = n
            fill[left[p]] += 1
            for i in range(offsets[p], offsets[p + 1]):
                out[n] = all_symbols[i]
                all_dot_left[n] = left[p]
                n += 1
            out[n] = END
            all_dot_left[n] = left[p]
            n += 1
    for i in range(len(unfolded)):
        if productive[unfolded[i]]:
            starts[all_rules[unfolded[i]]] = n
            out[n] = BRANCH + i
            out[n + 1] = END
            all_dot_left[n] = all_dot_left[n + 1] = unfolded[i]
            n += 2
    for slot in (t.SYMBOLS, t.DOT_LEFT, t.NULLABLE_REST):
        set_used(ctx, slot, n)
    set_used(ctx, t.RULES, n_rules + 2)
    set_used(ctx, t.RULE_STARTS, all_rules[n_rules + 1])
    set_used(ctx, t.NULLABLE, n_rules + 1)
    set_used(ctx, t.PREDICTED, n_rules + 1)
    _mark_nullable_rests(ctx, int64(0))
    return int64(1)


@njit_entry(int64(CTX, I32, I32))
def new_branches(ctx, lefts, kinds):  # type: ignore[no-untyped-def]
    """Add branches without rules; int32[n] each: the nonterminals that they are branches of, and their kinds.

    Returns 0, or FAIL.
    """
    first = take(ctx, t.BRANCHES, len(lefts))
    if first < 0:
        return first
    for i in range(len(lefts)):
        t.branches(ctx)[first + i] = 0, -1, lefts[i], kinds[i]
    return int64(0)


@njit_entry(int64(CTX, int64, int64))
def share_rules(ctx, branch, other):  # type: ignore[no-untyped-def]
    """Give a branch the rules of another one; returns 0, or 1 if that has none."""
    records = t.branches(ctx)
    records[branch].first = records[other].first
    records[branch].count = records[other].count
    return int64(records[other].count < 0)


@njit_entry(int64(CTX, int64, I32))
def add_branch(ctx, branch, all_symbols):  # type: ignore[no-untyped-def]
    """Give a branch its rules.

    Parameters
    ----------
    ctx : int64[...]
    branch : int
        One that has no rules yet.
    symbols : int32[n]
        The right-hand sides as in SYMBOLS, each with END behind it.

    Returns
    -------
    0, or FAIL
    """
    n = len(all_symbols)
    count = 0
    for i in range(n):
        count += all_symbols[i] == END
    if not room(ctx, t.SYMBOLS, n) or not room(ctx, t.DOT_LEFT, n) or not room(ctx, t.NULLABLE_REST, n):
        return int64(FAIL)
    if not room(ctx, t.BRANCH_DOTS, count):
        return int64(FAIL)
    records = t.branches(ctx)
    left = records[branch].left
    first_dot = used(ctx, t.SYMBOLS)
    first = used(ctx, t.BRANCH_DOTS)
    dots = t.branch_dots(ctx)
    begins = True
    k = first
    for i in range(n):
        symbols(ctx)[first_dot + i] = all_symbols[i]
        t.dot_left(ctx)[first_dot + i] = left
        if begins:
            dots[k] = first_dot + i
            k += 1
        begins = all_symbols[i] == END
    for slot in (t.SYMBOLS, t.DOT_LEFT, t.NULLABLE_REST):
        set_used(ctx, slot, first_dot + n)
    set_used(ctx, t.BRANCH_DOTS, first + count)
    _mark_nullable_rests(ctx, first_dot)
    records[branch].first = first
    records[branch].count = count
    return int64(0)


def rule_arrays(ir: GrammarIR) -> tuple[Int32Array, Int32Array, Int32Array]:
    """The productions as flat arrays: left-hand sides, offsets, symbols."""
    # An array() is filled in a third of the time that numpy takes, and numpy reads it where it is.
    productions = ir.productions
    left, right = zip(*productions, strict=True) if productions else ((), ())
    offsets = array("i", accumulate(map(len, right), initial=0))
    symbols = array("i", chain.from_iterable(right))
    return as_int32(array("i", left)), as_int32(offsets), as_int32(symbols)


def explain_empty(
    ir: GrammarIR, productive: np.ndarray[Any, np.dtype[np.uint8]], usable: list[bool]
) -> tuple[str, str]:
    """Why the start rule derives nothing: (reason, name of the innermost named rule at fault)."""
    rules: dict[int, list[tuple[int, ...]]] = {}
    for left, right in ir.productions:
        rules.setdefault(left, []).append(right)

    # None while a symbol is being explained: that it leads back to itself is not what is wrong with it.
    known: dict[int, tuple[str, str] | None] = {}

    def explain(symbol: int, place: str, depth: int) -> tuple[str, str] | None:
        if symbol < 0:
            name = ir.lexeme_names[~symbol]
            return (f"{name} matches no text" if name else "a part of it matches no text"), place
        place = ir.nonterminal_names[symbol] or place
        if symbol in known:
            return known[symbol]
        known[symbol] = None
        if depth == 0:
            return "nothing can match", place
        alternatives = rules.get(symbol, [])
        if not alternatives:
            return "it has no production", place
        # Each alternative has a first symbol that nothing can match.  If all faults are one, that is it.
        faults = {
            explain(next(s for s in right if (not productive[s] if s >= 0 else not usable[~s])), place, depth - 1)
            for right in alternatives[:_EXPLAIN_WIDTH]
        } - {None}
        if not faults:
            known[symbol] = "it can only repeat itself for ever", place
        elif len(faults) == 1 and len(alternatives) <= _EXPLAIN_WIDTH:
            known[symbol] = faults.pop()
        else:
            known[symbol] = "none of its alternatives can match", place
        return known[symbol]

    return explain(ir.start, "", _EXPLAIN_DEPTH) or ("nothing can match", "")
