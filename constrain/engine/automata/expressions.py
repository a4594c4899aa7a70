"""Expressions: hash-consed regular expressions over bytes.

An expression is a record in EXPRESSIONS: its kind and flags, and three numbers that depend on the kind.

========= ====================== =============== ========
kind      first                  second          third
========= ====================== =============== ========
LITERAL   place in LITERAL_BYTES bytes           0
SET       byte set               0               0
CONCAT    expression             expression      0
UNION     place in CHILDREN      parts           0
INTERSECT place in CHILDREN      parts           0
NOT       expression             0               0
REPEAT    expression             least           most, -1
QUOTATION see quotations.py
========= ====================== =============== ========

Expressions are interned, so equal ones (up to associativity, commutativity and idempotence of ``|`` and ``&``) are the
same integer; that makes the set of derivatives of an expression finite (Brzozowski, 1964, theorem 5.2) and an
expression a ready-made automaton state (derivatives.py).
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import bucket_room, push, push_pair, room, set_used, used
from constrain.engine.storage.hashing import find, finish_hash, has_room, insert, mix
from constrain.engine.storage.header import BUDGET, CTX, RESULT1, RESULT2, RESULT4
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_DESCRIBE, F_SET_OPERATION, far_call
from constrain.engine.storage.statuses import FAIL, LIMIT
from constrain.kernels.language import int64, types

EMPTY, EPSILON, ALL, LITERAL, SET, CONCAT, UNION, INTERSECT, NOT, REPEAT, QUOTATION = range(11)
"""Kinds of expression.  Number 0 is the empty language, 1 the empty string, 2 every string."""

NULLABLE_FLAG = 1 << 8

# An expression with an intersection or a complement inside may denote nothing although it is not
# expression 0, so whether it is alive has to be searched for.
COMPLEX_FLAG = 2 << 8

# An expression without this flag denotes finitely many strings.
LOOP_FLAG = 4 << 8

# Of an intersection: a part counts (COUNTS_FLAG), and every string of the others is a sequence of what it counts.
FITS_FLAG = 8 << 8

# A quotation is inside: the expression says something of one grammar's tables only.
QUOTES_FLAG = 16 << 8

# Of a repetition: it counts the characters of what it is intersected with.  What a pattern repeats has it not, even if
# it is the same item, so that the two are not confused.
COUNTS_FLAG = 32 << 8

INHERITED = COMPLEX_FLAG | LOOP_FLAG | QUOTES_FLAG
"""What an expression has if a part of it has."""

UNKNOWN, ALIVE, DEAD, VISITED = 0, 1, 2, 3
"""In LIVENESS: not searched for yet; there is a string; there is none; a search under way has been there."""


@njit_inner(RESULT2)
def first_bytes(ctx, expression, word):
    """A quarter of the set of the bytes that the strings of an expression may begin with."""
    return t.summary_sets(ctx)[t.first_bytes(ctx)[expression], word]


@njit_inner(RESULT2)
def last_bytes(ctx, expression, word):
    """A quarter of the set of the bytes that they may end with."""
    return t.summary_sets(ctx)[t.last_bytes(ctx)[expression], word]


@njit_inner(RESULT2)
def necessary_bytes(ctx, expression, word):
    """A quarter of the set of the bytes that each of them has."""
    return t.summary_sets(ctx)[t.necessary_bytes(ctx)[expression], word]


@njit_inner(int64(CTX, int64))
def is_nullable(ctx, expression):
    """Whether an expression's language holds the empty string (1 or 0)."""
    return int64(t.expressions(ctx)[expression].flags >> 8) & 1


@njit_inner(int64(CTX, int64, int64, int64, int64, int64))
def append_expression(ctx, head, a, b, c, code):
    """Append an expression that is known to be new; returns its number, FAIL or LIMIT."""
    expression = used(ctx, t.EXPRESSION_HASHES)
    if ctx[BUDGET] == 0:
        return int64(LIMIT)
    ctx[BUDGET] -= 1
    if not has_room(ctx, t.EXPRESSION_HASHES, t.EXPRESSION_BUCKETS):
        return int64(FAIL)
    if not room(ctx, t.EXPRESSIONS, 1) or not room(ctx, t.LIVENESS, 1) or not room(ctx, t.EXPRESSION_PRINTS, 1):
        return int64(FAIL)
    if not room(ctx, t.FIRST_BYTES, 1) or not room(ctx, t.LAST_BYTES, 1) or not room(ctx, t.NECESSARY_BYTES, 1):
        return int64(FAIL)
    # Three sets of bytes at most.
    if not room(ctx, t.SUMMARY_SETS, 3) or not room(ctx, t.SUMMARY_SET_HASHES, 3):
        return int64(FAIL)
    if not bucket_room(ctx, t.SUMMARY_SET_BUCKETS, used(ctx, t.SUMMARY_SET_HASHES) + 2):
        return int64(FAIL)
    if not room(ctx, t.SHORTEST_LENGTHS, 1) or not room(ctx, t.END_LENGTHS, 1) or not room(ctx, t.LIFE_LENGTHS, 1):
        return int64(FAIL)
    records = t.expressions(ctx)
    records[expression].flags = head
    records[expression].first = a
    records[expression].second = b
    records[expression].third = c
    far_call(ctx, F_DESCRIBE, expression, 0)
    t.liveness(ctx)[expression] = UNKNOWN
    set_used(ctx, t.EXPRESSIONS, expression + 1)
    set_used(ctx, t.LIVENESS, expression + 1)
    set_used(ctx, t.LIFE_LENGTHS, expression + 1)
    return insert(ctx, t.EXPRESSION_HASHES, t.EXPRESSION_BUCKETS, code)


