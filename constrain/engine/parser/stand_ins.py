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
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import push_pair, room, set_used, used
from constrain.engine.storage.hashing import map_get, map_put
from constrain.engine.storage.header import CTX, RESULT1, RESULT2, RESULT3
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_EARLEY_SET, far_call
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types

_RULES = 1 << 30
"""In SCAN_KEYS: added to a rule that ends, in place of an accept set."""

_PAIR = 1 << 31
"""In SCAN_KEYS: added to another Earley set, whether the one is covered by the other."""

_MOST_PAIRS = 32
"""So many pairs of Earley sets are compared to find out whether one covers another."""


@njit_inner(types.boolean(CTX, int64))
def is_undecided(ctx, earley_set):
    """Whether an Earley set holds items at the end of their rules."""
    return t.core_kinds(ctx)[t.earley_sets(ctx)[earley_set].core] & IS_UNDECIDED != 0


@njit_inner(RESULT1)
def place_of_unknown(ctx, earley_set):
    """Which dot of a core an unknown set stands for the origin of."""
    low, high = int64(0), used(ctx, t.UNKNOWN_SETS) - 1
    while low < high:
        middle = (low + high) // 2
        if t.unknown_sets(ctx)[middle] < earley_set:
            low = middle + 1
        else:
            high = middle
    return low


@njit_inner(RESULT1)
def _make_unknown_sets(ctx, count):
    """Have so many unknown sets at least; 0 or FAIL."""
    while used(ctx, t.UNKNOWN_SETS) < count:
        n = used(ctx, t.UNKNOWN_SETS)
        if not room(ctx, t.UNKNOWN_SETS, count - n) or not room(ctx, t.KERNEL_ITEMS, 1):
            return int64(FAIL)
        # Nothing begins at the end of a rule.  Each has the one before for an origin, by which they differ.
        dot = int64(0)
        while t.symbols(ctx)[dot] != END:
            dot += 1
        t.kernel_items(ctx)[0] = dot << 32 | (t.unknown_sets(ctx)[n - 1] if n else int64(0))
        made = far_call(ctx, F_EARLEY_SET, 1, 0)
        if made < 0:
            return made
        t.unknown_sets(ctx)[n] = made
        set_used(ctx, t.UNKNOWN_SETS, n + 1)
    return int64(0)


@njit_inner(RESULT1)
def stand_in(ctx, core):
    """The Earley set with a core whose items began in unknown sets; or FAIL."""
    count = t.cores(ctx)[core].count
    if _make_unknown_sets(ctx, count) < 0 or not room(ctx, t.KERNEL_ITEMS, count):
        return int64(FAIL)
    offset = t.cores(ctx)[core].offset
    for i in range(count):
        t.kernel_items(ctx)[i] = t.core_dots(ctx)[offset + i] << 32 | t.unknown_sets(ctx)[i]
    return far_call(ctx, F_EARLEY_SET, count, 0)


@njit_inner(RESULT1)
def without_ends(ctx, earley_set):
    """The Earley set with those items of an undecided one that are not at the end of their rule; or FAIL."""
    offset, count = t.earley_sets(ctx)[earley_set].offset, t.earley_sets(ctx)[earley_set].count
    if not room(ctx, t.KERNEL_ITEMS, count):
        return int64(FAIL)
    kept = int64(0)
    for i in range(offset, offset + count):
        item = t.earley_items(ctx)[i]
        if t.symbols(ctx)[item.dot] != END:
            t.kernel_items(ctx)[kept] = item.dot << 32 | item.origin
            kept += 1
    return far_call(ctx, F_EARLEY_SET, kept, t.earley_sets(ctx)[earley_set].accepts)


@njit_inner(RESULT2)
def set_behind(ctx, rule, origin):
    """The Earley set of what follows where a rule ends that began in a set that is known; or FAIL."""
    key = origin << 32 | _RULES + rule
    known = map_get(ctx, t.SCAN_KEYS, t.SCAN_VALUES, key)
    if known >= 0:
        return known
    set_used(ctx, t.KERNEL_ITEMS, 0)
    set_used(ctx, t.NEW_SETS, 0)
    set_used(ctx, t.NEW_WORDS, 0)
    begin_epoch(ctx)
    accepts = complete_rule(ctx, rule, origin)
    if accepts < 0:
        return accepts
    if used(ctx, t.NEW_SETS) > 0 and gather_sets(ctx, used(ctx, t.KERNEL_ITEMS)) < 0:
        return int64(FAIL)
    earley_set = far_call(ctx, F_EARLEY_SET, used(ctx, t.KERNEL_ITEMS), accepts)
    if earley_set >= 0 and map_put(ctx, t.SCAN_KEYS, t.SCAN_VALUES, key, earley_set) < 0:
        return int64(FAIL)
    return earley_set


