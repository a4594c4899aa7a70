"""Lexemes: the terminals of a grammar, each an expression."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import COMPLEX_FLAG, EPSILON, is_nullable
from constrain.engine.automata.liveness import is_live
from constrain.engine.automata.programs import I32
from constrain.engine.storage.access import set_used, used
from constrain.engine.storage.header import CLASSES, CTX
from constrain.engine.storage.jit import njit_entry
from constrain.engine.storage.links import F_DERIVATIVE, far_call
from constrain.engine.storage.schemas import LEXEMES, LIVENESS_STACK, WORK_STACK, class_bytes, expressions, lexemes
from constrain.kernels.language import int64

LEXEME_MARK = 2
"""In ``consumes`` of LEXEMES, beside 1: the lexeme is one of :attr:`constrain.grammar.ir.GrammarIR.distinct_keys`."""

OUTSIDE_MARK = 4
"""The same for :attr:`constrain.grammar.ir.GrammarIR.outside`."""


@njit_entry(int64(CTX, I32, int64))
def describe_lexemes(ctx, registers, first):
    """Fill the LEXEMES table from ``first`` on (expression, matches the empty string, matches anything else).

    ``registers`` (int32[n]) are the expressions.  Returns 0, FAIL or LIMIT.
    """
    set_used(ctx, WORK_STACK, 0)
    set_used(ctx, LIVENESS_STACK, 0)
    all_lexemes = lexemes(ctx)
    for lexeme in range(first, first + len(registers)):
        expression = int64(registers[lexeme - first])
        nullable = is_nullable(ctx, expression)
        consumes = int64(expression != EPSILON)
        if not nullable:
            consumes = is_live(ctx, expression)
            if consumes < 0:
                return consumes
        elif expressions(ctx)[expression].flags & COMPLEX_FLAG:
            consumes = int64(0)
            for k in range(ctx[CLASSES]):
                after = far_call(ctx, F_DERIVATIVE, expression, class_bytes(ctx)[k])
                if after < 0:
                    return after
                consumes = is_live(ctx, after)
                if consumes != 0:
                    break
            if consumes < 0:
                return consumes
        all_lexemes[lexeme] = expression, nullable, consumes
    set_used(ctx, LEXEMES, max(used(ctx, LEXEMES), first + len(registers)))
    return int64(0)
