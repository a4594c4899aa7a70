"""Summaries: what is known of each expression without looking into it again.

The bytes that its strings may begin and end with, those that each of them has, and bounds of their lengths.  Together
they tell most derivatives that are empty, most tokens that cannot be, and most states that cannot be shared.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.quotations import quoted_first_bytes
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import set_used, used
from constrain.engine.storage.hashing import find, finish_hash, insert, mix
from constrain.engine.storage.header import CTX, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_DESCRIBE, far_entry
from constrain.kernels.language import int64, types

LONG = 1 << 24
"""Larger lengths are not told apart."""

_LOOKED_AT = 256
"""So many bytes of a literal are asked which ones they are: it is done again for each literal that is left of it."""


@njit_inner(types.void(CTX, int64))
def _set_literal_bytes(ctx, expression):
    """Compute the sets of bytes of a literal; see _set_bytes."""
    sets, first = t.summary_sets(ctx), used(ctx, t.SUMMARY_SETS)
    last, must = first + 1, first + 2
    record, data = t.expressions(ctx)[expression], t.literal_bytes(ctx)
    begin, end = int64(record.first), int64(record.first + record.second)
    for word in range(4):
        sets[first, word] = sets[last, word] = sets[must, word] = 0
    sets[first, data[begin] >> 6] = int64(1) << (data[begin] & 63)
    sets[last, data[end - 1] >> 6] = int64(1) << (data[end - 1] & 63)
    for i in range(begin, min(end, begin + _LOOKED_AT)):
        sets[must, data[i] >> 6] |= int64(1) << (data[i] & 63)


@njit_inner(types.void(CTX, int64))
def _set_bytes(ctx, expression):
    """Compute the sets of the bytes that may begin and that may end an expression's strings, and that all of them have.

    They are written behind the sets that are known.  Of the first two there are possibly more bytes than do, of the
    third possibly fewer.
    """
    sets, new = t.summary_sets(ctx), used(ctx, t.SUMMARY_SETS)
    records = t.expressions(ctx)
    kind = records[expression].kind
    a, b = int64(records[expression].first), int64(records[expression].second)
    for word in range(4):
        begins, ends, needs = int64(0), int64(0), int64(0)
        if kind == e.SET:
            begins = ends = t.byte_sets(ctx)[a, word]
        elif kind == e.CONCAT:
            begins, ends = e.first_bytes(ctx, a, word), e.last_bytes(ctx, b, word)
            needs = e.necessary_bytes(ctx, a, word) | e.necessary_bytes(ctx, b, word)
            if records[a].flags & e.NULLABLE_FLAG:
                begins |= e.first_bytes(ctx, b, word)
            if records[b].flags & e.NULLABLE_FLAG:
                ends |= e.last_bytes(ctx, a, word)
        elif kind == e.UNION:
            needs = int64(-1)
            for i in range(a, a + b):
                part = int64(t.children(ctx)[i])
                begins, ends = begins | e.first_bytes(ctx, part, word), ends | e.last_bytes(ctx, part, word)
                needs &= e.necessary_bytes(ctx, part, word)
        elif kind == e.INTERSECT:
            begins, ends = int64(-1), int64(-1)
            for i in range(a, a + b):
                part = int64(t.children(ctx)[i])
                begins, ends = begins & e.first_bytes(ctx, part, word), ends & e.last_bytes(ctx, part, word)
                needs |= e.necessary_bytes(ctx, part, word)
        elif kind == e.REPEAT:
            begins, ends = e.first_bytes(ctx, a, word), e.last_bytes(ctx, a, word)
            needs = e.necessary_bytes(ctx, a, word) if b > 0 else int64(0)
        elif kind > e.EPSILON:
            begins = quoted_first_bytes(ctx, expression, word) if kind == e.QUOTATION else int64(-1)
            ends = int64(-1)
        sets[new, word], sets[new + 1, word], sets[new + 2, word] = begins, ends, needs


@njit_inner(RESULT1)
def _keep_set(ctx, row):
    """The number of the set of bytes in a row of SUMMARY_SETS behind those that are known; it becomes known."""
    sets = t.summary_sets(ctx)
    code = int64(0)
    for word in range(4):
        code = mix(code, sets[row, word])
    code = finish_hash(code)
    known = find(ctx, t.SUMMARY_SET_HASHES, t.SUMMARY_SET_BUCKETS, code, -1)
    while known >= 0:
        if (
            sets[known, 0] == sets[row, 0]
            and sets[known, 1] == sets[row, 1]
            and sets[known, 2] == sets[row, 2]
            and sets[known, 3] == sets[row, 3]
        ):
            return known
        known = find(ctx, t.SUMMARY_SET_HASHES, t.SUMMARY_SET_BUCKETS, code, known)
    end = used(ctx, t.SUMMARY_SETS)
    for word in range(4):
        sets[end, word] = sets[row, word]
    set_used(ctx, t.SUMMARY_SETS, end + 1)
    return insert(ctx, t.SUMMARY_SET_HASHES, t.SUMMARY_SET_BUCKETS, code)


@njit_inner(types.void(CTX, int64))
def _set_lengths(ctx, expression):
    """Compute the least bytes that a string of an expression has, and how many complete any beginning of one.

    The first is possibly less; the second is LONG if it is not known.
    """
    records = t.expressions(ctx)
    shortest, to_end = t.shortest_lengths(ctx), t.end_lengths(ctx)
    kind = records[expression].kind
    a, b = int64(records[expression].first), int64(records[expression].second)
    least, most = int64(0), int64(0)
    if kind == e.LITERAL:
        least = most = b
    elif kind == e.SET:
        least = most = int64(1)
    elif kind == e.CONCAT:
        least = int64(shortest[a] + shortest[b])
        most = int64(max(to_end[a] + shortest[b], to_end[b]))
    elif kind == e.UNION:
        least = int64(LONG)
        for i in range(a, a + b):
            part = t.children(ctx)[i]
            least, most = min(least, int64(shortest[part])), max(most, int64(to_end[part]))
    elif kind == e.INTERSECT:
        for i in range(a, a + b):
            least = max(least, int64(shortest[t.children(ctx)[i]]))
    elif kind == e.REPEAT:
        least = shortest[a] * b
        most = to_end[a] + shortest[a] * max(b - 1, int64(0))
    elif kind == e.QUOTATION:
        least = int64(records[expression].flags & e.NULLABLE_FLAG == 0)
    if records[expression].flags & e.COMPLEX_FLAG or kind == e.QUOTATION:
        most = int64(LONG)
    shortest[expression], to_end[expression] = min(least, int64(LONG)), min(most, int64(LONG))


@njit_inner(RESULT2)
def describe(ctx, expression, _unused):
    """Compute what is kept about a new expression besides its record; there is room for it."""
    if t.expressions(ctx)[expression].kind == e.LITERAL:
        _set_literal_bytes(ctx, expression)
    else:
        _set_bytes(ctx, expression)
    new = used(ctx, t.SUMMARY_SETS)
    t.first_bytes(ctx)[expression] = _keep_set(ctx, new)
    t.last_bytes(ctx)[expression] = _keep_set(ctx, new + 1)
    t.necessary_bytes(ctx)[expression] = _keep_set(ctx, new + 2)
    _set_lengths(ctx, expression)
    # Fingerprints are made as they are asked for (automata/fingerprints.py).
    t.expression_prints(ctx)[expression, 0] = t.expression_prints(ctx)[expression, 1] = 0
    for slot in (
        t.FIRST_BYTES,
        t.LAST_BYTES,
        t.NECESSARY_BYTES,
        t.SHORTEST_LENGTHS,
        t.END_LENGTHS,
        t.EXPRESSION_PRINTS,
    ):
        set_used(ctx, slot, expression + 1)
    return int64(0)


far_entry(F_DESCRIBE, describe)
