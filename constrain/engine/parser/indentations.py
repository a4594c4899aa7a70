"""Open levels of indentation and open brackets, as Lark's ``Indenter`` counts them between its lexer and its parser.

An indentation is a list, and is interned as an Earley set is: one item (what was opened last, the indentation below).
A level is its column, from 1; a bracket is 0.  Set 0 stands for nothing open, where the column is 0.  With levels 4 and
8 and a bracket open: ``(0, (8, (4, 0)))``.  No level is opened or closed while a bracket is open.  The item's dot is
that number plus the count of parser states, so that no stack is the same set.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.header import RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_EARLEY_SET, far_call
from constrain.engine.storage.schemas import KERNEL_ITEMS, PARSE_CONTEXTS, earley_items, earley_sets, kernel_items
from constrain.engine.storage.statuses import BETWEEN_LEVELS, FAIL
from constrain.kernels.language import int64

NEWLINE, OPENS, CLOSES = -1, -2, -3
"""In ``line`` of LEXEME_ROLES, beside ``1 + column`` of a line's end whose next line begins at a column: the end of any
line, an opening and a closing bracket; 0 for all other lexemes."""

DEEPER = -1
"""In place of a number of closed levels: a line is deeper than the last level."""

_BRACKET = 0


@njit_inner(RESULT1)
def _last(ctx, indentation):
    """What was opened last, where something is open."""
    return int64(earley_items(ctx)[earley_sets(ctx)[indentation].offset].dot) - used(ctx, PARSE_CONTEXTS)


@njit_inner(RESULT1)
def in_brackets(ctx, indentation):
    """Whether a bracket is open."""
    return int64(indentation != 0 and _last(ctx, indentation) == _BRACKET)


@njit_inner(RESULT1)
def below(ctx, indentation):
    """The indentation without what was opened last."""
    return int64(earley_items(ctx)[earley_sets(ctx)[indentation].offset].origin)


@njit_inner(RESULT2)
def opened(ctx, indentation, what):
    """The indentation with a level at a column, or with a bracket (0)."""
    set_used(ctx, KERNEL_ITEMS, 0)
    if not room(ctx, KERNEL_ITEMS, 1):
        return int64(FAIL)
    kernel_items(ctx)[0] = (used(ctx, PARSE_CONTEXTS) + what) << 32 | indentation
    return far_call(ctx, F_EARLEY_SET, int64(1), int64(0))


@njit_inner(RESULT1)
def level_count(ctx, indentation):
    """How many levels are open."""
    count = int64(0)
    while indentation != 0:
        count += _last(ctx, indentation) != _BRACKET
        indentation = below(ctx, indentation)
    return count


@njit_inner(RESULT2)
def closed_levels(ctx, indentation, column):
    """How many levels a line at a column closes, where no bracket is open; DEEPER or BETWEEN_LEVELS."""
    count = int64(0)
    while indentation != 0:
        level = _last(ctx, indentation)
        if level <= column:
            if level == column:
                return count
            break
        indentation = below(ctx, indentation)
        count += 1
    if indentation == 0 and column == 0:
        return count
    return int64(BETWEEN_LEVELS if count else DEEPER)
