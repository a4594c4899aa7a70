"""Lexer states: which lexemes may be under way, and how far each of them is.

A lexer state is an interned, sorted set of (lexeme, expression node).  State 0 is the empty set.
It knows nothing of the parser: the same state serves every row that expects the same lexemes.
There is no longest match.  A state says which lexemes *could* end here (its accept set); the
recognizer then follows both roads, ending and going on.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int64, types, uint64

from constrain.engine.automata.expressions import (
    COMPLEX_FLAG,
    EMPTY,
    EPSILON,
    RESULT2,
    is_live,
    is_nullable,
    known_derivative,
)
from constrain.engine.storage.jit import njit_inner
from constrain.engine.storage.tables import (
    ACCEPT_BUCKETS,
    ACCEPT_HASH,
    ACCEPT_POOL,
    ACCEPTS,
    CLASS_BYTE,
    CLASS_OF,
    CLASSES,
    CTX,
    F_ACCEPT_SET,
    F_DERIVATIVE,
    F_LEXER_STATE,
    F_LEXER_STEP,
    FAIL,
    LEX,
    LEX_BUCKETS,
    LEX_FIRST,
    LEX_HASH,
    LEX_POOL,
    LEX_TRANS,
    LEX_TWIN,
    NODE_FIRST,
    NODES,
    SPLITS,
    TMP,
    bucket_room,
    count_bits,
    far_call,
    far_entry,
    finish_hash,
    i32,
    i64,
    lowest_bit,
    mix,
    room,
    set_used,
    u8,
    used,
)

# Fields of a lexer state's record.
LEX_OFFSET, LEX_COUNT, LEX_ACCEPT, LEX_GOES_ON = range(4)
CLOSURE = 0x7FFFFFFF
"""In place of a lexeme: the lexer state stands for a closure (fast/star_closures.py)."""
# Fields of a token split's record (masks/state_masks.py); it is kept per lexer state.
SPLIT_DENSE, SPLIT_LIST, SPLIT_COUNT, SPLIT_CROSSINGS, SPLIT_CROSSING_COUNT = range(5)
NO_DENSE, NOT_SPLIT = -1, -2
"""In SPLIT_DENSE: the tokens are few, all of them in the list; they have not been split yet."""


LEADS_ON = -2
"""In LEX_TRANS: the byte leads on, to a state that has not been made; -1 if not even that is known."""

# With fewer bytes than this to begin with, a row of transitions is written byte by byte.
_FEW_BYTES = 24


@njit_inner(int64(CTX, int64, int64))
def intern_accept_set(ctx, base, count):
    """The accept set with the ``count`` sorted lexemes at ``TMP[base]``; 0 is the empty one."""
    tmp = i32(ctx, TMP)
    code = int64(0)
    for i in range(count):
        code = mix(code, int64(tmp[base + i]))
    code = finish_hash(code)
    buckets = i32(ctx, ACCEPT_BUCKETS)
    records = i32(ctx, ACCEPTS)
    pool = i32(ctx, ACCEPT_POOL)
    mask = len(buckets) - 1
    i = code & mask
    while buckets[i] >= 0:
        entry = int64(buckets[i])
        if records[2 * entry + 1] == count:
            offset = records[2 * entry]
            same = True
            for j in range(count):
                if pool[offset + j] != tmp[base + j]:
                    same = False
                    break
            if same:
                return entry
        i = (i + 1) & mask
    entry = used(ctx, ACCEPT_HASH)
    if not room(ctx, ACCEPTS, 2) or not room(ctx, ACCEPT_HASH, 1) or not room(ctx, ACCEPT_POOL, count):
        return int64(FAIL)
    if not bucket_room(ctx, ACCEPT_BUCKETS, entry):
        return int64(FAIL)
    offset = used(ctx, ACCEPT_POOL)
    for j in range(count):
        pool[offset + j] = tmp[base + j]
    set_used(ctx, ACCEPT_POOL, offset + count)
    records[2 * entry] = offset
    records[2 * entry + 1] = count
    set_used(ctx, ACCEPTS, 2 * entry + 2)
    i32(ctx, ACCEPT_HASH)[entry] = code
    set_used(ctx, ACCEPT_HASH, entry + 1)
    buckets[i] = entry
    return entry


@njit_inner(int64(CTX, int64, int64))
def intern_lexer_state(ctx, base, count):
    """The lexer state with the ``count`` pairs (lexeme, node), sorted by lexeme, from ``TMP[base]`` to its top."""
    tmp = i32(ctx, TMP)
    code = int64(0)
    for i in range(2 * count):
        code = mix(code, int64(tmp[base + i]))
    code = finish_hash(code)
    buckets = i32(ctx, LEX_BUCKETS)
    records = i32(ctx, LEX)
    pool = i32(ctx, LEX_POOL)
    mask = len(buckets) - 1
    i = code & mask
    while buckets[i] >= 0:
        state = int64(buckets[i])
        if records[4 * state + LEX_COUNT] == count:
            offset = records[4 * state + LEX_OFFSET]
            same = True
            for j in range(2 * count):
                if pool[offset + j] != tmp[base + j]:
                    same = False
                    break
            if same:
                return state
        i = (i + 1) & mask
    state = used(ctx, LEX_HASH)
    classes = ctx[CLASSES]
    if not room(ctx, LEX, 4) or not room(ctx, LEX_HASH, 1) or not room(ctx, LEX_POOL, 2 * count):
        return int64(FAIL)
    if (
        not room(ctx, LEX_TWIN, 1)
        or not room(ctx, LEX_FIRST, 4)
        or not room(ctx, LEX_TRANS, classes)
        or not room(ctx, SPLITS, 5)
        or not bucket_room(ctx, LEX_BUCKETS, state)
    ):
        return int64(FAIL)
    # The accept set is staged behind the members, which are the top of the work stack.
    if not room(ctx, TMP, count):
        return int64(FAIL)
    stage = used(ctx, TMP)
    accepted = 0
    goes_on = 0
    for j in range(count):
        node = int64(tmp[base + 2 * j + 1])
        if is_nullable(ctx, node):
            tmp[stage + accepted] = tmp[base + 2 * j]
            accepted += 1
        if node != EPSILON:
            goes_on = 1
    accept = intern_accept_set(ctx, stage, accepted)
    if accept < 0:
        return accept
    offset = used(ctx, LEX_POOL)
    for j in range(2 * count):
        pool[offset + j] = tmp[base + j]
    set_used(ctx, LEX_POOL, offset + 2 * count)
    records[4 * state + LEX_OFFSET] = offset
    records[4 * state + LEX_COUNT] = count
    records[4 * state + LEX_ACCEPT] = accept
    records[4 * state + LEX_GOES_ON] = goes_on
    set_used(ctx, LEX, 4 * state + 4)
    i32(ctx, LEX_HASH)[state] = code
    set_used(ctx, LEX_HASH, state + 1)
    # Bytes with which no member can go on lead to the dead state; the others are worked out as needed.
    trans = i32(ctx, LEX_TRANS)
    first = i64(ctx, NODE_FIRST)
    class_byte = u8(ctx, CLASS_BYTE)
    w0, w1, w2, w3 = int64(0), int64(0), int64(0), int64(0)
    for j in range(count):
        node = int64(tmp[base + 2 * j + 1])
        w0 |= first[4 * node]
        w1 |= first[4 * node + 1]
        w2 |= first[4 * node + 2]
        w3 |= first[4 * node + 3]
    begins = i64(ctx, LEX_FIRST)
    begins[4 * state] = w0
    begins[4 * state + 1] = w1
    begins[4 * state + 2] = w2
    begins[4 * state + 3] = w3
    set_used(ctx, LEX_FIRST, 4 * state + 4)
    begin, end = uint64(state * classes), uint64((state + 1) * classes)
    if count_bits(w0) + count_bits(w1) + count_bits(w2) + count_bits(w3) < _FEW_BYTES:
        class_of = u8(ctx, CLASS_OF)
        for k in range(begin, end):
            trans[k] = 0
        for quarter in range(4):
            bits = begins[4 * state + quarter]
            while bits:
                trans[begin + uint64(class_of[64 * quarter + lowest_bit(bits)])] = -1
                bits &= bits - 1
    else:
        for j in range(classes):
            byte = class_byte[j]
            word = w0 if byte < 64 else (w1 if byte < 128 else (w2 if byte < 192 else w3))
            trans[begin + uint64(j)] = -((word >> (byte & 63)) & 1)
    set_used(ctx, LEX_TRANS, (state + 1) * classes)
    i32(ctx, LEX_TWIN)[state] = -1
    set_used(ctx, LEX_TWIN, state + 1)
    i32(ctx, SPLITS)[5 * state + SPLIT_DENSE] = NOT_SPLIT
    set_used(ctx, SPLITS, 5 * state + 5)
    buckets[i] = state
    return state


far_entry(F_ACCEPT_SET, intern_accept_set)
far_entry(F_LEXER_STATE, intern_lexer_state)


@njit_inner(RESULT2)
def leads_on(ctx, state, byte_class):
    """1 if a byte of the class leads on and that is plain without the state it leads to; else 0.

    For the last byte of a token that is all there is to know.
    """
    place = state * ctx[CLASSES] + byte_class
    trans = i32(ctx, LEX_TRANS)
    known = trans[place]
    if known != -1:
        return int64(known != 0)
    byte = int64(u8(ctx, CLASS_BYTE)[byte_class])
    word = byte >> 6
    first = i64(ctx, NODE_FIRST)
    nodes = i32(ctx, NODES)
    pool = i32(ctx, LEX_POOL)
    offset = int64(i32(ctx, LEX)[4 * state + LEX_OFFSET])
    for i in range(offset, offset + 2 * int64(i32(ctx, LEX)[4 * state + LEX_COUNT]), 2):
        node = int64(pool[i + 1])
        # Whether anything is left of an intersection or a complement takes its derivative to know.
        if (first[4 * node + word] >> (byte & 63)) & 1 and not nodes[4 * node] & COMPLEX_FLAG:
            trans[place] = LEADS_ON
            return int64(1)
    return int64(0)


@njit_inner(int64(CTX, int64, int64, int64, int64))
def members_after(ctx, slot, offset, count, byte):
    """Push what ``count`` members, at ``offset`` in a table, are after a byte on TMP; how many, or FAIL or LIMIT."""
    base = used(ctx, TMP)
    for i in range(count):
        pool = i32(ctx, slot)
        lexeme = pool[offset + 2 * i]
        before = int64(pool[offset + 2 * i + 1])
        node = known_derivative(ctx, before, byte)
        if node < 0:
            node = far_call(ctx, F_DERIVATIVE, before, byte)
            if node < 0:
                return node
        if node == EMPTY:
            continue
        live = is_live(ctx, node)
        if live < 0:
            return live
        if live == 0:
            continue
        if not room(ctx, TMP, 2):
            return int64(FAIL)
        top = used(ctx, TMP)
        tmp = i32(ctx, TMP)
        tmp[top] = lexeme
        tmp[top + 1] = node
        set_used(ctx, TMP, top + 2)
    return (used(ctx, TMP) - base) // 2


@njit_inner(RESULT2)
def lexer_step(ctx, state, byte_class):
    """The lexer state after one byte of the class; computed once per (state, class).  FAIL or LIMIT if < 0."""
    place = state * ctx[CLASSES] + byte_class
    known = int64(i32(ctx, LEX_TRANS)[place])
    if known >= 0:
        return known
    byte = int64(u8(ctx, CLASS_BYTE)[byte_class])
    base = used(ctx, TMP)
    offset = int64(i32(ctx, LEX)[4 * state + LEX_OFFSET])
    count = int64(i32(ctx, LEX)[4 * state + LEX_COUNT])
    after = members_after(ctx, LEX_POOL, offset, count, byte)
    if after < 0:
        return after
    if after == 0:
        i32(ctx, LEX_TRANS)[place] = 0
        return int64(0)
    successor = state
    pool = i32(ctx, LEX_POOL)
    tmp = i32(ctx, TMP)
    for i in range(2 * count):
        # Sooner seen than looked up: white space leads nowhere else.
        if after != count or tmp[base + i] != pool[offset + i]:
            successor = far_call(ctx, F_LEXER_STATE, base, after)
            break
    set_used(ctx, TMP, base)
    if successor >= 0:
        i32(ctx, LEX_TRANS)[place] = successor
    return successor


far_entry(F_LEXER_STEP, lexer_step)


@njit_inner(types.void(CTX))
def clear_splits(ctx):
    """Forget every token split."""
    splits = i32(ctx, SPLITS)
    for state in range(used(ctx, LEX_HASH)):
        splits[5 * state + SPLIT_DENSE] = NOT_SPLIT
