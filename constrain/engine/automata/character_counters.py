"""Counters of characters beside a pattern: ``maxLength``."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import COMPLEX_FLAG, CONCAT, FITS_FLAG, NULLABLE_FLAG, REPEAT
from constrain.engine.storage import schemas as t
from constrain.engine.storage.bits import count_bits
from constrain.engine.storage.header import RESULT1
from constrain.engine.storage.jit import njit_inner
from constrain.kernels.language import int64

# The rest of a character has no more parts.
_MOST_PARTS = 8


@njit_inner(RESULT1)
def character_counter(ctx, node):
    """Of an intersection with a counter of characters that may be left out: ``counter << 32 | the other part``; or -1.

    See expressions.FITS_FLAG.  The counter may stand behind the rest of a character.
    """
    nodes = t.expressions(ctx)
    if not nodes[node].flags & FITS_FLAG or nodes[node].second != 2:
        return int64(-1)
    first = nodes[node].first
    found, widest = int64(-1), int64(-1)
    for i in range(2):
        counter, other = t.children(ctx)[first + i], t.children(ctx)[first + 1 - i]
        # Where both parts count, that one counts characters which begins with more bytes: it allows all of the other.
        width = int64(0)
        for word in range(4):
            width += count_bits(t.first_bytes(ctx)[counter, word])
        begun = nodes[counter].kind == CONCAT
        for _ in range(_MOST_PARTS):
            if nodes[counter].kind == CONCAT:
                counter = nodes[counter].second
        if nodes[counter].kind != REPEAT or nodes[counter].third < 0 or nodes[other].flags & COMPLEX_FLAG:
            continue
        low = nodes[counter].second
        if low > 1 or (low == 1 and (begun or nodes[other].flags & NULLABLE_FLAG)):
            continue
        if width == widest:
            return int64(-1)
        if width > widest:
            found, widest = counter << 32 | other, width
    return found
