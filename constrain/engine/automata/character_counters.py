"""Counters of characters beside a pattern: ``maxLength``."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import COMPLEX_FLAG, CONCAT, FITS_FLAG, NULLABLE_FLAG, REPEAT
from constrain.engine.storage import schemas as t
from constrain.engine.storage.bits import count_bits
from constrain.engine.storage.header import RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.kernels.language import int64

# The rest of a character has no more parts.
_MOST_PARTS = 8

_NO_REPEAT = _MOST_PARTS + 1


@njit_inner(RESULT1)
def _width(ctx, node):
    """With how many bytes an expression may begin."""
    width = int64(0)
    for word in range(4):
        width += count_bits(t.first_bytes(ctx)[node, word])
    return width


@njit_inner(RESULT1)
def _last_repeat(ctx, node):
    """The repetition at the end of an expression, and how many parts are before it: ``parts << 32 | repetition``."""
    nodes = t.expressions(ctx)
    for parts in range(_MOST_PARTS):
        if nodes[node].kind == REPEAT:
            return int64(parts) << 32 | node
        if nodes[node].kind != CONCAT:
            break
        node = nodes[node].second
    return int64(_NO_REPEAT) << 32


@njit_inner(RESULT2)
def _counting_part(ctx, left, right):
    """Which of two parts counts the characters of the other: 0 or 1; -1 if both may.

    It allows whatever the other one does, so it begins with more bytes.  Where both begin with the same bytes, a
    pattern has further parts behind its first character, or does not end in a repetition at all.
    """
    ahead = _width(ctx, left) - _width(ctx, right)
    if ahead == 0:
        ahead = (_last_repeat(ctx, right) >> 32) - (_last_repeat(ctx, left) >> 32)
    return int64(0 if ahead > 0 else 1 if ahead < 0 else -1)


@njit_inner(RESULT1)
def character_counter(ctx, node):
    """Of an intersection with a counter of characters that may be left out: ``counter << 32 | the other part``; or -1.

    See expressions.FITS_FLAG.  The counter may stand behind the rest of a character.  Which part it is comes first, and
    whether it may be left out then: in ``c{2,}`` beside ``[a-z]*[0-9]x{0,9}`` the only bound above is no counter's.
    """
    nodes = t.expressions(ctx)
    if not nodes[node].flags & FITS_FLAG or nodes[node].second != 2:
        return int64(-1)
    first = nodes[node].first
    which = _counting_part(ctx, t.children(ctx)[first], t.children(ctx)[first + 1])
    if which < 0:
        return int64(-1)
    part, other = t.children(ctx)[first + which], t.children(ctx)[first + 1 - which]
    last = _last_repeat(ctx, part)
    counter = last & 0xFFFFFFFF
    if last >> 32 == _NO_REPEAT or nodes[counter].third < 0:
        return int64(-1)
    if (nodes[part].flags | nodes[other].flags) & COMPLEX_FLAG:
        return int64(-1)
    # What it counts is any character.
    if _width(ctx, nodes[counter].first) < _width(ctx, other):
        return int64(-1)
    low = nodes[counter].second
    if low > 1 or (low == 1 and (last >> 32 > 0 or nodes[other].flags & NULLABLE_FLAG)):
        return int64(-1)
    return counter << 32 | other
