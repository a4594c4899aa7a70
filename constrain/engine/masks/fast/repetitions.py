"""How many repetitions each token of a star closure holds, for strings with a greatest length.

Of the tokens in the star closure of C (closures.py), ``C{low,high}`` allows those that begin at most ``high``
times a C.  A vocabulary keeps, for the star closures that bounds are met on, the tokens sorted by that number.  So what
a bound rules out is the beginning of a list, and a character more or less in a string costs no walk.

The number is well defined if no C begins another C, as the characters of a JSON string do not.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from constrain.engine.automata.expressions import CONCAT, REPEAT, first_bytes
from constrain.engine.automata.lexer_states import step_lexer
from constrain.engine.masks.lexer_masks import FIRST_SHARED
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i64
from constrain.engine.storage.header import CTX, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.statuses import UNSORTED
from constrain.engine.vocabulary.trie import DEPTH_SHIFT
from constrain.kernels.language import int32, int64, types


@njit_inner(RESULT1)
def _number_tokens(ctx, closure):
    """Write to FOUND_TOKENS how many repetitions of a star closure each token begins; -1 for those outside.

    Returns 1, 0 if the number of repetitions is not well defined, FAIL or LIMIT.
    """
    nodes = t.trie_nodes(ctx)
    sizes = t.subtree_sizes(ctx)
    tokens = t.node_tokens(ctx)
    states = t.walk_stack(ctx)
    begun = t.wide_stack(ctx)
    class_of = t.byte_classes(ctx)
    numbers = t.found_tokens(ctx)
    same = t.same_bytes(ctx)
    n_tokens = len(i64(ctx, t.TOKEN_STARTS)) - 1
    for token in range(n_tokens):
        numbers[token] = -1
    states[0], begun[0] = closure, 0
    p = int64(0)
    while p < len(nodes):
        depth = nodes[p] >> DEPTH_SHIFT
        here = states[depth]
        there = step_lexer(ctx, here, class_of[nodes[p] & 255])
        if there < 0:
            return there
        if there == 0:
            p += sizes[p]
            continue
        if there != closure and t.lexer_states(ctx)[there].accept != 0:
            return int64(0)
        number = begun[depth] + int64(here == closure)
        states[depth + 1] = there
        begun[depth + 1] = number
        ended = tokens[p]
        while ended >= 0:
            numbers[ended] = min(number, t.COUNTED_PLACES - 1)
            ended = same[ended] if len(same) else int64(-1)
        p += 1
    return int64(1)


@njit_entry(RESULT1)
def count_repetitions(ctx, closure):
    """Sort the tokens of a shared star closure, a lexer state, into the vocabulary's next free place.

    Returns 1, 0 if the number of repetitions is not well defined, FAIL or LIMIT.
    """
    status = _number_tokens(ctx, closure)
    if status <= 0:
        return status
    numbers = t.found_tokens(ctx)
    n_tokens = len(i64(ctx, t.TOKEN_STARTS)) - 1
    # A counting sort, most repetitions first.
    slot = t.shared_counts(ctx)[2]
    more_than = t.shared_more_than(ctx)
    ordered = t.shared_by_repetitions(ctx)
    first = slot * t.COUNTED_PLACES
    for number in range(t.COUNTED_PLACES):
        more_than[first + number] = 0
    for token in range(n_tokens):
        if numbers[token] > 0:
            more_than[first + numbers[token] - 1] += 1
    for number in range(t.COUNTED_PLACES - 2, -1, -1):
        more_than[first + number] += more_than[first + number + 1]
    for token in range(n_tokens):
        if numbers[token] > 0:
            place = first + numbers[token]
            ordered[slot * n_tokens + more_than[place]] = token
            more_than[place] += 1
    # Each has gone up to what the one before it was.
    for number in range(t.COUNTED_PLACES - 1):
        more_than[first + number] = more_than[first + number + 1]
    more_than[first + t.COUNTED_PLACES - 1] = 0
    return int64(1)


@njit_inner(RESULT2)
def bound_tells(ctx, lexer_state, item):
    """Whether a state has nothing but ``item`` repeated up to a bound, and what begins otherwise behind it (1 or 0)."""
    if t.lexer_states(ctx)[lexer_state].count != 1:
        return int64(0)
    nodes = t.expressions(ctx)
    head = t.lexer_members(ctx)[t.lexer_states(ctx)[lexer_state].offset + 1]
    tail = int64(-1)
    if nodes[head].kind == CONCAT:
        head, tail = nodes[head].first, nodes[head].second
    if nodes[head].kind != REPEAT or nodes[head].first != item:
        return int64(0)
    if tail >= 0:
        for word in range(4):
            if first_bytes(ctx, item, word) & first_bytes(ctx, int64(tail), word):
                return int64(0)
    return int64(1)


@njit_inner(RESULT2)
def counted_place(ctx, closure, high):
    """Where the tokens of a star closure are sorted by repetitions; -1 if nowhere, UNSORTED if they may yet be."""
    dense = t.lexer_masks(ctx)[closure].dense
    if dense > FIRST_SHARED or high >= t.COUNTED_PLACES - 1:
        return int64(-1)
    place = t.shared_counted(ctx)[FIRST_SHARED - dense] - 1
    if place == -1 and t.shared_counts(ctx)[2] < t.COUNTED_CLOSURES:
        return int64(UNSORTED)
    return max(place, int64(-1))


@njit_inner(RESULT2)
def more_repetitions(ctx, place, high):
    """How many tokens of a counted star closure have more than ``high`` repetitions."""
    return t.shared_more_than(ctx)[place * t.COUNTED_PLACES + high]


@njit_inner(types.void(CTX, int64, int64))
def allow_up_to(ctx, place, high):
    """Allow in the scratch mask the tokens with at most ``high`` repetitions."""
    more_than = t.shared_more_than(ctx)
    ordered = t.shared_by_repetitions(ctx)
    scratch = t.scratch_mask(ctx)
    begin = place * (len(i64(ctx, t.TOKEN_STARTS)) - 1)
    for i in range(begin + more_than[place * t.COUNTED_PLACES + high], begin + more_than[place * t.COUNTED_PLACES]):
        token = ordered[i]
        scratch[token >> 5] |= int32(1) << int32(token & 31)


@njit_inner(types.void(CTX, int64, int64))
def forbid_beyond(ctx, place, high):
    """Take from the scratch mask the tokens with more than ``high`` repetitions."""
    more_than = t.shared_more_than(ctx)
    ordered = t.shared_by_repetitions(ctx)
    scratch = t.scratch_mask(ctx)
    begin = place * (len(i64(ctx, t.TOKEN_STARTS)) - 1)
    for i in range(begin, begin + more_than[place * t.COUNTED_PLACES + high]):
        token = ordered[i]
        scratch[token >> 5] &= ~(int32(1) << int32(token & 31))
