"""Which lexemes anything may follow.

Where the text ends with a lexeme, as with free text behind the last call of a tool, no token goes on behind it.  So it
need not be known where in a token that lexeme can end, which may be anywhere.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.lexemes import OUTSIDE_MARK
from constrain.engine.parser.rules import BRANCH, END
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import CTX, N_IGNORE, RESULT0
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types


@njit_inner(RESULT0)
def find_followed(ctx):
    """Fill FOLLOWED, once for a grammar; returns 0 or FAIL.

    What is not the last symbol of some rule counts as followed, also if all behind it is empty.  Of rules that are made
    later nothing is known but that they do not derive what is outside of them, and nothing of a parser's table: then
    everything else counts as followed.  What derives a lexeme that is outside is so too.
    """
    if used(ctx, t.FOLLOWED):
        return int64(0)
    lexemes = used(ctx, t.LEXEMES)
    count = lexemes + used(ctx, t.NULLABLE)
    if not room(ctx, t.FOLLOWED, count):
        return int64(FAIL)
    followed, symbols = t.followed(ctx), t.symbols(ctx)
    unknown = ctx[N_IGNORE] + used(ctx, t.PARSE_CONTEXTS) > 0
    for i in range(count):
        followed[i] = unknown
    changed = not unknown
    while changed:
        changed = False
        for dot in range(used(ctx, t.SYMBOLS)):
            symbol = symbols[dot]
            if symbol == END or symbol >= BRANCH:
                continue
            place = lexemes + symbol if symbol >= 0 else ~symbol
            if not followed[place] and (symbols[dot + 1] != END or followed[lexemes + t.dot_left(ctx)[dot]]):
                followed[place] = 1
                changed = True
    set_used(ctx, t.FOLLOWED, count)
    return int64(0)


@njit_inner(types.boolean(CTX, int64))
def is_followed(ctx, lexeme):
    """Whether anything may follow a lexeme, after :func:`find_followed`."""
    if used(ctx, t.BRANCHES) and not t.lexemes(ctx)[lexeme].consumes & OUTSIDE_MARK:
        return True
    return t.followed(ctx)[lexeme] != 0


@njit_inner(types.boolean(CTX, int64))
def all_are_followed(ctx, lexer_state):
    """Whether anything may follow each of the lexemes of a lexer state."""
    first = t.lexer_states(ctx)[lexer_state].offset
    for i in range(first, first + 2 * t.lexer_states(ctx)[lexer_state].count, 2):
        if not is_followed(ctx, t.lexer_members(ctx)[i]):
            return False
    return True


@njit_inner(types.boolean(CTX, int64))
def any_is_followed(ctx, accept):
    """Whether anything may follow a lexeme of an accept set."""
    first = t.accept_sets(ctx)[accept].offset
    for i in range(first, first + t.accept_sets(ctx)[accept].count):
        if is_followed(ctx, t.accept_members(ctx)[i]):
            return True
    return False