@njit_inner(types.boolean(CTX, int64, int64))
def _may_cover(ctx, other, earley_set):
    """Whether two Earley sets have the same core, and are made up of items."""
    a, b = t.earley_sets(ctx)[earley_set], t.earley_sets(ctx)[other]
    if a.core != b.core or a.accepts != b.accepts:
        return False
    return t.origin_sets_at(ctx)[earley_set] < 0 and t.origin_sets_at(ctx)[other] < 0


@njit_inner(RESULT3)
def _note_pair(ctx, base, earley_set, other):
    """Have a pair of Earley sets at WORK_STACK[base:], once; 1, 0 if there are too many, or FAIL."""
    top = used(ctx, t.WORK_STACK)
    for i in range(base, top, 2):
        if t.work_stack(ctx)[i] == earley_set and t.work_stack(ctx)[i + 1] == other:
            return int64(1)
    if top - base == 2 * _MOST_PAIRS:
        return int64(0)
    return int64(1 if push_pair(ctx, t.WORK_STACK, earley_set, other) else FAIL)


@njit_inner(int64(CTX, int64, int64, int64, int64))
def _cover_item(ctx, dot, origin, other, base):
    """1 if an item of ``other`` leads to all that an item leads to, provided that ``other`` sets of pairs at
    WORK_STACK[base:] cover theirs; 0 or FAIL.
    """
    end = int64(t.earley_sets(ctx)[other].offset) + t.earley_sets(ctx)[other].count
    first = int64(t.earley_sets(ctx)[other].offset)
    while first < end and t.earley_items(ctx)[first].dot < dot:
        first += 1
    last = first
    while last < end and t.earley_items(ctx)[last].dot == dot:
        if t.earley_items(ctx)[last].origin == origin:
            return int64(1)
        last += 1
    if t.symbols(ctx)[dot] == END:
        return int64(0)
    rule = int64(t.dot_left(ctx)[dot])
    behind = set_behind(ctx, rule, origin)
    if behind < 0:
        return behind
    wanted = int64(-1)
    for i in range(first, last):
        covers = set_behind(ctx, rule, int64(t.earley_items(ctx)[i].origin))
        if covers < 0 or covers == behind:
            return min(covers, int64(1))
        if wanted < 0 and _may_cover(ctx, covers, behind):
            wanted = covers
    return int64(0) if wanted < 0 else _note_pair(ctx, base, behind, wanted)


@njit_inner(RESULT2)
def is_covered(ctx, earley_set, other):
    """1 if all that may follow in an Earley set may follow in another one with the same core; 0 or FAIL.

    What an item began in makes a difference only by what follows there once its rule ends.  In a list ``a b c`` that is
    the same for each item, though each began behind another one.  So the other set simulates this one if it has a like
    of each item: one that began in the same set, or behind which is the same set, or one that simulates it.  That ends
    at pairs of sets that are being compared.  1 is sure, 0 is not: of several likes one is tried.
    """
    if earley_set == other:
        return int64(1)
    if not _may_cover(ctx, other, earley_set):
        return int64(0)
    key = earley_set << 32 | _PAIR | other
    known = map_get(ctx, t.SCAN_KEYS, t.SCAN_VALUES, key)
    if known >= 0:
        return known
    base = used(ctx, t.WORK_STACK)
    status = _note_pair(ctx, base, earley_set, other)
    pair = base
    while status > 0 and pair < used(ctx, t.WORK_STACK):
        covered, other_of_pair = int64(t.work_stack(ctx)[pair]), int64(t.work_stack(ctx)[pair + 1])
        pair += 2
        offset = int64(t.earley_sets(ctx)[covered].offset)
        end = offset + t.earley_sets(ctx)[covered].count
        while status > 0 and offset < end:
            item = t.earley_items(ctx)[offset]
            status = _cover_item(ctx, int64(item.dot), int64(item.origin), other_of_pair, base)
            offset += 1
    set_used(ctx, t.WORK_STACK, base)
    return status if status < 0 or map_put(ctx, t.SCAN_KEYS, t.SCAN_VALUES, key, status) == 0 else int64(FAIL)
