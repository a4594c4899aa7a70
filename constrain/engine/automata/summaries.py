"""Summaries: what is known of each expression without looking into it again.

The bytes that its strings may begin and end with, those that each of them has, and bounds of their lengths.  Together
they tell most derivatives that are empty, most tokens that cannot be, and most states that cannot be shared.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import (
    COMPLEX_FLAG,
    CONCAT,
    EPSILON,
    INTERSECT,
    LITERAL,
    NULLABLE_FLAG,
    QUOTATION,
    REPEAT,
    SET,
    UNION,
)
from constrain.engine.automata.quotations import quoted_first_bytes
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i64, set_used
from constrain.engine.storage.header import CTX, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_DESCRIBE, far_entry
from constrain.kernels.language import int64, types

LONG = 1 << 24
"""Larger lengths are not told apart."""

_LOOKED_AT = 256
"""So many bytes of a literal are asked which ones they are: it is done again for each literal that is left of it."""


@njit_inner(types.void(CTX, int64, int64))
def _set_edge_bytes(ctx, expression, slot):
    """Compute the set of bytes that may begin (FIRST_BYTES) or end (LAST_BYTES) an expression's strings.

    It is 256 bits, possibly more than do.
    """
    records = t.expressions(ctx)
    edge = i64(ctx, slot)
    kind = records[expression].kind
    a, b = records[expression].first, records[expression].second
    outer, inner = (a, b) if slot == t.FIRST_BYTES else (b, a)
    for word in range(4):
        bits = int64(0)
        if kind == LITERAL:
            byte = t.literal_bytes(ctx)[a if slot == t.FIRST_BYTES else a + b - 1]
            if byte >> 6 == word:
                bits = int64(1) << (byte & 63)
        elif kind == SET:
            bits = t.byte_sets(ctx)[a, word]
        elif kind == CONCAT:
            bits = edge[4 * outer + word]
            if records[outer].flags & NULLABLE_FLAG:
                bits |= edge[4 * inner + word]
        elif kind == UNION:
            for i in range(b):
                bits |= edge[4 * t.children(ctx)[a + i] + word]
        elif kind == INTERSECT:
            bits = int64(-1)
            for i in range(b):
                bits &= edge[4 * t.children(ctx)[a + i] + word]
        elif kind == REPEAT:
            bits = edge[4 * a + word]
        elif kind == QUOTATION and slot == t.FIRST_BYTES:
            bits = quoted_first_bytes(ctx, expression, word)
        elif kind > EPSILON:
            bits = int64(-1)
        edge[4 * expression + word] = bits
    set_used(ctx, slot, expression + 1)


@njit_inner(types.void(CTX, int64))
def _set_necessary_bytes(ctx, expression):
    """Compute the set of bytes that every string of an expression has; it is 256 bits, possibly fewer than are."""
    records = t.expressions(ctx)
    must = t.necessary_bytes(ctx)
    kind = records[expression].kind
    a, b = records[expression].first, records[expression].second
    for word in range(4):
        bits = int64(0)
        if kind == LITERAL:
            for i in range(a, a + min(b, int64(_LOOKED_AT))):
                byte = t.literal_bytes(ctx)[i]
                if byte >> 6 == word:
                    bits |= int64(1) << (byte & 63)
        elif kind == CONCAT:
            bits = must[a, word] | must[b, word]
        elif kind == UNION:
            bits = int64(-1)
            for i in range(b):
                bits &= must[t.children(ctx)[a + i], word]
        elif kind == INTERSECT:
            for i in range(b):
                bits |= must[t.children(ctx)[a + i], word]
        elif kind == REPEAT and b > 0:
            bits = must[a, word]
        must[expression, word] = bits
    set_used(ctx, t.NECESSARY_BYTES, expression + 1)


@njit_inner(types.void(CTX, int64))
def _set_shortest_length(ctx, expression):
    """Compute a length that no string of an expression is shorter than."""
    records = t.expressions(ctx)
    shortest = t.shortest_lengths(ctx)
    kind = records[expression].kind
    a, b = records[expression].first, records[expression].second
    length = int64(0)
    if kind == LITERAL:
        length = b
    elif kind == SET:
        length = int64(1)
    elif kind == CONCAT:
        length = shortest[a] + shortest[b]
    elif kind == UNION:
        length = int64(LONG)
        for i in range(b):
            length = min(length, shortest[t.children(ctx)[a + i]])
    elif kind == INTERSECT:
        for i in range(b):
            length = max(length, shortest[t.children(ctx)[a + i]])
    elif kind == REPEAT:
        length = shortest[a] * b
    elif kind == QUOTATION:
        length = int64(0) if records[expression].flags & NULLABLE_FLAG else int64(1)
    shortest[expression] = min(length, int64(LONG))
    set_used(ctx, t.SHORTEST_LENGTHS, expression + 1)


@njit_inner(types.void(CTX, int64))
def _set_end_length(ctx, expression):
    """Compute how many bytes are enough to complete any beginning of a string of an expression; ``LONG`` if unknown."""
    records = t.expressions(ctx)
    shortest = t.shortest_lengths(ctx)
    reach = t.end_lengths(ctx)
    kind = records[expression].kind
    a, b = records[expression].first, records[expression].second
    length = int64(0)
    if records[expression].flags & COMPLEX_FLAG or kind == QUOTATION:
        length = int64(LONG)
    elif kind == LITERAL:
        length = b
    elif kind == SET:
        length = int64(1)
    elif kind == CONCAT:
        length = max(reach[a] + shortest[b], reach[b])
    elif kind == UNION:
        for i in range(b):
            length = max(length, reach[t.children(ctx)[a + i]])
    elif kind == REPEAT:
        length = reach[a] + shortest[a] * max(b - 1, int64(0))
    reach[expression] = min(length, int64(LONG))
    set_used(ctx, t.END_LENGTHS, expression + 1)


@njit_inner(RESULT2)
def describe(ctx, expression, _unused):
    """Compute what is kept about a new expression besides its record; there is room for it."""
    # Fingerprints are made as they are asked for (automata/fingerprints.py).
    t.expression_prints(ctx)[expression, 0] = t.expression_prints(ctx)[expression, 1] = 0
    set_used(ctx, t.EXPRESSION_PRINTS, expression + 1)
    _set_edge_bytes(ctx, expression, int64(t.FIRST_BYTES))
    _set_edge_bytes(ctx, expression, int64(t.LAST_BYTES))
    _set_necessary_bytes(ctx, expression)
    _set_shortest_length(ctx, expression)
    _set_end_length(ctx, expression)
    return int64(0)


far_entry(F_DESCRIBE, describe)
