"""Looking ahead where keys can run out: is another key left that the object does not have yet?

A grammar's keys may be so many and no more ({"^[ab]$": ...}), or a key may have come so far that it can only end in
ways that are taken.  So where a text has come to a comma, or is within a key that begins like an earlier one, one key
that is new is looked for, by going on byte by byte.  It is soon found if there is one: most keys differ from the others
after some bytes.

Only the next key is looked for: an object that needs three more keys may find that there are just two.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import int32, int64, types, uint8

from constrain.engine.bitmask import Bitmask, forbid
from constrain.engine.cursor import Place, Traveller
from constrain.engine.distinct_keys import ObjectKeys
from constrain.engine.jit import njit_entry, njit_inner
from constrain.engine.key_status import LOOK_AHEAD
from constrain.engine.object_keys import (
    BEGIN,
    DEPTH,
    ESCAPE,
    EXPECTS_KEY,
    FRAMES,
    HIGH,
    IN_KEY,
    IN_VALUE,
    IS_LIMITED,
    KEY_BYTES,
    KEYS,
    MODE,
    N_BYTES,
    N_KEYS,
    N_SCALARS,
    read_keys,
)
from constrain.engine.states import reset_work
from constrain.engine.tables import CLASS_OF, CLASSES, CTX, F_STEP, far_call, i32, lowest_bit, u8

if TYPE_CHECKING:
    from constrain.engine.compiled import CompiledGrammar

# States that the search for one new key may look at before it takes it that there is one.
_MOST_PLACES = 2000

_QUOTE = ord('"')


@njit_inner(types.boolean(CTX, CTX, types.Array(uint8, 1, "C", readonly=True), int64[::1], int64))
def _has_to_be_looked_at(memory, ahead, data, starts, token):
    """Whether a token leads to where it has to be looked for a new key; ``ahead`` is what it was again."""
    status = read_keys(ahead, data, starts, token)
    # Where a key is expected there is one, and so there is behind blanks and its quote.
    if memory[EXPECTS_KEY] and ahead[DEPTH] == memory[DEPTH] and ahead[N_KEYS] == memory[N_KEYS]:
        if ahead[EXPECTS_KEY] or (ahead[N_BYTES] == ahead[BEGIN] and not ahead[ESCAPE]):
            status = int64(0)
    for i in range(N_SCALARS):
        ahead[i] = memory[i]
    # Where brackets closed, others may have been written over what was in them.
    for i in range(starts[token], starts[token + 1]):
        if data[i] == 0x5D or data[i] == 0x7D:
            for j in range(memory[DEPTH]):
                i32(ahead, FRAMES)[j] = i32(memory, FRAMES)[j]
            for j in range(3 * memory[N_KEYS]):
                i32(ahead, KEYS)[j] = i32(memory, KEYS)[j]
            for j in range(memory[N_BYTES]):
                u8(ahead, KEY_BYTES)[j] = u8(memory, KEY_BYTES)[j]
            break
    return status >= 0 and status & LOOK_AHEAD != 0


@njit_entry(
    int64(CTX, CTX, types.Array(uint8, 1, "C", readonly=True), int64[::1], int32[::1], int32[:, ::1], int64, int32[::1])
)
def find_to_look_at(memory, ahead, data, starts, quotes, out, index, found):
    """Find the tokens of a mask after which it has to be looked for a new key.

    Parameters
    ----------
    memory, ahead : int64[...]
        The keys (object_keys.py), and a copy of them; both have room for any token.
    data, starts : uint8[n_bytes], int64[n_tokens + 1]
        Token ``i`` is ``data[starts[i]:starts[i + 1]]``.
    quotes : int32[n]
        The tokens that hold a quote.
    out, index : int32[batch, words], int
        The mask.
    found : int32[n_tokens]
        Output.

    Returns
    -------
    How many; some may be there twice.
    """
    count = 0
    for i in range(len(quotes)):
        token = int64(quotes[i])
        if (out[index, token >> 5] >> (token & 31)) & 1:
            if _has_to_be_looked_at(memory, ahead, data, starts, token):
                found[count] = token
                count += 1
    if memory[MODE] == IN_VALUE:
        return count
    # Without a quote, a token in a key has to go on like one that is there; outside of one there are few.
    w0, w1, w2, w3 = int64(0), int64(0), int64(0), int64(0)
    if memory[MODE] == IN_KEY and memory[ESCAPE] == 0 and memory[HIGH] == 0:
        w1 = int64(1) << (0x5C & 63)
        keys = i32(memory, KEYS)
        length = memory[N_BYTES] - memory[BEGIN]
        for key in range(int64(i32(memory, FRAMES)[memory[DEPTH] - 1]), memory[N_KEYS]):
            if int64(keys[3 * key + 1]) - int64(keys[3 * key]) > length:
                byte = int64(u8(memory, KEY_BYTES)[int64(keys[3 * key]) + length])
                bit = int64(1) << (byte & 63)
                if byte < 64:
                    w0 |= bit
                elif byte < 128:
                    w1 |= bit
                elif byte < 192:
                    w2 |= bit
                else:
                    w3 |= bit
    else:
        w0, w1, w2, w3 = int64(-1), int64(-1), int64(-1), int64(-1)
    for word in range(out.shape[1]):
        bits = int64(out[index, word]) & 0xFFFFFFFF
        while bits:
            token = 32 * word + lowest_bit(bits)
            bits &= bits - 1
            if token + 1 >= len(starts) or starts[token] == starts[token + 1]:
                continue
            byte = int64(data[starts[token]])
            group = w0 if byte < 64 else (w1 if byte < 128 else (w2 if byte < 192 else w3))
            if (group >> (byte & 63)) & 1:
                if _has_to_be_looked_at(memory, ahead, data, starts, token):
                    found[count] = token
                    count += 1
    return count


def forbid_dead_ends(compiled: CompiledGrammar, place: Place, keys: ObjectKeys, out: Bitmask, index: int) -> None:
    """Take the tokens behind which no new key is left out of row ``index`` of a mask.

    The caller holds the lock of the compiled grammar.
    """
    vocabulary = compiled.vocabulary
    keys.make_room(vocabulary.trie.depth)
    # So may be a key that ends within a token.
    keys.memory[IS_LIMITED] = 1
    ahead = keys.copy()
    quotes = keys.quotes.tokens
    found = np.empty(vocabulary.size + len(quotes), np.int32)
    texts = vocabulary.data, vocabulary.starts
    count = find_to_look_at(keys.memory, ahead.memory, *texts, quotes, out, index, found)
    row = out[index]
    # What was found out for states behind a quote, for which blanks before it make no difference.
    known: dict[tuple[int, bytes], bool] = {}
    generation = compiled.generation
    for token in dict.fromkeys(found[:count].tolist()):
        there = Traveller(compiled, place._state, place._parent)
        there.read(vocabulary.tokens[token])
        behind = keys.copy()
        behind.read_token(vocabulary, token)
        if not behind.is_in_key():
            begun = Traveller(compiled, there._state, there._parent)
            begun.read(b'"')
            if begun._state:
                there = begun
                behind.read(b'"')
        if compiled.generation != generation:
            generation, known = compiled.generation, {}
        which = there._state, behind.key_under_way() + bytes(behind.memory[[DEPTH, N_KEYS]])
        if which not in known:
            known[which] = has_key_left(compiled, there, behind)
        if not known[which]:
            forbid(row, token)


@njit_entry(int64(CTX, int64, uint8[::1]))
def find_next_bytes(ctx, state, out):
    """Write to ``out`` (uint8[256]) whether each byte may come next; returns 0, FAIL, LIMIT or UNMADE."""
    reset_work(ctx)
    for byte_class in range(ctx[CLASSES]):
        then = far_call(ctx, F_STEP, state, int64(byte_class))
        if then < 0:
            return then
        for byte in range(256):
            if u8(ctx, CLASS_OF)[byte] == byte_class:
                out[byte] = then > 0
    return int64(0)


def has_key_left(compiled: CompiledGrammar, place: Place, keys: ObjectKeys) -> bool:
    """Whether the object at a place can get a key that it does not have; the keys are those at the place.

    The caller holds the lock of the compiled grammar.
    """
    todo = [(place, keys)]
    generation = compiled.generation
    tried: set[tuple[int, bytes]] = set()
    possible = np.empty(256, np.uint8)
    while todo:
        here, known = todo.pop()
        if compiled.generation != generation:
            # States have new numbers.
            generation, tried = compiled.generation, set()
        been = here._state, known.key_under_way()
        if been in tried:
            continue
        tried.add(been)
        if len(tried) > _MOST_PLACES:
            return True
        compiled.run_at(here, find_next_bytes, possible)
        following = np.flatnonzero(possible).tolist()
        if known.is_in_key():
            taken = known.bytes_taken()
            if taken is not None and not taken.issuperset(following):
                # No key that is there goes on so.
                return True
        elif _QUOTE in following:
            following = [_QUOTE]
        for byte in reversed(following):
            behind = known.copy()
            behind.read(bytes((byte,)))
            if behind.status < 0:
                continue
            if not behind.status & LOOK_AHEAD:
                # A key that is new has ended, or none that is there begins like the one under way, which can end.
                return True
            there = Traveller(compiled, here._state, here._parent)
            there.read(bytes((byte,)))
            todo.append((there, behind))
    return False
