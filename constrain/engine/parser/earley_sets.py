"""Earley sets, interned: what the parser expects next, as one integer.

An item is a dot (a place in a production) and an origin (the Earley set where the production began).  An Earley set is
the set of its *kernel* items: those reached by scanning a lexeme or completing a rule, with something left to come.  It
is interned by that content, and origins are numbers of Earley sets, so two places in the input with the same unfinished
rules around them are the same set.  What follows from a kernel by prediction is in its core (cores.py).
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.parser.kernel_items import drop_repeated
from constrain.engine.parser.origin_sets import make_origin_sets
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i64, room, set_used, used
from constrain.engine.storage.hashing import find, finish_hash, has_room, insert, mix, sort_keys
from constrain.engine.storage.header import CTX, RESULT0, RESULT2, START_NT
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_CORE, F_EARLEY_SET, far_call, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types


@njit_inner(types.boolean(CTX, int64, int64))
def _has_items(ctx, earley_set, count):
    """Whether the items of an Earley set are KERNEL_ITEMS[:count]."""
    if t.earley_sets(ctx)[earley_set].count != count:
        return False
    pool, offset, keys = t.earley_items(ctx), t.earley_sets(ctx)[earley_set].offset, t.kernel_items(ctx)
    for i in range(count):
        if pool[offset + i].dot != keys[i] >> 32 or pool[offset + i].origin != keys[i] & 0x7FFFFFFF:
            return False
    return True


@njit_inner(RESULT2)
def make_set(ctx, items, accepts):
    """The Earley set with the kernel items in KERNEL_ITEMS[:items], as keys ``dot << 32 | origin``, in any order.

    ``accepts`` is 1 if the whole input so far is a sentence.  Returns the Earley set's id or FAIL.
    """
    keys = i64(ctx, t.KERNEL_ITEMS)
    n = int64(1)
    while n < items and keys[n - 1] < keys[n]:
        n += 1
    if n < items:
        n = drop_repeated(ctx, int64(0), items)
        if n < 0:
            return n
        sort_keys(keys, n)
    n = min(n, items)
    code = accepts
    for i in range(n):
        code = mix(code, keys[i])
    code = finish_hash(code)
    records = t.earley_sets(ctx)
    earley_set = find(ctx, t.EARLEY_SET_HASHES, t.EARLEY_SET_BUCKETS, code, -1)
    while earley_set >= 0:
        if records[earley_set].accepts == accepts and _has_items(ctx, earley_set, n):
            return earley_set
        earley_set = find(ctx, t.EARLEY_SET_HASHES, t.EARLEY_SET_BUCKETS, code, earley_set)
    if not has_room(ctx, t.EARLEY_SET_HASHES, t.EARLEY_SET_BUCKETS) or not room(ctx, t.EARLEY_SETS, 1):
        return int64(FAIL)
    if not room(ctx, t.EARLEY_ITEMS, n) or not room(ctx, t.WORK_STACK, n) or not room(ctx, t.ORIGIN_SETS_AT, 1):
        return int64(FAIL)
    earley_set = used(ctx, t.EARLEY_SET_HASHES)
    pool = t.earley_items(ctx)
    # The items go to their final place first: making the core reuses KERNEL_ITEMS.
    offset = used(ctx, t.EARLEY_ITEMS)
    base = used(ctx, t.WORK_STACK)
    tmp = t.work_stack(ctx)
    dots = int64(0)
    for i in range(n):
        dot = keys[i] >> 32
        pool[offset + i] = dot, keys[i] & 0x7FFFFFFF
        if dots == 0 or tmp[base + dots - 1] != dot:
            tmp[base + dots] = dot
            dots += 1
    set_used(ctx, t.WORK_STACK, base + dots)
    core = far_call(ctx, F_CORE, base, dots)
    set_used(ctx, t.WORK_STACK, base)
    if core < 0:
        return core
    sets = make_origin_sets(ctx, offset, n, dots)
    if sets < -1:
        return sets
    t.origin_sets_at(ctx)[earley_set] = sets
    set_used(ctx, t.ORIGIN_SETS_AT, earley_set + 1)
    set_used(ctx, t.EARLEY_ITEMS, offset + n)
    records[earley_set] = core, offset, n, accepts, -1
    set_used(ctx, t.EARLEY_SETS, earley_set + 1)
    return insert(ctx, t.EARLEY_SET_HASHES, t.EARLEY_SET_BUCKETS, code)


far_entry(F_EARLEY_SET, make_set)


@njit_inner(RESULT2)
def is_within(ctx, earley_set, other):
    """Whether all items of an Earley set are in another one, and it accepts only if that does."""
    if t.earley_sets(ctx)[earley_set].accepts > t.earley_sets(ctx)[other].accepts:
        return int64(0)
    pool = t.earley_items(ctx)
    i = t.earley_sets(ctx)[earley_set].offset
    end = i + t.earley_sets(ctx)[earley_set].count
    j = t.earley_sets(ctx)[other].offset
    stop = j + t.earley_sets(ctx)[other].count
    while i < end:
        dot, origin = pool[i].dot, pool[i].origin
        while j < stop and (pool[j].dot < dot or (pool[j].dot == dot and pool[j].origin < origin)):
            j += 1
        if j == stop or pool[j].dot != dot or pool[j].origin != origin:
            return int64(0)
        i += 1
        j += 1
    return int64(1)


@njit_inner(RESULT0)
def make_start_set(ctx):
    """Earley set 0: the start rule, nothing read.  The start rule's only production begins at dot 0."""
    set_used(ctx, t.KERNEL_ITEMS, 0)
    if not room(ctx, t.KERNEL_ITEMS, 1):
        return int64(FAIL)
    t.kernel_items(ctx)[0] = 0
    return far_call(ctx, F_EARLEY_SET, int64(1), t.nullable(ctx)[ctx[START_NT]])
