"""Collection: forget the recognizer states and rows that no text in progress can come back to.

A text that keeps changing comes upon new stacks of unfinished rules, and so upon new rows and
states, for as long as it lasts.  What is live is little: the states that matchers are in, the rows
of their threads, and the rows that those rows begin in.  This is a mark-compact collector in its
simplest form ("sliding"; Jones, Hosking and Moss, The Garbage Collection Handbook, chapter 3): an
origin is always an older row, so marking is one pass downwards and moving one pass upwards.  The
order of what stays is kept, and with it the order of items in rows and of threads in states, by
which they are interned.

Expressions, lexer states, cores and splits stay: they belong to the grammar, not to the text.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int32, int64, types, uint8

from constrain.engine.parser.configurations import MASK_FIELDS
from constrain.engine.parser.earley_sets import (
    make_origin_sets,
)
from constrain.engine.storage.access import i32, i64, set_used, used
from constrain.engine.storage.hashing import finish_hash, mix
from constrain.engine.storage.header import CLASSES, CTX
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.schemas import (
    AFTER_COSTS,
    COMPLETION_ITEMS,
    COMPLETION_MEMO,
    COMPLETION_STAMPS,
    CONFIGURATIONS,
    EARLEY_ITEMS,
    EARLEY_SET_BUCKETS,
    EARLEY_SET_COSTS,
    EARLEY_SET_HASHES,
    EARLEY_SETS,
    ORIGIN_SETS,
    ORIGIN_SETS_AT,
    SCAN_KEYS,
    STATE_BUCKETS,
    STATE_COSTS,
    STATE_HASHES,
    STATE_MARKS,
    STATE_MASKS,
    STATES,
    TOKEN_STEP_KEYS,
    TRANSITIONS,
    UP_COSTS,
    completion_memo,
    completion_stamps,
    configurations,
    cores,
    earley_items,
    earley_set_hashes,
    earley_sets,
    origin_sets_at,
    state_hashes,
    state_marks,
    states,
    transitions,
)


@njit_inner(types.void(CTX, int64, int64))
def _fill_buckets(ctx, hashes_slot, buckets_slot):
    """Index the hash codes anew."""
    hashes = i32(ctx, hashes_slot)
    buckets = i32(ctx, buckets_slot)
    for i in range(len(buckets)):
        buckets[i] = -1
    mask = len(buckets) - 1
    for entry in range(used(ctx, hashes_slot)):
        i = int64(hashes[entry]) & mask
        while buckets[i] >= 0:
            i = (i + 1) & mask
        buckets[i] = entry


@njit_inner(types.void(CTX, int32[::1]))
def _move_rows(ctx, row_map):
    """Move the rows that stay to the front: those with 1 in ``row_map``, which then holds new numbers, or -1."""
    records = earley_sets(ctx)
    pool = earley_items(ctx)
    hashes = earley_set_hashes(ctx)
    memo = completion_memo(ctx)
    stamps = completion_stamps(ctx)
    all_cores = cores(ctx)
    count, items, done = int64(0), int64(0), int64(0)
    for row in range(used(ctx, EARLEY_SET_HASHES)):
        if not row_map[row]:
            row_map[row] = -1
            continue
        row_map[row] = count
        core = records[row].core
        offset = records[row].offset
        n = records[row].count
        accepts = records[row].accepts
        code = accepts
        for i in range(n):
            dot = pool[offset + i].dot
            # Row 0 alone has itself for an origin, in the item that begins the text.
            origin = int64(row_map[pool[offset + i].origin])
            pool[items + i].dot = dot
            pool[items + i].origin = origin
            code = mix(code, dot << 32 | origin)
        records[count].core = core
        records[count].offset = items
        records[count].count = n
        records[count].accepts = accepts
        records[count].completions = done
        hashes[count] = finish_hash(code)
        items += n
        done += all_cores[core].group_count
        count += 1
    # What was remembered about completions names rows; it is found again as needed.
    for i in range(done):
        memo[i] = -1
        stamps[i] = 0
    set_used(ctx, EARLEY_SETS, 5 * count)
    set_used(ctx, EARLEY_ITEMS, 2 * items)
    set_used(ctx, EARLEY_SET_HASHES, count)
    set_used(ctx, COMPLETION_MEMO, done)
    set_used(ctx, COMPLETION_STAMPS, done)
    set_used(ctx, COMPLETION_ITEMS, 0)
    set_used(ctx, ORIGIN_SETS, 0)
    for row in range(count):
        offset, n = records[row].offset, records[row].count
        dots = all_cores[records[row].core].count
        # Where there is no room for sets, none are kept: they only save time.
        origin_sets_at(ctx)[row] = max(make_origin_sets(ctx, offset, n, dots), -1)
    set_used(ctx, ORIGIN_SETS_AT, count)
    set_used(ctx, EARLEY_SET_COSTS, 0)
    set_used(ctx, UP_COSTS, 0)
    set_used(ctx, AFTER_COSTS, 0)
    keys = i64(ctx, SCAN_KEYS)
    for i in range(len(keys)):
        keys[i] = 0
    set_used(ctx, SCAN_KEYS, 0)
    keys = i64(ctx, TOKEN_STEP_KEYS)
    for i in range(len(keys)):
        keys[i] = 0
    set_used(ctx, TOKEN_STEP_KEYS, 0)
    _fill_buckets(ctx, EARLEY_SET_HASHES, EARLEY_SET_BUCKETS)


@njit_inner(types.void(CTX, int32[::1], int32[::1]))
def _move_states(ctx, state_map, row_map):
    """As _move_rows for the states; rows have their new numbers."""
    records = states(ctx)
    threads = configurations(ctx)
    hashes = state_hashes(ctx)
    masks = i32(ctx, STATE_MASKS)
    marks = state_marks(ctx)
    trans = transitions(ctx)
    classes = ctx[CLASSES]
    total = used(ctx, STATE_HASHES)
    count, thread = int64(0), int64(0)
    for state in range(total):
        if not state_map[state]:
            state_map[state] = -1
            continue
        state_map[state] = count
        offset = records[state].offset
        n = records[state].count
        accepts = records[state].accepts
        code = accepts
        for i in range(n):
            row = int64(row_map[threads[offset + i].earley_set])
            lexer_state = threads[offset + i].lexer_state
            threads[thread + i].earley_set = row
            threads[thread + i].lexer_state = lexer_state
            code = mix(code, row << 32 | lexer_state)
        records[count].offset = thread
        records[count].count = n
        records[count].accepts = accepts
        marks[count] = marks[state]
        for i in range(MASK_FIELDS):
            masks[MASK_FIELDS * count + i] = masks[MASK_FIELDS * state + i]
        for i in range(classes):
            trans[count * classes + i] = trans[state * classes + i]
        hashes[count] = finish_hash(code)
        thread += n
        count += 1
    for i in range(count * classes):
        # Steps to what is gone are not known any more.
        if trans[i] > 0:
            trans[i] = state_map[trans[i]]
        elif trans[i] < -1:
            # The step to an open state.
            trans[i] = -state_map[-trans[i] - 2] - 2
    set_used(ctx, STATES, 3 * count)
    set_used(ctx, CONFIGURATIONS, 2 * thread)
    set_used(ctx, STATE_HASHES, count)
    set_used(ctx, STATE_MASKS, MASK_FIELDS * count)
    set_used(ctx, STATE_MARKS, count)
    set_used(ctx, TRANSITIONS, count * classes)
    set_used(ctx, STATE_COSTS, 0)
    _fill_buckets(ctx, STATE_HASHES, STATE_BUCKETS)


@njit_entry(types.void(CTX, uint8[::1], int32[::1], int32[::1]))
def collect(ctx, live, state_map, row_map):
    """Forget all states but some, and all rows that those do not need.

    Parameters
    ----------
    ctx : int64[...]
    live : uint8[n_states]
        1 for each state that stays.
    state_map : int32[n_states]
        Output: the new number of each state; -1 for those that are gone.
    row_map : int32[n_rows]
        Output: as for the states.
    """
    records = states(ctx)
    threads = configurations(ctx)
    rows = earley_sets(ctx)
    items = earley_items(ctx)
    n_rows = used(ctx, EARLEY_SET_HASHES)
    for row in range(n_rows):
        row_map[row] = 0
    row_map[0] = 1
    for state in range(used(ctx, STATE_HASHES)):
        # State 0 is the dead one.
        state_map[state] = 1 if live[state] or state == 0 else 0
        if state_map[state]:
            offset = records[state].offset
            for i in range(offset, offset + records[state].count):
                row_map[threads[i].earley_set] = 1
    for row in range(n_rows - 1, 0, -1):
        if row_map[row]:
            offset = rows[row].offset
            for i in range(offset, offset + rows[row].count):
                row_map[items[i].origin] = 1
    _move_rows(ctx, row_map)
    _move_states(ctx, state_map, row_map)
