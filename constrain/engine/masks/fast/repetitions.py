"""How many repetitions each token of a closure holds, for strings with a greatest length.

Of the tokens in the closure of C (star_closures.py), ``C{low,high}`` allows those that begin at most ``high`` times a
C. A vocabulary keeps, for the closures that bounds are met on, the tokens sorted by that number.  So what a bound rules
out is the beginning of a list, and a character more or less in a string costs no walk.

The number is well defined if no C begins another C, as the characters of a JSON string do not.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from numba import int32, int64, types

from constrain.engine.automata.expressions import CONCAT, REPEAT, RESULT1, RESULT2
from constrain.engine.automata.lexer_states import LEX_ACCEPT, LEX_COUNT, LEX_OFFSET, SPLIT_DENSE
from constrain.engine.masks.lexer_masks import FIRST_SHARED
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.statuses import UNSORTED
from constrain.engine.storage.tables import (
    CLASS_OF,
    CLASSES,
    CTX,
    F_LEXER_STEP,
    FOUND,
    LEX,
    LEX_POOL,
    LEX_TRANS,
    NODE_FIRST,
    NODES,
    SAME_BYTES,
    SCRATCH,
    SHARED_BY_REPETITIONS,
    SHARED_COUNTED,
    SHARED_COUNTS,
    SHARED_MORE_THAN,
    SPLITS,
    STACK,
    TOKEN_START,
    TRIE_NODE,
    TRIE_SIZE,
    TRIE_TOKEN,
    WIDE_STACK,
    far_call,
    i32,
    i64,
    u8,
)
from constrain.engine.vocabulary.trie import DEPTH_SHIFT

COUNTED_CLOSURES = 8
"""How many closures a vocabulary sorts the tokens of."""

COUNTED_PLACES = 256
"""Numbers of repetitions that are told apart; larger ones count as the last of them."""


@njit_entry(RESULT1)
def count_repetitions(ctx, closure):
    """Sort the tokens of a shared closure, a lexer state, into the vocabulary's next free place.

    Returns 1, 0 if the number of repetitions is not well defined, FAIL or LIMIT.
    """
    nodes = i32(ctx, TRIE_NODE)
    sizes = i32(ctx, TRIE_SIZE)
    tokens = i32(ctx, TRIE_TOKEN)
    states = i32(ctx, STACK)
    begun = i32(ctx, WIDE_STACK)
    class_of = u8(ctx, CLASS_OF)
    classes = ctx[CLASSES]
    numbers = i32(ctx, FOUND)
    same = i32(ctx, SAME_BYTES)
    n_tokens = len(i64(ctx, TOKEN_START)) - 1
    for token in range(n_tokens):
        numbers[token] = -1
    states[0], begun[0] = closure, 0
    p = int64(0)
    while p < len(nodes):
        depth = int64(nodes[p]) >> DEPTH_SHIFT
        here = int64(states[depth])
        byte_class = int64(class_of[nodes[p] & 255])
        there = int64(i32(ctx, LEX_TRANS)[here * classes + byte_class])
        if there < 0:
            there = far_call(ctx, F_LEXER_STEP, here, byte_class)
            if there < 0:
                return there
        if there == 0:
            p += int64(sizes[p])
            continue
        if there != closure and i32(ctx, LEX)[4 * there + LEX_ACCEPT] != 0:
            return int64(0)
        number = int64(begun[depth]) + int64(here == closure)
        states[depth + 1] = there
        begun[depth + 1] = number
        ended = int64(tokens[p])
        while ended >= 0:
            numbers[ended] = min(number, COUNTED_PLACES - 1)
            ended = int64(same[ended]) if len(same) else int64(-1)
        p += 1

    # A counting sort, most repetitions first.
    slot = i64(ctx, SHARED_COUNTS)[2]
    more_than = i32(ctx, SHARED_MORE_THAN)
    ordered = i32(ctx, SHARED_BY_REPETITIONS)
    first = slot * COUNTED_PLACES
    for number in range(COUNTED_PLACES):
        more_than[first + number] = 0
    for token in range(n_tokens):
        if numbers[token] > 0:
            more_than[first + int64(numbers[token]) - 1] += 1
    for number in range(COUNTED_PLACES - 2, -1, -1):
        more_than[first + number] += more_than[first + number + 1]
    for token in range(n_tokens):
        if numbers[token] > 0:
            place = first + int64(numbers[token])
            ordered[slot * n_tokens + int64(more_than[place])] = token
            more_than[place] += 1
    # Each has gone up to what the one before it was.
    for number in range(COUNTED_PLACES - 1):
        more_than[first + number] = more_than[first + number + 1]
    more_than[first + COUNTED_PLACES - 1] = 0
    return int64(1)


@njit_inner(RESULT2)
def bound_tells(ctx, lexer_state, item):
    """Whether a state has nothing but ``item`` repeated up to a bound, and what begins otherwise behind it (1 or 0)."""
    if i32(ctx, LEX)[4 * lexer_state + LEX_COUNT] != 1:
        return int64(0)
    nodes = i32(ctx, NODES)
    head = int64(i32(ctx, LEX_POOL)[int64(i32(ctx, LEX)[4 * lexer_state + LEX_OFFSET]) + 1])
    tail = int64(-1)
    if nodes[4 * head] & 255 == CONCAT:
        head, tail = int64(nodes[4 * head + 1]), int64(nodes[4 * head + 2])
    if nodes[4 * head] & 255 != REPEAT or nodes[4 * head + 1] != item:
        return int64(0)
    begins = i64(ctx, NODE_FIRST)
    if tail >= 0:
        for word in range(4):
            if begins[4 * item + word] & begins[4 * tail + word]:
                return int64(0)
    return int64(1)


@njit_inner(RESULT2)
def counted_place(ctx, closure, high):
    """Where the tokens of a closure are sorted by repetitions; -1 if nowhere, UNSORTED if they may yet be."""
    dense = int64(i32(ctx, SPLITS)[5 * closure + SPLIT_DENSE])
    if dense > FIRST_SHARED or high >= COUNTED_PLACES - 1:
        return int64(-1)
    place = int64(i32(ctx, SHARED_COUNTED)[FIRST_SHARED - dense]) - 1
    if place == -1 and i64(ctx, SHARED_COUNTS)[2] < COUNTED_CLOSURES:
        return int64(UNSORTED)
    return max(place, int64(-1))


@njit_inner(RESULT2)
def more_repetitions(ctx, place, high):
    """How many tokens of a counted closure have more than ``high`` repetitions."""
    return int64(i32(ctx, SHARED_MORE_THAN)[place * COUNTED_PLACES + high])


@njit_inner(types.void(CTX, int64, int64))
def allow_up_to(ctx, place, high):
    """Allow in the scratch mask the tokens with at most ``high`` repetitions."""
    more_than = i32(ctx, SHARED_MORE_THAN)
    ordered = i32(ctx, SHARED_BY_REPETITIONS)
    scratch = i32(ctx, SCRATCH)
    begin = place * (len(i64(ctx, TOKEN_START)) - 1)
    for i in range(begin + more_than[place * COUNTED_PLACES + high], begin + more_than[place * COUNTED_PLACES]):
        token = int64(ordered[i])
        scratch[token >> 5] |= int32(1) << int32(token & 31)


@njit_inner(types.void(CTX, int64, int64))
def forbid_beyond(ctx, place, high):
    """Take from the scratch mask the tokens with more than ``high`` repetitions."""
    more_than = i32(ctx, SHARED_MORE_THAN)
    ordered = i32(ctx, SHARED_BY_REPETITIONS)
    scratch = i32(ctx, SCRATCH)
    begin = place * (len(i64(ctx, TOKEN_START)) - 1)
    for i in range(begin, begin + more_than[place * COUNTED_PLACES + high]):
        token = int64(ordered[i])
        scratch[token >> 5] &= ~(int32(1) << int32(token & 31))
