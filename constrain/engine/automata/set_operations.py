"""Unions and intersections of expressions: flat, sorted, without repetitions, and without parts that others hold."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata import expressions as e
from constrain.engine.automata.absorption import absorb
from constrain.engine.automata.expressions import append_expression, is_nullable
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i32, i64, room, set_used, used
from constrain.engine.storage.hashing import find, hash_staged, is_staged, keep_staged, mix, sort_keys
from constrain.engine.storage.header import BUDGET, CTX, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_SET_OPERATION, F_SUBSUME, far_call, far_entry
from constrain.engine.storage.statuses import FAIL, LIMIT
from constrain.kernels.language import int64, types


@njit_inner(types.UniTuple(int64, 3)(CTX, int64))
def _counter(ctx, expression):
    """(item, low, high) of the counter that a sequence begins with."""
    records = t.expressions(ctx)
    head = records[expression].first
    return records[head].first, records[head].second, records[head].third


@njit_inner(RESULT2)
def subsume(ctx, base, count):
    """Drop from the ``count`` parts of a union at ``WORK_STACK[base]`` those that another part holds.

    That is what a star absorbs, and ``x{a,b} t`` beside ``x{c,d} t`` with c <= a and b <= d.  Counters within counters
    would otherwise make unions as long as the product of their bounds.  Returns how many are left.
    """
    count = absorb(ctx, base, count)
    if count < 0:
        return count
    if not room(ctx, t.WORK_STACK, count) or not room(ctx, t.SUBSUMED, count):
        return int64(FAIL)
    tmp = t.work_stack(ctx)
    records = t.expressions(ctx)
    # The counted parts, by what follows them; only those with equal tails are compared.
    keys = t.subsumed(ctx)
    counted = int64(0)
    for i in range(count):
        expression = tmp[base + i]
        if records[expression].kind == e.CONCAT and records[records[expression].first].kind == e.REPEAT:
            keys[counted] = records[expression].second << 32 | i
            counted += 1
    if counted < 2:
        return count
    sort_keys(i64(ctx, t.SUBSUMED), counted)
    dropped = 0
    for i in range(counted):
        place = keys[i] & 0x7FFFFFFF
        item, low, high = _counter(ctx, tmp[base + place])
        for step in (-1, 1):
            j = i + step
            while 0 <= j < counted and keys[j] >> 32 == keys[i] >> 32:
                # A part that was dropped is now EMPTY; what held it holds this one too, if it did.
                other = tmp[base + (keys[j] & 0x7FFFFFFF)]
                if other != e.EMPTY:
                    wide_item, wide_low, wide_high = _counter(ctx, other)
                    if wide_item == item and wide_low <= low and (wide_high < 0 or 0 <= high <= wide_high):
                        tmp[base + place] = e.EMPTY
                        dropped += 1
                        break
                j += step
            if tmp[base + place] == e.EMPTY:
                break
    if dropped == 0:
        return count
    n = int64(0)
    for i in range(count):
        if tmp[base + i] != e.EMPTY:
            tmp[base + n] = tmp[base + i]
            n += 1
    return n


far_entry(F_SUBSUME, subsume)


@njit_inner(int64(CTX, int64, int64, int64))
def _flatten(ctx, kind, base, neutral):
    """Let the parts on WORK_STACK from ``base`` on that are of this kind give way to their own parts; 0 or FAIL."""
    tmp = t.work_stack(ctx)
    records = t.expressions(ctx)
    pool = t.children(ctx)
    for i in range(base, used(ctx, t.WORK_STACK)):
        child = tmp[i]
        if records[child].kind == kind:
            tmp[i] = neutral
            length = records[child].second
            if not room(ctx, t.WORK_STACK, length):
                return int64(FAIL)
            end = used(ctx, t.WORK_STACK)
            offset = records[child].first
            for j in range(length):
                tmp[end + j] = pool[offset + j]
            set_used(ctx, t.WORK_STACK, end + length)
    return int64(0)


@njit_inner(int64(int64))
def _work_of_sorting(count):
    """What so many parts take of a call's budget: each counts once, and more often where there are very many."""
    bits = int64(4)
    while count >> bits > 0:
        bits += 1
    return count * bits >> 2


