"""Stand-ins: what a core decides, whatever its items began in.

A text in a nested language comes to ever new Earley sets, since each has origins of its own, and these have.  But it
comes to few cores.  The *stand-in* of a core is a set with this core whose items began in *unknown sets*, each in
another one.  It is read from like any other set.  Where a rule ends that began in an unknown set, what waits for it
there is not known, and the item stays at the end of its rule.

A set that holds such items is *undecided*.  What follows in truth is what follows without them, and what follows where
each of these rules is completed in what its item began in.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.parser.completion import complete_rule
from constrain.engine.parser.cores import IS_UNDECIDED, begin_epoch
from constrain.engine.parser.origin_sets import gather_sets
from constrain.engine.parser.rules import END
from constrain.engine.storage.access import room, set_used, used
from constrain.engine.storage.hashing import map_get, map_put
from constrain.engine.storage.header import CTX, RESULT1, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_EARLEY_SET, far_call
from constrain.engine.storage.schemas import (
    KERNEL_ITEMS,
    NEW_SETS,
    NEW_WORDS,
    SCAN_KEYS,
    SCAN_VALUES,
    UNKNOWN_SETS,
    WORK_STACK,
    core_dots,
    core_kinds,
    cores,
    dot_left,
    earley_items,
    earley_sets,
    kernel_items,
    origin_sets_at,
    symbols,
    unknown_sets,
    work_stack,
)
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types

_RULES = 1 << 30
"""In SCAN_KEYS: added to a rule that ends, in place of an accept set."""

_PAIR = 1 << 31
"""In SCAN_KEYS: added to another Earley set, whether the one goes on as the other."""

_MOST_PAIRS = 32
"""So many pairs of Earley sets are compared to find out whether two go on in the same way."""


@njit_inner(types.boolean(CTX, int64))
def is_undecided(ctx, earley_set):
    """Whether an Earley set holds items at the end of their rules."""
    return core_kinds(ctx)[earley_sets(ctx)[earley_set].core] & IS_UNDECIDED != 0


@njit_inner(RESULT1)
def place_of_unknown(ctx, earley_set):
    """Which dot of a core an unknown set stands for the origin of."""
    low, high = int64(0), used(ctx, UNKNOWN_SETS) - 1
    while low < high:
        middle = (low + high) // 2
        if unknown_sets(ctx)[middle] < earley_set:
            low = middle + 1
        else:
            high = middle
    return low


@njit_inner(RESULT1)
def _make_unknown_sets(ctx, count):
    """Have so many unknown sets at least; 0 or FAIL."""
    while used(ctx, UNKNOWN_SETS) < count:
        n = used(ctx, UNKNOWN_SETS)
        if not room(ctx, UNKNOWN_SETS, count - n) or not room(ctx, KERNEL_ITEMS, 1):
            return int64(FAIL)
        # Nothing begins at the end of a rule.  Each has the one before for an origin, by which they differ.
        dot = int64(0)
        while symbols(ctx)[dot] != END:
            dot += 1
        kernel_items(ctx)[0] = dot << 32 | (unknown_sets(ctx)[n - 1] if n else int64(0))
        made = far_call(ctx, F_EARLEY_SET, 1, 0)
        if made < 0:
            return made
        unknown_sets(ctx)[n] = made
        set_used(ctx, UNKNOWN_SETS, n + 1)
    return int64(0)


@njit_inner(RESULT1)
def stand_in(ctx, core):
    """The Earley set with a core whose items began in unknown sets; or FAIL."""
    count = cores(ctx)[core].count
    if _make_unknown_sets(ctx, count) < 0 or not room(ctx, KERNEL_ITEMS, count):
        return int64(FAIL)
    offset = cores(ctx)[core].offset
    for i in range(count):
        kernel_items(ctx)[i] = core_dots(ctx)[offset + i] << 32 | unknown_sets(ctx)[i]
    return far_call(ctx, F_EARLEY_SET, count, 0)


@njit_inner(RESULT1)
def without_ends(ctx, earley_set):
    """The Earley set with those items of an undecided one that are not at the end of their rule; or FAIL."""
    offset, count = earley_sets(ctx)[earley_set].offset, earley_sets(ctx)[earley_set].count
    if not room(ctx, KERNEL_ITEMS, count):
        return int64(FAIL)
    kept = int64(0)
    for i in range(offset, offset + count):
        item = earley_items(ctx)[i]
        if symbols(ctx)[item.dot] != END:
            kernel_items(ctx)[kept] = item.dot << 32 | item.origin
            kept += 1
    return far_call(ctx, F_EARLEY_SET, kept, earley_sets(ctx)[earley_set].accepts)


@njit_inner(RESULT2)
def set_behind(ctx, rule, origin):
    """The Earley set of what follows where a rule ends that began in a set that is known; or FAIL."""
    key = origin << 32 | _RULES + rule
    known = map_get(ctx, SCAN_KEYS, SCAN_VALUES, key)
    if known >= 0:
        return known
    set_used(ctx, KERNEL_ITEMS, 0)
    set_used(ctx, NEW_SETS, 0)
    set_used(ctx, NEW_WORDS, 0)
    begin_epoch(ctx)
    accepts = complete_rule(ctx, rule, origin)
    if accepts < 0:
        return accepts
    if used(ctx, NEW_SETS) > 0 and gather_sets(ctx, used(ctx, KERNEL_ITEMS)) < 0:
        return int64(FAIL)
    earley_set = far_call(ctx, F_EARLEY_SET, used(ctx, KERNEL_ITEMS), accepts)
    if earley_set >= 0 and map_put(ctx, SCAN_KEYS, SCAN_VALUES, key, earley_set) < 0:
        return int64(FAIL)
    return earley_set


@njit_inner(types.boolean(CTX, int64, int64))
def _look_alike(ctx, earley_set, other):
    """Whether two Earley sets differ by nothing but what their items began in."""
    a, b = earley_sets(ctx)[earley_set], earley_sets(ctx)[other]
    if a.core != b.core or a.accepts != b.accepts or a.count != b.count:
        return False
    if origin_sets_at(ctx)[earley_set] >= 0 or origin_sets_at(ctx)[other] >= 0:
        return False
    for i in range(a.count):
        item, twin = earley_items(ctx)[a.offset + i], earley_items(ctx)[b.offset + i]
        if item.dot != twin.dot or (item.origin != twin.origin and symbols(ctx)[item.dot] == END):
            return False
    return True


@njit_inner(RESULT3)
def _compare(ctx, earley_set, other, base):
    """As goes_on_as, provided that it is so for all pairs of sets at WORK_STACK[base:], to which others are added."""
    a, b = earley_sets(ctx)[earley_set].offset, earley_sets(ctx)[other].offset
    for i in range(earley_sets(ctx)[earley_set].count):
        item, twin = earley_items(ctx)[a + i], earley_items(ctx)[b + i]
        if item.origin == twin.origin:
            continue
        rule = int64(dot_left(ctx)[item.dot])
        behind = set_behind(ctx, rule, int64(item.origin))
        behind_twin = set_behind(ctx, rule, int64(twin.origin))
        if behind < 0 or behind_twin < 0:
            return int64(FAIL)
        top = used(ctx, WORK_STACK)
        j = base
        while j < top and (work_stack(ctx)[j] != behind or work_stack(ctx)[j + 1] != behind_twin):
            j += 2
        if behind == behind_twin or j < top:
            continue
        if top - base == 2 * _MOST_PAIRS or not _look_alike(ctx, behind, behind_twin):
            return int64(0)
        if not room(ctx, WORK_STACK, 2):
            return int64(FAIL)
        work_stack(ctx)[top] = behind
        work_stack(ctx)[top + 1] = behind_twin
        set_used(ctx, WORK_STACK, top + 2)
    return int64(1)


@njit_inner(RESULT2)
def goes_on_as(ctx, earley_set, other):
    """1 if what follows in two Earley sets is the same, although their items began in different ones; 0 or FAIL.

    What an item began in makes a difference only by what follows there once its rule ends.  In a list ``a b c`` that is
    the same for each item, though each began behind another one.  Such sets are bisimilar: what is behind an item in
    the one has its like in the other, and so on, which ends at pairs that were compared before.  1 is sure, 0 is not.
    """
    if earley_set == other:
        return int64(1)
    if not _look_alike(ctx, earley_set, other):
        return int64(0)
    key = earley_set << 32 | _PAIR | other
    known = map_get(ctx, SCAN_KEYS, SCAN_VALUES, key)
    if known >= 0:
        return known
    base = used(ctx, WORK_STACK)
    status = _compare(ctx, earley_set, other, base)
    i = base
    while status > 0 and i < used(ctx, WORK_STACK):
        status = _compare(ctx, int64(work_stack(ctx)[i]), int64(work_stack(ctx)[i + 1]), base)
        i += 2
    set_used(ctx, WORK_STACK, base)
    return status if status < 0 or map_put(ctx, SCAN_KEYS, SCAN_VALUES, key, status) == 0 else int64(FAIL)
