"""Fingerprints: 128 bits by which grammars recognise an expression whose lexer mask another grammar has made.

The vocabulary keeps lexer masks (lexer_masks.py) of expressions that many grammars share, also on disk, and finds them
by these bits alone.  So two different expressions must never have the same bits, not even if somebody looks for such a
pair. A fingerprint is therefore BLAKE2b (RFC 7693) with a digest of 16 bytes, over a canonical form of the expression.
For BLAKE2b no way is known to find two inputs with the same digest but by trying some 2**64.

The form is a sequence of 64-bit words.  The first word says what the others are, so different expressions have
different forms:

======== ============================ =============================================================
kind     first word                   further words
======== ============================ =============================================================
LITERAL  kind + 256 * bytes           the bytes, eight to a word, the last word filled up with zeros
SET      kind                         the four words of the set
CONCAT   kind                         the fingerprints of the two parts
REPEAT   kind                         the fingerprint of the part, the least and the greatest count
UNION    kind + 256 * parts           the fingerprints of the parts, sorted
others   kind
======== ============================ =============================================================

A counter is capped at one more than the length of the longest token: no token can tell two larger counts apart.
Under an intersection or a complement that is not so, since there the counts decide what is empty.  Such expressions
have no fingerprint (COMPLEX_FLAG), nor have those with a text to be quoted from (QUOTES_FLAG).

A fingerprint is made when it is first asked for.  Most expressions are never asked for theirs.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from constrain.engine.automata.expressions import COMPLEX_FLAG, CONCAT, LITERAL, QUOTES_FLAG, REPEAT, SET, UNION
from constrain.engine.automata.lexer_states import CLOSURE
from constrain.engine.storage import schemas as t
from constrain.engine.storage.access import i32, i64, push, room, set_used, used
from constrain.engine.storage.hashing import mix
from constrain.engine.storage.header import CTX, LONGEST, RESULT0, RESULT1, RESULT2
from constrain.engine.storage.jit import njit_entry, njit_inner
from constrain.engine.storage.links import F_HASH, F_PRINT, far_call, far_entry
from constrain.engine.storage.statuses import FAIL
from constrain.kernels.language import int64, types, uint64

SHARED_MEMBERS = 8
"""A lexer state with more members has no fingerprint."""

_UNPRINTED = COMPLEX_FLAG | QUOTES_FLAG

# What takes the place of a kind in the form of a lexer state.
_STATE, _STATE_OF_CLOSURE = 16, 17

_BLOCK = 16
"""Words in a block of BLAKE2b."""

_IV = np.array(
    [
        *(0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1),
        *(0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179),
    ],
    np.uint64,
)
# Parameters of the hash: sequential, no key, a digest of 16 bytes.
_PARAMETERS = 0x01010010
_ROUNDS = 12
# Which word of the block each step of a round takes; rounds 10 and 11 are as 0 and 1.
_ORDERS = np.array(
    [
        *(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        *(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3),
        *(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4),
        *(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8),
        *(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13),
        *(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9),
        *(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11),
        *(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10),
        *(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5),
        *(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0),
    ],
    np.uint8,
)

_FOUR = types.UniTuple(uint64, 4)


@njit_inner(_FOUR(uint64, uint64, uint64, uint64, uint64, uint64))
def _mix_in(a, b, c, d, x, y):
    """The function G of RFC 7693, section 3.1."""
    a = a + b + x
    d ^= a
    d = d >> uint64(32) | d << uint64(32)
    c += d
    b ^= c
    b = b >> uint64(24) | b << uint64(40)
    a = a + b + y
    d ^= a
    d = d >> uint64(16) | d << uint64(48)
    c += d
    b ^= c
    b = b >> uint64(63) | b << uint64(1)
    return a, b, c, d


@njit_inner(int64(int64))
def _space(count):
    """The words of HASHED_WORDS that :func:`_hash_form` needs for ``count``: whole blocks, and its state behind."""
    return (count + _BLOCK - 1) // _BLOCK * _BLOCK + 8


@njit_inner(RESULT2)
def _hash_form(ctx, count, _unused):
    """Replace the ``count`` words (at least 1) at HASHED_WORDS by their digest, HASHED_WORDS[:2].

    There is room for :func:`_space`.
    """
    form = i64(ctx, t.HASHED_WORDS)
    state = _space(count) - 8
    for i in range(count, state):
        form[i] = 0
    for i in range(8):
        form[state + i] = int64(_IV[i])
    form[state] ^= _PARAMETERS
    for begin in range(0, state, _BLOCK):
        v0, v1, v2, v3 = uint64(form[state]), uint64(form[state + 1]), uint64(form[state + 2]), uint64(form[state + 3])
        v4, v5, v6 = uint64(form[state + 4]), uint64(form[state + 5]), uint64(form[state + 6])
        v7 = uint64(form[state + 7])
        v8, v9, v10, v11 = _IV[0], _IV[1], _IV[2], _IV[3]
        v12, v13, v14, v15 = _IV[4] ^ uint64(8 * min(count, begin + _BLOCK)), _IV[5], _IV[6], _IV[7]
        if begin + _BLOCK == state:
            v14 = ~v14
        for number in range(_ROUNDS):
            r = 16 * (number % 10)
            word = form[begin : begin + _BLOCK]
            v0, v4, v8, v12 = _mix_in(v0, v4, v8, v12, uint64(word[_ORDERS[r]]), uint64(word[_ORDERS[r + 1]]))
            v1, v5, v9, v13 = _mix_in(v1, v5, v9, v13, uint64(word[_ORDERS[r + 2]]), uint64(word[_ORDERS[r + 3]]))
            v2, v6, v10, v14 = _mix_in(v2, v6, v10, v14, uint64(word[_ORDERS[r + 4]]), uint64(word[_ORDERS[r + 5]]))
            v3, v7, v11, v15 = _mix_in(v3, v7, v11, v15, uint64(word[_ORDERS[r + 6]]), uint64(word[_ORDERS[r + 7]]))
            v0, v5, v10, v15 = _mix_in(v0, v5, v10, v15, uint64(word[_ORDERS[r + 8]]), uint64(word[_ORDERS[r + 9]]))
            v1, v6, v11, v12 = _mix_in(v1, v6, v11, v12, uint64(word[_ORDERS[r + 10]]), uint64(word[_ORDERS[r + 11]]))
            v2, v7, v8, v13 = _mix_in(v2, v7, v8, v13, uint64(word[_ORDERS[r + 12]]), uint64(word[_ORDERS[r + 13]]))
            v3, v4, v9, v14 = _mix_in(v3, v4, v9, v14, uint64(word[_ORDERS[r + 14]]), uint64(word[_ORDERS[r + 15]]))
        form[state] ^= int64(v0 ^ v8)
        form[state + 1] ^= int64(v1 ^ v9)
        form[state + 2] ^= int64(v2 ^ v10)
        form[state + 3] ^= int64(v3 ^ v11)
        form[state + 4] ^= int64(v4 ^ v12)
        form[state + 5] ^= int64(v5 ^ v13)
        form[state + 6] ^= int64(v6 ^ v14)
        form[state + 7] ^= int64(v7 ^ v15)
    form[0], form[1] = form[state], form[state + 1]
    return int64(0)


far_entry(F_HASH, _hash_form)


@njit_inner(types.boolean(CTX, int64))
def _is_known(ctx, expression):
    """Whether the fingerprint of an expression has been made; a digest that is 0 is as rare as two that are equal."""
    prints = t.expression_prints(ctx)
    return prints[expression, 0] != 0 or prints[expression, 1] != 0


@njit_inner(types.void(int64[::1]))
def _sort_pairs(pairs):
    """Sort pairs of words in place, as :func:`~constrain.engine.storage.hashing.sort_keys` does."""
    count = len(pairs) // 2
    gap = 1
    while gap < count // 2:
        gap = gap * 9 // 4 + 1
    while gap > 0:
        for i in range(gap, count):
            first, second = pairs[2 * i], pairs[2 * i + 1]
            j = i - gap
            while j >= 0 and (pairs[2 * j] > first or (pairs[2 * j] == first and pairs[2 * j + 1] > second)):
                pairs[2 * (j + gap)], pairs[2 * (j + gap) + 1] = pairs[2 * j], pairs[2 * j + 1]
                j -= gap
            pairs[2 * (j + gap)], pairs[2 * (j + gap) + 1] = first, second
        gap = gap * 4 // 9


@njit_inner(RESULT1)
def _write_form(ctx, expression):
    """Write the form of an expression to HASHED_WORDS; those of its parts are known.  Returns its words, or FAIL."""
    records = t.expressions(ctx)
    prints = t.expression_prints(ctx)
    kind = int64(records[expression].kind)
    a, b, c = records[expression].first, records[expression].second, records[expression].third
    count = int64(1)
    if kind == LITERAL:
        count = 1 + (b + 7) // 8
    elif kind == SET or kind == CONCAT or kind == REPEAT:
        count = int64(5)
    elif kind == UNION:
        count = 1 + 2 * b
    if not room(ctx, t.HASHED_WORDS, _space(count)):
        return int64(FAIL)
    form = i64(ctx, t.HASHED_WORDS)
    form[0] = kind
    if kind == LITERAL:
        form[0] |= b << 8
        for i in range(1, count):
            form[i] = 0
        for i in range(b):
            form[1 + (i >> 3)] |= t.literal_bytes(ctx)[a + i] << (8 * (i & 7))
    elif kind == SET:
        for i in range(4):
            form[1 + i] = t.byte_sets(ctx)[a, i]
    elif kind == CONCAT or kind == REPEAT:
        form[1], form[2] = prints[a, 0], prints[a, 1]
        if kind == CONCAT:
            form[3], form[4] = prints[b, 0], prints[b, 1]
        else:
            form[3], form[4] = min(b, ctx[LONGEST] + 1), min(c, ctx[LONGEST] + 1)
    elif kind == UNION:
        # The order of the parts is the grammar's own.
        form[0] |= b << 8
        for i in range(b):
            part = t.children(ctx)[a + i]
            form[1 + 2 * i], form[2 + 2 * i] = prints[part, 0], prints[part, 1]
        _sort_pairs(form[1:count])
    return count


@njit_inner(RESULT2)
def _print_expression(ctx, expression, _unused):
    """Make the fingerprint of an expression without intersections and complements; returns 0 or FAIL.

    Parts first, with the work stack, so that expressions may be nested to any depth.
    """
    bottom = used(ctx, t.WORK_STACK)
    if not push(ctx, t.WORK_STACK, expression):
        return int64(FAIL)
    while used(ctx, t.WORK_STACK) > bottom:
        top = used(ctx, t.WORK_STACK)
        here = t.work_stack(ctx)[top - 1]
        if _is_known(ctx, here):
            set_used(ctx, t.WORK_STACK, top - 1)
            continue
        record = t.expressions(ctx)[here]
        kind, a, parts = record.kind, record.first, int64(0)
        if kind == CONCAT:
            parts = int64(2)
        elif kind == REPEAT:
            parts = int64(1)
        elif kind == UNION:
            parts = record.second
        for i in range(parts):
            part = t.children(ctx)[a + i] if kind == UNION else (a if i == 0 else record.second)
            if not _is_known(ctx, part) and not push(ctx, t.WORK_STACK, part):
                return int64(FAIL)
        if used(ctx, t.WORK_STACK) > top:
            continue
        count = _write_form(ctx, here)
        if count < 0:
            return count
        far_call(ctx, F_HASH, count, 0)
        prints, form = t.expression_prints(ctx), t.hashed_words(ctx)
        prints[here, 0], prints[here, 1] = form[0], form[1]
        set_used(ctx, t.WORK_STACK, top - 1)
    return int64(0)


far_entry(F_PRINT, _print_expression)


@njit_entry(RESULT0)
def print_expressions(ctx):
    """Make the fingerprints of all expressions that can have one; returns 0 or FAIL."""
    set_used(ctx, t.WORK_STACK, 0)
    for expression in range(used(ctx, t.EXPRESSION_HASHES)):
        if not t.expressions(ctx)[expression].flags & _UNPRINTED and far_call(ctx, F_PRINT, expression, 0) < 0:
            return int64(FAIL)
    return int64(0)


@njit_inner(types.boolean(CTX, int64))
def has_print(ctx, lexer_state):
    """Whether a lexer state has a fingerprint; if not, its mask cannot be shared."""
    count = t.lexer_states(ctx)[lexer_state].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    if count == 0 or count > SHARED_MEMBERS:
        return False
    members, records = t.lexer_members(ctx), t.expressions(ctx)
    for i in range(count):
        expression = members[offset + 2 * i + 1]
        if records[expression].flags & _UNPRINTED:
            return False
    return True


@njit_inner(RESULT1)
def hint_of(ctx, lexer_state):
    """A number that is the same for lexer states with equal fingerprints, and seldom for others; it takes no time.

    It is made of what is known of the members: the bytes that they begin with, end with and need, and their shortest
    lengths, capped as counters are.
    """
    count = t.lexer_states(ctx)[lexer_state].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    hint = count
    for i in range(count):
        expression = t.lexer_members(ctx)[offset + 2 * i + 1]
        hint = mix(hint, min(t.shortest_lengths(ctx)[expression], ctx[LONGEST] + 1))
        for slot in (t.FIRST_BYTES, t.LAST_BYTES, t.NECESSARY_BYTES):
            for word in range(4):
                hint = mix(hint, t.summary_sets(ctx)[i32(ctx, slot)[expression], word])
    return hint


@njit_inner(RESULT1)
def print_state(ctx, lexer_state):
    """Leave the fingerprint of a lexer state, which has one, at HASHED_WORDS[:2]; returns 0 or FAIL.

    It is of the expressions of the state's members in their order, and says whether the state stands for a closure.
    """
    count = t.lexer_states(ctx)[lexer_state].count
    offset = t.lexer_states(ctx)[lexer_state].offset
    members = t.lexer_members(ctx)
    for i in range(count):
        expression = members[offset + 2 * i + 1]
        if not _is_known(ctx, expression) and far_call(ctx, F_PRINT, expression, 0) < 0:
            return int64(FAIL)
    words = 1 + 2 * count
    if not room(ctx, t.HASHED_WORDS, _space(words)):
        return int64(FAIL)
    prints, form = t.expression_prints(ctx), t.hashed_words(ctx)
    form[0] = (_STATE_OF_CLOSURE if members[offset] == CLOSURE else _STATE) | count << 8
    for i in range(count):
        expression = members[offset + 2 * i + 1]
        form[1 + 2 * i], form[2 + 2 * i] = prints[expression, 0], prints[expression, 1]
    return far_call(ctx, F_HASH, words, 0)