@njit_inner(types.boolean(CTX, int64, int64))
def _contradicts_itself(ctx, base, count):
    """Whether there is an expression and its complement among the ``count`` parts at ``WORK_STACK[base]``, sorted."""
    tmp = t.work_stack(ctx)
    records = t.expressions(ctx)
    for i in range(base, base + count):
        if records[tmp[i]].kind != e.NOT:
            continue
        item = records[tmp[i]].first
        low, high = base, base + count
        while low < high:
            middle = (low + high) >> 1
            if tmp[middle] < item:
                low = middle + 1
            else:
                high = middle
        if low < base + count and tmp[low] == item:
            return True
    return False


@njit_inner(types.boolean(CTX, int64))
def _counts_no_more(ctx, expression):
    """Whether an expression counts characters, of which any number is enough now: what it counts fits it anyway."""
    record = t.expressions(ctx)[expression]
    return record.flags & e.COUNTS_FLAG != 0 and record.second == 0 and record.third < 0


@njit_inner(int64(CTX, int64, int64))
def make_set_operation(ctx, kind, base):
    """Union or intersection of the expressions on the work stack from ``base`` up, which are taken off it.

    FITS_FLAG may be added to the kind.
    """
    fits = kind & e.FITS_FLAG
    kind &= 255
    tmp = t.work_stack(ctx)
    records = t.expressions(ctx)
    neutral, absorbing = (e.EMPTY, e.ALL) if kind == e.UNION else (e.ALL, e.EMPTY)
    if _flatten(ctx, kind, base, neutral) < 0:
        return int64(FAIL)
    count = used(ctx, t.WORK_STACK) - base
    work = _work_of_sorting(count)
    if ctx[BUDGET] < work:
        return int64(LIMIT)
    ctx[BUDGET] -= work
    sort_keys(i32(ctx, t.WORK_STACK)[base : base + count], count)
    n = 0
    # What is left if nothing else is.
    counter = int64(neutral)
    nullable = 0 if kind == e.UNION else 1
    flags = 0
    for i in range(base, base + count):
        child = tmp[i]
        if child == absorbing:
            set_used(ctx, t.WORK_STACK, base)
            return int64(absorbing)
        if child == neutral or (n > 0 and tmp[base + n - 1] == child):
            continue
        if fits and _counts_no_more(ctx, child):
            counter = child
            continue
        tmp[base + n] = child
        n += 1
        flags |= records[child].flags & e.INHERITED
        child_nullable = is_nullable(ctx, child)
        if kind == e.UNION:
            nullable |= child_nullable
        else:
            nullable &= child_nullable
    if kind == e.UNION and n > 1:
        n = far_call(ctx, F_SUBSUME, int64(base), int64(n))
        if n < 0:
            return n
    set_used(ctx, t.WORK_STACK, base)
    if n == 0:
        return counter
    if n == 1:
        return tmp[base]
    if kind == e.INTERSECT:
        if tmp[base] == e.EPSILON:
            return int64(e.EPSILON if nullable else e.EMPTY)
        if flags & e.COMPLEX_FLAG and _contradicts_itself(ctx, base, n):
            return int64(e.EMPTY)
        flags |= e.COMPLEX_FLAG | fits
    head = kind | flags | (nullable * e.NULLABLE_FLAG)
    code = hash_staged(ctx, mix(0, head), base, n)
    known = find(ctx, t.EXPRESSION_HASHES, t.EXPRESSION_BUCKETS, code, -1)
    while known >= 0:
        record = records[known]
        if record.flags == head and record.second == n and is_staged(ctx, t.CHILDREN, record.first, base, n):
            return known
        known = find(ctx, t.EXPRESSION_HASHES, t.EXPRESSION_BUCKETS, code, known)
    if not room(ctx, t.CHILDREN, n):
        return int64(FAIL)
    # The parts come first: what is known of the whole is made of them.
    offset = used(ctx, t.CHILDREN)
    keep_staged(ctx, t.CHILDREN, base, n)
    known = append_expression(ctx, head, offset, n, 0, code)
    if known < 0:
        set_used(ctx, t.CHILDREN, offset)
    return known


far_entry(F_SET_OPERATION, make_set_operation)