@njit_inner(int64(CTX, int64, int64, int64, int64))
def intern_expression(ctx, head, a, b, c):
    """The expression with these fields (not for UNION and INTERSECT, whose parts lie in a pool)."""
    code = finish_hash(mix(mix(mix(mix(0, head), a), b), c))
    records = t.expressions(ctx)
    known = find(ctx, t.EXPRESSION_HASHES, t.EXPRESSION_BUCKETS, code, -1)
    while known >= 0:
        record = records[known]
        if record.flags == head and record.first == a and record.second == b and record.third == c:
            return known
        known = find(ctx, t.EXPRESSION_HASHES, t.EXPRESSION_BUCKETS, code, known)
    return append_expression(ctx, head, a, b, c, code)


@njit_inner(RESULT2)
def make_concat(ctx, left, right):
    """``left`` then ``right``, kept right-associative so that equal sequences are the same expression."""
    if left == EMPTY or right == EMPTY:
        return int64(EMPTY)
    if left == EPSILON:
        return right
    if right == EPSILON:
        return left
    base = used(ctx, t.WORK_STACK)
    records = t.expressions(ctx)
    while records[left].kind == CONCAT:
        if not push(ctx, t.WORK_STACK, records[left].first):
            return int64(FAIL)
        left = records[left].second
    while True:
        records = t.expressions(ctx)
        flags = (records[left].flags | records[right].flags) & INHERITED
        nullable = records[left].flags & records[right].flags & NULLABLE_FLAG
        right = intern_expression(ctx, CONCAT | flags | nullable, left, right, 0)
        if right < 0 or used(ctx, t.WORK_STACK) == base:
            return right
        left = t.work_stack(ctx)[used(ctx, t.WORK_STACK) - 1]
        set_used(ctx, t.WORK_STACK, used(ctx, t.WORK_STACK) - 1)


@njit_inner(RESULT1)
def make_not(ctx, expression):
    """The complement of ``expression``."""
    if expression == EMPTY:
        return int64(ALL)
    if expression == ALL:
        return int64(EMPTY)
    records = t.expressions(ctx)
    if records[expression].kind == NOT:
        return records[expression].first
    nullable = NULLABLE_FLAG - (records[expression].flags & NULLABLE_FLAG)
    return intern_expression(ctx, NOT | COMPLEX_FLAG | LOOP_FLAG | nullable, expression, 0, 0)


@njit_inner(types.boolean(CTX, int64))
def takes_any_byte(ctx, expression):
    """Whether an expression is the set of all bytes."""
    record, sets = t.expressions(ctx)[expression], t.byte_sets(ctx)
    if record.kind != SET:
        return False
    members = record.first
    return sets[members, 0] & sets[members, 1] & sets[members, 2] & sets[members, 3] == -1


@njit_inner(RESULT4)
def make_repeat(ctx, expression, low, high, counts):
    """``expression`` from ``low`` to ``high`` times; ``high`` -1 for no bound; ``counts`` is COUNTS_FLAG, or 0."""
    if high == 0 or expression == EPSILON:
        return int64(EPSILON)
    if expression == EMPTY:
        return int64(EPSILON) if low == 0 else int64(EMPTY)
    head = t.expressions(ctx)[expression].flags
    if head & NULLABLE_FLAG:
        low = 0
    if low == 1 and high == 1:
        return expression
    if expression == ALL or (low == 0 and high < 0 and takes_any_byte(ctx, expression)):
        return int64(ALL)
    flags = (head & INHERITED) | (NULLABLE_FLAG if low == 0 else 0) | (LOOP_FLAG if high < 0 else 0)
    return intern_expression(ctx, REPEAT | flags | counts, expression, low, high)


@njit_inner(RESULT2)
def make_literal(ctx, offset, length):
    """The bytes ``LITERAL_BYTES[offset:offset + length]``."""
    if length == 0:
        return int64(EPSILON)
    return intern_expression(ctx, LITERAL, offset, length, 0)


@njit_inner(RESULT2)
def make_union(ctx, left, right):
    """``left | right``."""
    if left == EMPTY or left == right:
        return right
    if right == EMPTY:
        return left
    base = used(ctx, t.WORK_STACK)
    if not push_pair(ctx, t.WORK_STACK, left, right):
        return int64(FAIL)
    return far_call(ctx, F_SET_OPERATION, int64(UNION), base)
