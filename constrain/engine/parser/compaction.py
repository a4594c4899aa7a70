"""Compaction: forget the recognizer states and Earley sets that no text in progress can come back to.

A text that keeps changing comes upon new stacks of unfinished rules, and so upon new Earley sets and states, for as
long as it lasts.  What is live is little: the states that matchers are in, the Earley sets of their configurations, and
the sets that those began in.  This is a mark-compact collector in its simplest form ("sliding"; Jones, Hosking and
Moss, The Garbage Collection Handbook, chapter 3): an origin is always an older set, so marking is one pass downwards
and moving one pass upwards.  The order of what stays is kept, and with it the order of items in Earley sets and of
configurations in states, by which they are interned.

Expressions, lexer states, cores and splits stay: they belong to the grammar, not to the text.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.parser.origin_sets import make_origin_sets
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i32, i64, set_used, used
from constrain.engine.storage.hashing import finish_hash, mix, rehash
from constrain.engine.storage.header import CLASSES, CTX
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.kernels.language import int32, int64, types, uint8


@njit_inner(types.void(CTX, int32[::1]))
def _move_sets(ctx, set_map):
    """Move the Earley sets that stay to the front: those with 1 in ``set_map``, which then holds new numbers, or -1."""
    records = t.earley_sets(ctx)
    pool = t.earley_items(ctx)
    hashes = t.earley_set_hashes(ctx)
    all_cores = t.cores(ctx)
    count, items = int64(0), int64(0)
    for earley_set in range(used(ctx, t.EARLEY_SET_HASHES)):
        if not set_map[earley_set]:
            set_map[earley_set] = -1
            continue
        set_map[earley_set] = count
        core = records[earley_set].core
        offset = records[earley_set].offset
        n = records[earley_set].count
        accepts = records[earley_set].accepts
        code = accepts
        for i in range(n):
            dot = pool[offset + i].dot
            # Earley set 0 alone has itself for an origin, in the item that begins the text.
            origin = int64(set_map[pool[offset + i].origin])
            pool[items + i] = dot, origin
            code = mix(code, dot << 32 | origin)
        # What was remembered about completions names Earley sets; it is found again as needed.
        records[count] = core, items, n, accepts, -1
        hashes[count] = finish_hash(code)
        items += n
        count += 1
    set_used(ctx, t.EARLEY_SETS, count)
    set_used(ctx, t.EARLEY_ITEMS, items)
    set_used(ctx, t.EARLEY_SET_HASHES, count)
    for slot in (t.COMPLETION_MEMO, t.COMPLETION_STAMPS, t.COMPLETION_ITEMS, t.ORIGIN_SETS, t.ORIGIN_WORDS):
        set_used(ctx, slot, 0)
    for earley_set in range(count):
        offset, n = records[earley_set].offset, records[earley_set].count
        dots = all_cores[records[earley_set].core].count
        # Where there is no room for sets, none are kept: they only save time.
        t.origin_sets_at(ctx)[earley_set] = max(make_origin_sets(ctx, offset, n, dots), -1)
    set_used(ctx, t.ORIGIN_SETS_AT, count)
    # No text is at a state that stands for others.
    set_used(ctx, t.UNKNOWN_SETS, 0)
    set_used(ctx, t.EARLEY_SET_COSTS, 0)
    set_used(ctx, t.UP_COSTS, 0)
    set_used(ctx, t.AFTER_COSTS, 0)
    keys = i64(ctx, t.SCAN_KEYS)
    for i in range(len(keys)):
        keys[i] = 0
    set_used(ctx, t.SCAN_KEYS, 0)
    rehash(i32(ctx, t.EARLEY_SET_HASHES), count, i32(ctx, t.EARLEY_SET_BUCKETS))


@njit_inner(types.void(CTX, int32[::1], int32[::1]))
def _move_states(ctx, state_map, set_map):
    """As _move_sets for the states; Earley sets have their new numbers."""
    records = t.states(ctx)
    pool = t.configurations(ctx)
    hashes = t.state_hashes(ctx)
    masks = t.state_masks(ctx)
    marks = t.state_marks(ctx)
    trans = t.transitions(ctx)
    classes = ctx[CLASSES]
    total = used(ctx, t.STATE_HASHES)
    count, place = int64(0), int64(0)
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
            earley_set = int64(set_map[pool[offset + i].earley_set])
            lexer_state = pool[offset + i].lexer_state
            pool[place + i] = earley_set, lexer_state
            code = mix(code, earley_set << 32 | lexer_state)
        records[count] = place, n, accepts
        marks[count] = marks[state]
        masks[count] = masks[state]
        for i in range(classes):
            trans[count * classes + i] = trans[state * classes + i]
        hashes[count] = finish_hash(code)
        place += n
        count += 1
    for i in range(count * classes):
        # Steps to what is gone are not known any more.
        if trans[i] > 0:
            trans[i] = state_map[trans[i]]
        elif trans[i] < -1:
            # The step to an open state.
            trans[i] = -state_map[-trans[i] - 2] - 2
    set_used(ctx, t.STATES, count)
    set_used(ctx, t.CONFIGURATIONS, place)
    set_used(ctx, t.STATE_HASHES, count)
    set_used(ctx, t.STATE_MASKS, count)
    set_used(ctx, t.STATE_MARKS, count)
    set_used(ctx, t.TRANSITIONS, count * classes)
    set_used(ctx, t.STATE_COSTS, 0)
    rehash(i32(ctx, t.STATE_HASHES), count, i32(ctx, t.STATE_BUCKETS))


@njit_entry(types.void(CTX, uint8[::1], int32[::1], int32[::1]))
def compact(ctx, live, state_map, set_map):
    """Forget all states but some, and all Earley sets that those do not need.

    Parameters
    ----------
    ctx : int64[...]
    live : uint8[n_states]
        1 for each state that stays.
    state_map : int32[n_states]
        Output: the new number of each state; -1 for those that are gone.
    set_map : int32[n_sets]
        Output: as for the states.
    """
    records = t.states(ctx)
    pool = t.configurations(ctx)
    sets = t.earley_sets(ctx)
    items = t.earley_items(ctx)
    n_sets = used(ctx, t.EARLEY_SET_HASHES)
    for earley_set in range(n_sets):
        set_map[earley_set] = 0
    set_map[0] = 1
    for state in range(used(ctx, t.STATE_HASHES)):
        # State 0 is the dead one.
        state_map[state] = 1 if live[state] or state == 0 else 0
        if state_map[state]:
            offset = records[state].offset
            for i in range(offset, offset + records[state].count):
                set_map[pool[i].earley_set] = 1
    for earley_set in range(n_sets - 1, 0, -1):
        if set_map[earley_set]:
            offset = sets[earley_set].offset
            for i in range(offset, offset + sets[earley_set].count):
                set_map[items[i].origin] = 1
    _move_sets(ctx, set_map)
    _move_states(ctx, state_map, set_map)
