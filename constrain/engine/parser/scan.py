"""Scanning: the Earley set behind a lexeme."""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.parser.completion import add_set, advance_and_complete
from constrain.engine.parser.cores import begin_epoch
from constrain.engine.parser.origin_sets import gather_sets
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i64, room, set_used, used
from constrain.engine.storage.hashing import map_get, map_put
from constrain.engine.storage.header import CTX, EPOCH, N_IGNORE, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.links import F_EARLEY_SET, F_SCAN, F_SHIFT, far_call, far_entry
from constrain.engine.storage.statuses import FAIL, LIMIT
from constrain.kernels.language import int64

_MANY_ITEMS = 64
"""So many items of an Earley set under way are put in order by sets rather than by sorting."""


@njit_inner(RESULT1)
def add_all_items(ctx, earley_set):
    """Add all items of an Earley set to those under way; returns 0 or FAIL."""
    begin = t.earley_sets(ctx)[earley_set].offset
    items = t.earley_sets(ctx)[earley_set].count
    core = t.earley_sets(ctx)[earley_set].core
    record = t.origin_sets_at(ctx)[earley_set]
    if not room(ctx, t.KERNEL_ITEMS, items):
        return int64(FAIL)
    n = used(ctx, t.KERNEL_ITEMS)
    pool = t.earley_items(ctx)
    keys = t.kernel_items(ctx)
    parts = int64(1) if record < 0 else t.cores(ctx)[core].count
    for source in range(parts):
        if record >= 0:
            origins = t.origin_sets(ctx)[record + source]
            if origins.words:
                dot = t.core_dots(ctx)[t.cores(ctx)[core].offset + source]
                if add_set(ctx, dot, record + source, int64(-1)) < 0:
                    return int64(FAIL)
                continue
            begin, items = origins.items, origins.count
        for i in range(begin, begin + items):
            keys[n] = pool[i].dot << 32 | pool[i].origin
            n += 1
    set_used(ctx, t.KERNEL_ITEMS, n)
    return int64(0)


@njit_inner(int64(CTX, int64, int64, int64))
def _scan_into_kernel(ctx, earley_set, accept_set, epoch):
    """Add to KERNEL_ITEMS what the Earley set becomes after any one of the lexemes; returns the accept bit or FAIL."""
    core = t.earley_sets(ctx)[earley_set].core
    first = t.cores(ctx)[core].scans
    count = t.cores(ctx)[core].scan_count
    offset = t.accept_sets(ctx)[accept_set].offset
    accepts = int64(0)
    for k in range(offset, offset + t.accept_sets(ctx)[accept_set].count):
        lexeme = t.accept_members(ctx)[k]
        all_ignored = t.ignored(ctx)
        for i in range(ctx[N_IGNORE]):
            if all_ignored[i] == lexeme:
                # An ignored lexeme leaves the Earley set as it is.
                if add_all_items(ctx, earley_set) < 0:
                    return int64(FAIL)
                accepts |= t.earley_sets(ctx)[earley_set].accepts
        # Scans are sorted by falling lexeme number.
        low, high = first, first + count
        scans = t.core_scans(ctx)
        while low < high:
            middle = (low + high) // 2
            if scans[middle].lexeme > lexeme:
                low = middle + 1
            else:
                high = middle
        while low < first + count and t.core_scans(ctx)[low].lexeme == lexeme:
            scans = t.core_scans(ctx)
            dot, source = scans[low].dot, scans[low].source
            status = advance_and_complete(ctx, dot, source, earley_set, epoch)
            if status < 0:
                return status
            accepts |= status
            low += 1
    return accepts


@njit_inner(RESULT2)
def scan(ctx, offset, count):
    """The Earley set after a lexeme.

    STATE_WORK[offset:][:count] are pairs ``earley_set << 32 | accept_set``: which lexemes end, and where they began.
    One pair is the usual case, and remembered.  Several arise where lexemes that began at different
    places end at the same byte; their items then form one Earley set, as in Earley's algorithm.
    """
    pairs = i64(ctx, t.STATE_WORK)[offset:]
    if count == 1:
        known = map_get(ctx, t.SCAN_KEYS, t.SCAN_VALUES, pairs[0])
        if known >= 0:
            return known
    if used(ctx, t.PARSE_CONTEXTS):
        # Of two ways to split a text, the one in which a lexeme ends first has ended the other (longest_match.py).
        if count != 1:
            return int64(LIMIT)
        stack = far_call(ctx, F_SHIFT, pairs[0] >> 32, pairs[0] & 0x7FFFFFFF)
        if stack >= 0 and map_put(ctx, t.SCAN_KEYS, t.SCAN_VALUES, i64(ctx, t.STATE_WORK)[offset], stack) < 0:
            return int64(FAIL)
        return stack
    set_used(ctx, t.KERNEL_ITEMS, 0)
    set_used(ctx, t.NEW_SETS, 0)
    set_used(ctx, t.NEW_WORDS, 0)
    begin_epoch(ctx)
    epoch = ctx[EPOCH]
    accepts = int64(0)
    for i in range(count):
        status = _scan_into_kernel(ctx, pairs[i] >> 32, pairs[i] & 0x7FFFFFFF, epoch)
        if status < 0:
            return status
        accepts |= status
    items = used(ctx, t.KERNEL_ITEMS)
    if (used(ctx, t.NEW_SETS) > 0 or items >= _MANY_ITEMS) and gather_sets(ctx, items) < 0:
        return int64(FAIL)
    earley_set = far_call(ctx, F_EARLEY_SET, used(ctx, t.KERNEL_ITEMS), accepts)
    if earley_set >= 0 and count == 1 and map_put(ctx, t.SCAN_KEYS, t.SCAN_VALUES, pairs[0], earley_set) < 0:
        return int64(FAIL)
    return earley_set


far_entry(F_SCAN, scan)
