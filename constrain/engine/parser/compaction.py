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

from constrain.engine.parser.configurations import MASK_FIELDS, STATE_ACCEPTS, STATE_COUNT, STATE_OFFSET
from constrain.engine.parser.earley_sets import (
    CORE_COUNT,
    CORE_GROUP_COUNT,
    ROW_ACCEPTS,
    ROW_CORE,
    ROW_COUNT,
    ROW_DONE,
    ROW_OFFSET,
    make_origin_sets,
)
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.tables import (
    AFTER_COSTS,
    CLASSES,
    CORES,
    CTX,
    DONE_ITEMS,
    DONE_MEMO,
    DONE_STAMP,
    LEAP_KEYS,
    ORIGIN_SETS,
    ROW_BUCKETS,
    ROW_COSTS,
    ROW_HASH,
    ROW_ITEMS,
    ROW_SETS,
    ROWS,
    SCAN_KEYS,
    STATE_BUCKETS,
    STATE_COSTS,
    STATE_HASH,
    STATE_KEYS,
    STATE_MASKS,
    STATE_TRANS,
    STATES,
    THREADS,
    UP_COSTS,
    finish_hash,
    i32,
    i64,
    mix,
    set_used,
    u8,
    used,
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
    records = i32(ctx, ROWS)
    pool = i32(ctx, ROW_ITEMS)
    hashes = i32(ctx, ROW_HASH)
    memo = i32(ctx, DONE_MEMO)
    stamps = i32(ctx, DONE_STAMP)
    cores = i32(ctx, CORES)
    count, items, done = int64(0), int64(0), int64(0)
    for row in range(used(ctx, ROW_HASH)):
        if not row_map[row]:
            row_map[row] = -1
            continue
        row_map[row] = count
        core = int64(records[5 * row + ROW_CORE])
        offset = int64(records[5 * row + ROW_OFFSET])
        n = int64(records[5 * row + ROW_COUNT])
        accepts = int64(records[5 * row + ROW_ACCEPTS])
        code = accepts
        for i in range(n):
            dot = int64(pool[2 * (offset + i)])
            # Row 0 alone has itself for an origin, in the item that begins the text.
            origin = int64(row_map[pool[2 * (offset + i) + 1]])
            pool[2 * (items + i)] = dot
            pool[2 * (items + i) + 1] = origin
            code = mix(code, dot << 32 | origin)
        records[5 * count + ROW_CORE] = core
        records[5 * count + ROW_OFFSET] = items
        records[5 * count + ROW_COUNT] = n
        records[5 * count + ROW_ACCEPTS] = accepts
        records[5 * count + ROW_DONE] = done
        hashes[count] = finish_hash(code)
        items += n
        done += int64(cores[7 * core + CORE_GROUP_COUNT])
        count += 1
    # What was remembered about completions names rows; it is found again as needed.
    for i in range(done):
        memo[i] = -1
        stamps[i] = 0
    set_used(ctx, ROWS, 5 * count)
    set_used(ctx, ROW_ITEMS, 2 * items)
    set_used(ctx, ROW_HASH, count)
    set_used(ctx, DONE_MEMO, done)
    set_used(ctx, DONE_STAMP, done)
    set_used(ctx, DONE_ITEMS, 0)
    set_used(ctx, ORIGIN_SETS, 0)
    for row in range(count):
        offset, n = int64(records[5 * row + ROW_OFFSET]), int64(records[5 * row + ROW_COUNT])
        dots = int64(cores[7 * int64(records[5 * row + ROW_CORE]) + CORE_COUNT])
        # Where there is no room for sets, none are kept: they only save time.
        i32(ctx, ROW_SETS)[row] = max(make_origin_sets(ctx, offset, n, dots), -1)
    set_used(ctx, ROW_SETS, count)
    set_used(ctx, ROW_COSTS, 0)
    set_used(ctx, UP_COSTS, 0)
    set_used(ctx, AFTER_COSTS, 0)
    keys = i64(ctx, SCAN_KEYS)
    for i in range(len(keys)):
        keys[i] = 0
    set_used(ctx, SCAN_KEYS, 0)
    keys = i64(ctx, LEAP_KEYS)
    for i in range(len(keys)):
        keys[i] = 0
    set_used(ctx, LEAP_KEYS, 0)
    _fill_buckets(ctx, ROW_HASH, ROW_BUCKETS)


@njit_inner(types.void(CTX, int32[::1], int32[::1]))
def _move_states(ctx, state_map, row_map):
    """As _move_rows for the states; rows have their new numbers."""
    records = i32(ctx, STATES)
    threads = i32(ctx, THREADS)
    hashes = i32(ctx, STATE_HASH)
    masks = i32(ctx, STATE_MASKS)
    keys = u8(ctx, STATE_KEYS)
    trans = i32(ctx, STATE_TRANS)
    classes = ctx[CLASSES]
    total = used(ctx, STATE_HASH)
    count, thread = int64(0), int64(0)
    for state in range(total):
        if not state_map[state]:
            state_map[state] = -1
            continue
        state_map[state] = count
        offset = int64(records[3 * state + STATE_OFFSET])
        n = int64(records[3 * state + STATE_COUNT])
        accepts = int64(records[3 * state + STATE_ACCEPTS])
        code = accepts
        for i in range(n):
            row = int64(row_map[threads[2 * (offset + i)]])
            lexer_state = int64(threads[2 * (offset + i) + 1])
            threads[2 * (thread + i)] = row
            threads[2 * (thread + i) + 1] = lexer_state
            code = mix(code, row << 32 | lexer_state)
        records[3 * count + STATE_OFFSET] = thread
        records[3 * count + STATE_COUNT] = n
        records[3 * count + STATE_ACCEPTS] = accepts
        keys[count] = keys[state]
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
    set_used(ctx, THREADS, 2 * thread)
    set_used(ctx, STATE_HASH, count)
    set_used(ctx, STATE_MASKS, MASK_FIELDS * count)
    set_used(ctx, STATE_KEYS, count)
    set_used(ctx, STATE_TRANS, count * classes)
    set_used(ctx, STATE_COSTS, 0)
    _fill_buckets(ctx, STATE_HASH, STATE_BUCKETS)


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
    records = i32(ctx, STATES)
    threads = i32(ctx, THREADS)
    rows = i32(ctx, ROWS)
    items = i32(ctx, ROW_ITEMS)
    n_rows = used(ctx, ROW_HASH)
    for row in range(n_rows):
        row_map[row] = 0
    row_map[0] = 1
    for state in range(used(ctx, STATE_HASH)):
        # State 0 is the dead one.
        state_map[state] = 1 if live[state] or state == 0 else 0
        if state_map[state]:
            offset = int64(records[3 * state + STATE_OFFSET])
            for i in range(offset, offset + int64(records[3 * state + STATE_COUNT])):
                row_map[threads[2 * i]] = 1
    for row in range(n_rows - 1, 0, -1):
        if row_map[row]:
            offset = int64(rows[5 * row + ROW_OFFSET])
            for i in range(offset, offset + int64(rows[5 * row + ROW_COUNT])):
                row_map[items[2 * i + 1]] = 1
    _move_rows(ctx, row_map)
    _move_states(ctx, state_map, row_map)
