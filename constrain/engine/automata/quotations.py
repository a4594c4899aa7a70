"""Quotations: what may follow in some pieces of a text in a row.

A text to be quoted from is kept as it is (QUOTED_BYTES, with a place more for its end), with its cuts (QUOTED_CUTS) and
the places at which a piece begins, sorted by what the text is from there on (QUOTED_ORDER, made by suffix_order.py).
After some bytes of a quotation it may stand at several places; those are neighbours in that order.  So what may follow
is one of

* ``low, high, depth``: the places of ``QUOTED_ORDER[low:high]``, each ``depth`` bytes on; two or more of them;
* ``place, 0, -1``: one place of the text, in whatever way it was reached.

A byte makes the range narrower, by a search for its ends.  Nothing else is made beforehand: a text of a megabyte takes
two bytes for each byte and four for each piece, and sorting.

For example ``abcab`` by characters: the order is ``ab``, ``abcab``, ``b``, ``bcab``, ``cab``, the places 3, 0, 4, 1, 2.
After ``a`` the range is 0 to 2 at depth 1; after ``ab`` the same at depth 2; after ``abc`` it is the place 3.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import EPSILON, NULLABLE_FLAG, QUOTATION, QUOTES_FLAG, intern_expression
from constrain.engine.storage import schemas as t
from constrain.engine.storage.header import CTX, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_QUOTATION_DERIVATIVE, far_entry
from constrain.kernels.language import int64

INSIDE, CUT, END = 0, 1, 2
"""In QUOTED_CUTS: within a piece; where a piece begins; behind the last one."""


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _behind(ctx, low, high, depth, byte):
    """The first of ``QUOTED_ORDER[low:high]`` that has a greater byte than this ``depth`` bytes on.

    The steps begin with one place and double, then are halved: most ranges of one byte are short.
    """
    order, text, cuts = t.quoted_order(ctx), t.quoted_bytes(ctx), t.quoted_cuts(ctx)
    step = int64(1)
    while low < high:
        at = min(low + step, high) - 1
        place = order[at] + depth
        if cuts[place] != END and text[place] > byte:
            high = at
            break
        low = at + 1
        step *= 2
    while low < high:
        at = (low + high) >> 1
        place = order[at] + depth
        if cuts[place] != END and text[place] > byte:
            high = at
        else:
            low = at + 1
    return low


@njit_inner(RESULT2)
def quoted_first_bytes(ctx, expression, word):
    """The bytes that a quotation may go on with, of the 64 from ``64 * word`` on, as bits."""
    record = t.expressions(ctx)[expression]
    low, high, depth = int64(record.first), int64(record.second), int64(record.third)
    text = t.quoted_bytes(ctx)
    if depth < 0:
        byte = int64(text[low])
        return int64(1) << (byte & 63) if byte >> 6 == word else int64(0)
    bits = int64(0)
    low = _behind(ctx, low, high, depth, 64 * word - 1)
    while low < high:
        byte = int64(text[t.quoted_order(ctx)[low] + depth])
        if byte >> 6 != word:
            break
        bits |= int64(1) << (byte & 63)
        low = _behind(ctx, low, high, depth, byte)
    return bits


@njit_inner(RESULT3)
def make_quotation(ctx, low, high, depth):
    """What may follow at some places of a text, in one of the two forms above; at the end of a text, EPSILON."""
    cuts, order = t.quoted_cuts(ctx), t.quoted_order(ctx)
    if depth >= 0 and high - low == 1:
        low, high, depth = order[low] + depth, int64(0), int64(-1)
    if depth < 0:
        cut = int64(cuts[low])
        if cut == END:
            return int64(EPSILON)
    else:
        cut = int64(INSIDE)
        for i in range(low, high):
            if cuts[order[i] + depth] != INSIDE:
                cut = int64(CUT)
                break
    head = QUOTATION | QUOTES_FLAG | (NULLABLE_FLAG if cut != INSIDE else 0)
    return intern_expression(ctx, head, low, high, depth)


@njit_inner(RESULT2)
def quotation_derivative(ctx, expression, byte):
    """What may follow ``byte``, with which the quotation can go on."""
    record = t.expressions(ctx)[expression]
    low, high, depth = int64(record.first), int64(record.second), int64(record.third)
    if depth < 0:
        return make_quotation(ctx, low + 1, high, depth)
    low = _behind(ctx, low, high, depth, byte - 1)
    return make_quotation(ctx, low, _behind(ctx, low, high, depth, byte), depth + 1)


far_entry(F_QUOTATION_DERIVATIVE, quotation_derivative)
